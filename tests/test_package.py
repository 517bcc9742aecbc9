"""Packages as they would be published: complete, sound, and enough without the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_repo import ROOT, tracked_files

SOURCES = ROOT / "src" / "openqnn"

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("build", "hatchling", "twine"))), reason="build, hatchling or twine is missing"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, made of the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the wheel, as pip puts it into an environment."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next(packages.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder


def away(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`openqnn ARGUMENTS` of the wheel, in a folder that knows nothing of the repository."""
    start = (
        "import sys, openqnn; sys.modules['tests'] = None; from openqnn.cli.main import main;"
        f" assert openqnn.__file__.startswith({str(installed)!r}), openqnn.__file__; sys.exit(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-c", start, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_twine_has_no_complaint(packages: Path) -> None:
    files = [str(file) for file in packages.iterdir()]
    assert len(files) == 2
    check = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_is_the_package_and_nothing_else(packages: Path) -> None:
    with zipfile.ZipFile(next(packages.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
    ours = {f"openqnn/{file.relative_to(SOURCES)}" for file in SOURCES.rglob("*") if file.is_file()}
    wanted = {name for name in ours if "__pycache__" not in name}
    assert {name for name in names if not name.partition("/")[0].endswith(".dist-info")} == wanted
    assert not [name for name in names if name.endswith((".so", ".dll", ".onnx"))]


def test_the_sdist_is_what_the_repository_has(packages: Path) -> None:
    """Tests and documentation run from it: every file that git knows is in it, and nothing else."""
    with tarfile.open(next(packages.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {file.relative_to(ROOT).as_posix() for file in tracked_files()}
    assert wanted - names == set()
    assert names - wanted <= {"PKG-INFO"}


def test_no_module_of_the_package_imports_tests() -> None:
    importing = re.compile(r"^\s*(from|import) tests\b", re.M)
    assert not [file for file in SOURCES.rglob("*.py") if importing.search(file.read_text(encoding="utf-8"))]


def test_the_wheel_alone_fetches_converts_and_tells_its_version(installed: Path, tmp_path: Path) -> None:
    told = away(installed, tmp_path, "--version")
    assert told.returncode == 0 and told.stdout.startswith("openqnn "), told.stderr
    if find_spec("onnxruntime_qnn"):
        assert "libQnnHtp.so v" in told.stdout
    for arguments in (("models", "fetch", "mnist_conv", "--to", "."), ("check", "mnist_conv.onnx"),
                      ("sdk-tree", "sdk"), ("completion", "bash")):  # fmt: skip
        done = away(installed, tmp_path, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "sdk" / "examples" / "QNN" / "SampleApp" / "main.cpp").is_file()


@pytest.mark.slow
def test_the_wheel_alone_runs_the_demo(installed: Path, tmp_path: Path) -> None:
    done = away(installed, tmp_path, "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "openqnn-demo" / "report.html").is_file()
