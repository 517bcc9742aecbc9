from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openqnn.errors import LibraryError, OpenQnnWarning
from openqnn.qnn.library import find_library, load_library
from tests.qnn.nets import needs_cpu, needs_htp, requires
from tests.qnn.vendor_session import VendorSession

WHEEL = "onnxruntime_qnn"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without SDK, wheel or search path."""
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not Path(p, WHEEL).is_dir()])
    monkeypatch.delitem(sys.modules, WHEEL, raising=False)
    assert importlib.util.find_spec(WHEEL) is None
    return monkeypatch


@needs_cpu
@pytest.mark.parametrize("name", ["cpu", "CPU", "libQnnCpu.so"])
def test_names_that_users_type(name: str) -> None:
    assert find_library(name).name == "libQnnCpu.so"


@needs_cpu
def test_a_library_is_loaded_once() -> None:
    assert load_library("cpu") is load_library(find_library("cpu"))


def test_the_sdk_comes_before_the_wheel(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "lib" / "x86_64-linux-clang" / "libQnnHtp.so"
    library.parent.mkdir(parents=True)
    library.touch()
    bare.setenv("QNN_SDK_ROOT", str(tmp_path))
    assert find_library("htp") == library


def test_a_library_that_the_sdk_does_not_have_is_told(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libQnnCpu.so").touch()
    bare.setenv("LD_LIBRARY_PATH", str(tmp_path))
    bare.setenv("QNN_SDK_ROOT", "/nowhere")
    with pytest.warns(
        OpenQnnWarning, match=r"QNN_SDK_ROOT: there is no libQnnCpu\.so in /nowhere/lib/.* used"
    ):
        assert find_library("cpu") == tmp_path / "libQnnCpu.so"


def test_the_search_path_is_used(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libQnnCpu.so").touch()
    bare.setenv("LD_LIBRARY_PATH", os.pathsep.join(["/nowhere", str(tmp_path)]))
    assert find_library("cpu") == tmp_path / "libQnnCpu.so"


def test_a_missing_library_says_where_it_looked(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("QNN_SDK_ROOT", str(tmp_path))
    bare.setenv("LD_LIBRARY_PATH", "/nowhere")
    with pytest.raises(LibraryError) as caught:
        find_library("cpu")
    text = str(caught.value)
    assert "libQnnCpu.so not found" in text
    assert f"{tmp_path}/lib/x86_64-linux-clang (QNN_SDK_ROOT)" in text
    assert "/nowhere (LD_LIBRARY_PATH)" in text
    assert "hint: pip install onnxruntime-qnn==2.3.0; newer wheels do not carry libQnnCpu.so" in text


@pytest.mark.usefixtures("bare")
def test_nowhere_to_look() -> None:
    with pytest.raises(LibraryError, match="the onnxruntime-qnn wheel is not installed"):
        find_library("htp")


@pytest.mark.usefixtures("bare")
def test_an_unknown_name_gets_the_known_ones() -> None:
    with pytest.raises(LibraryError, match="one of: cpu, gpu, htp"):
        find_library("npu")


def test_a_missing_path() -> None:
    with pytest.raises(LibraryError, match=r"there is no file /nowhere/libNothing\.so"):
        find_library("/nowhere/libNothing.so")


@needs_htp
@pytest.mark.parametrize("path", ["/nowhere/libQnnHtp.so", "C:\\qairt\\lib\\QnnHtp.dll"])
def test_a_path_of_an_sdk_that_is_not_here(path: str) -> None:
    with pytest.warns(OpenQnnWarning, match="libQnnHtp.so is used"):
        assert find_library(path) == find_library("htp")


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libQnnCpu.so").write_text("not a library")
    with pytest.raises(LibraryError, match="cannot be loaded"):
        load_library(tmp_path / "libQnnCpu.so")


@requires("system")
def test_a_library_that_is_no_backend() -> None:
    with pytest.raises(LibraryError, match=r"libQnnSystem\.so is not a QNN backend"):
        VendorSession("system")


@needs_htp
def test_loading_prints_nothing_and_leaves_onnxruntime_alone() -> None:
    script = (
        "import sys; from openqnn.qnn.library import load_library; load_library('htp');"
        "sys.exit(any('onnxruntime' in name for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, env=_with_package()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def _with_package() -> dict[str, str]:
    import openqnn

    return {**os.environ, "PYTHONPATH": str(Path(openqnn.__path__[0]).parent)}
