"""Python files in the folder in which a command is run are not run by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from onnx import helper

import openqnn
from openqnn.errors import LibraryError
from openqnn.qnn.library import find_library
from tests.cli.tool import environment
from tests.libraries import need
from tests.onnx_models import model, relu, save

MODULES = ("mmap", "struct", "json", "socket", "numpy", "onnx", "openqnn", "signal", "ctypes")


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A folder with modules that leave a file when they are run."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("open('RAN', 'a').write(__file__ + chr(10))\n")
    return tmp_path


def in_folder(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """`openqnn ARGV` there, as its console script runs it: without the folder on the path of modules."""
    script = "import sys; from openqnn.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-P", "-c", script, *argv],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_reading_a_dlc_runs_no_file_of_the_folder(trapped: Path) -> None:
    need("ir")
    graph = openqnn.convert(save(relu(), trapped / "relu.onnx"))
    graph.save(trapped / "relu.dlc")
    done = in_folder(trapped, "inspect", "relu.dlc")
    assert done.returncode == 0, done.stderr
    assert not (trapped / "RAN").exists()


def test_checking_a_model_with_an_unknown_op_runs_none(trapped: Path) -> None:
    unknown = [helper.make_node("Nonsense", ["x"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    save(model(unknown), trapped / "bad.onnx")
    in_folder(trapped, "check", "bad.onnx")
    assert not (trapped / "RAN").exists()


def test_asking_a_library_for_its_version_runs_none(trapped: Path) -> None:
    try:
        find_library("system")
    except LibraryError as error:
        pytest.skip(error.message)
    done = in_folder(trapped, "doctor")
    assert "Traceback" not in done.stderr
    assert not (trapped / "RAN").exists()
