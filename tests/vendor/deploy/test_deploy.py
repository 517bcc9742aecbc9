"""Bundles, where OpenQNN is not: unpacked in a clean folder, behind ssh, on another architecture."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import BackendError, LibraryError, OutputError, UsageError
from openqnn.vendor.deploy.bundle import make_bundle
from openqnn.vendor.deploy.devices import find_device
from openqnn.vendor.deploy.send import send_bundle
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs

WHEEL = Path(os.environ.get("OPENQNN_TEST_AARCH64_WHEEL", "/nowhere"))
QEMU = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64") or ""
needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no g++")


def digits() -> openqnn.Graph:
    inputs = sample_inputs("mnist_conv")
    return openqnn.quantize(model_path("mnist_conv"), [inputs], algorithms=(), act_bw=8)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("g++"):
        pytest.skip("no g++")
    need("libQnnHtp.so")
    place = tmp_path_factory.mktemp("deploy") / "digits"
    return make_bundle(digits(), place, sample=sample_inputs("mnist_conv")).folder


def selftest(bundle: Path) -> subprocess.CompletedProcess[str]:
    """With the standard library only, and nothing of this environment."""
    command = [sys.executable, "-I", "-S", "selftest.py"]
    return subprocess.run(
        command, cwd=bundle, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )


def test_a_bundle_passes_its_test_in_a_clean_folder(bundle: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    shutil.copytree(bundle, place)
    done = selftest(place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PASSED")
    names = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}
    assert names >= {
        "model_optimized.so", "context_binaries/htp_context.bin", "input_specs.json", "run.sh", "selftest.py",
        "quantization_config.json", "backend_config.json", "bin/runner", "lib/libQnnHtp.so", "manifest.json",
    }  # fmt: skip
    assert names - {"manifest.json"} == set(json.loads((place / "manifest.json").read_text())["files"])


def test_the_context_binary_of_a_bundle_gives_the_golden_results(bundle: Path) -> None:
    specs = json.loads((bundle / "input_specs.json").read_text())
    inputs, outputs = (
        {t["name"]: np.fromfile(bundle / "golden" / kind / f"{t['name']}.raw", t["dtype"]).reshape(t["shape"])
         for t in specs[kind]}
        for kind in ("inputs", "outputs")
    )  # fmt: skip
    with openqnn.Session(bundle / "context_binaries" / "htp_context.bin", "htp") as session:
        found = session.run(inputs, native=True)
    for name, array in outputs.items():
        np.testing.assert_array_equal(found[name], array)


@needs_compiler
def test_built_twice_it_is_the_same(bundle: Path, tmp_path: Path) -> None:
    again = make_bundle(digits(), tmp_path / "digits", sample=sample_inputs("mnist_conv"))
    assert (again.folder / "manifest.json").read_bytes() == (bundle / "manifest.json").read_bytes()


def test_damage_is_found(bundle: Path, tmp_path: Path) -> None:
    place = tmp_path / "damaged"
    shutil.copytree(bundle, place)
    golden = next((place / "golden/outputs").iterdir())
    golden.write_bytes(bytes(len(golden.read_bytes())))
    done = selftest(place)
    assert done.returncode == 1
    assert "golden/outputs" in done.stderr and "has changed" in done.stderr
    (place / "model_optimized.so").unlink()
    assert "model_optimized.so is missing" in selftest(place).stderr


def test_it_runs_on_this_machine_as_on_a_device(bundle: Path, tmp_path: Path) -> None:
    assert send_bundle(bundle, "local", str(tmp_path)).startswith("PASSED")
    assert not list(tmp_path.iterdir())


def test_it_runs_behind_ssh(bundle: Path, sshd: str, tmp_path: Path) -> None:
    place = tmp_path / "device"
    assert send_bundle(bundle, sshd, str(place)).startswith("PASSED")
    with pytest.raises(BackendError, match=r"127\.0\.0\.1"):
        find_device(sshd).run("exit 3")


def test_devices_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no target 'usb'"):
        find_device("usb")
    with pytest.raises(UsageError, match="no host in it"):
        find_device("ssh://")
    monkeypatch.setenv("OPENQNN_ADB", str(tmp_path / "adb"))
    with pytest.raises(BackendError, match="adb is not installed"):
        find_device("adb:1234").run("true")
    monkeypatch.setenv("OPENQNN_SSH", "ssh -F none")
    if shutil.which("ssh"):
        with pytest.raises(BackendError, match=r"127\.0\.0\.1"):
            find_device("ssh://127.0.0.1:9").run("true")


def test_bundles_that_cannot_be(bundle: Path, tmp_path: Path) -> None:
    graph = digits()
    with pytest.raises(OutputError, match="exists"):
        make_bundle(graph, bundle)
    (tmp_path / "mine").mkdir()
    with pytest.raises(OutputError, match="is no bundle"):
        make_bundle(graph, tmp_path / "mine", overwrite=True)
    with pytest.raises(UsageError, match="libraries for Android"):
        make_bundle(graph, tmp_path / "b", target="aarch64-android")
    with pytest.raises(LibraryError, match=r"has no libQnnHtp\.so"):
        make_bundle(graph, tmp_path / "b", libraries=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    refused = command("deploy", model_path("mnist_conv"), "-o", bundle)
    assert_refused(refused, "exists", "--overwrite")


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """As a disk that is nearly full: what is larger cannot be written to its end."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room(bundle: Path, tmp_path: Path) -> None:
    """One message with the place that is full, here and on a device that is this machine; nothing stays."""
    place = tmp_path / "b"
    with files_of_at_most(1 << 20), pytest.raises(OutputError, match="b: cannot be written: File too large"):
        make_bundle(digits(), place)
    assert not list(tmp_path.iterdir())
    with files_of_at_most(1 << 10), pytest.raises(BackendError) as raised:
        send_bundle(bundle, "local", str(tmp_path))
    assert raised.value.message.startswith(f"this machine: {tmp_path}/openqnn_digits_")
    assert raised.value.message.endswith(": File too large")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-g++"), reason="no cross compiler for aarch64")
@pytest.mark.skipif(not QEMU, reason="no qemu-user")
@pytest.mark.skipif(not WHEEL.is_file(), reason="OPENQNN_TEST_AARCH64_WHEEL names no wheel")
def test_the_runner_for_arm_composes_its_model(tmp_path: Path) -> None:
    """On libQnnSaver and libQnnIr: libQnnHtp for arm wants a Snapdragon."""
    need("libQnnHtp.so")
    made = make_bundle(digits(), tmp_path / "arm", target="aarch64-linux", libraries=WHEEL).folder
    assert (made / "lib" / "libQnnHtpV75Skel.so").is_file()
    for library in ("libQnnSaver.so", "libQnnIr.so"):
        done = subprocess.run(
            [QEMU, "-L", "/usr/aarch64-linux-gnu", made / "bin/runner", made / "lib" / library,
             made / "model_optimized.so", made / "golden/inputs", tmp_path, "0", "compose"],
            env={**os.environ, "QEMU_SET_ENV": f"LD_LIBRARY_PATH={made / 'lib'}"}, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "composed" in done.stdout
