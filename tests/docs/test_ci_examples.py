"""The examples of docs/ci.md do what they say: the steps of the Action, the hook, the container's sources."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.models.fetch import model_path
from tests.test_repo import ROOT

CI = ROOT / "examples" / "ci"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    given = {**os.environ, "PATH": PATH, **environment}
    return subprocess.run(words, cwd=cwd, env=given, capture_output=True, text=True, check=False)


def steps() -> Iterator[str]:
    """What the jobs of the workflow run, but for installing, which is done, and what may fail."""
    workflow = yaml.safe_load((CI / "openqnn.yml").read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            may_fail = step.get("continue-on-error", False)
            if "run" in step and not may_fail and not step["run"].startswith("pip install"):
                yield step["run"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A user's repository: a model, and data for it."""
    (tmp_path / "models" / "digits").mkdir(parents=True)
    shutil.copyfile(model_path("mnist_conv"), tmp_path / "models" / "digits.onnx")
    for index in range(4):
        image = np.random.default_rng(index).random((1, 1, 28, 28), np.float32) * 255
        np.save(tmp_path / "models" / "digits" / f"{index}.npy", image)
    return tmp_path


def test_the_steps_of_the_action_run(repository: Path) -> None:
    for step in steps():
        done = run("bash", "-e", "-c", step, cwd=repository)
        assert done.returncode == 0, done.stdout + done.stderr
    reports = {file.name for file in (repository / "reports").iterdir()}
    assert reports == {"digits.check.json", "digits.oqnn", "digits.html", "digits.model.html"}


def test_the_action_fails_where_a_model_does_not_convert(repository: Path) -> None:
    (repository / "models" / "broken.onnx").write_bytes(b"no model")
    codes = [run("bash", "-e", "-c", step, cwd=repository).returncode for step in steps()]
    assert codes == [1]


def test_the_container_is_built_of_what_it_copies(tmp_path: Path) -> None:
    """Every file of its COPY lines is there, and they are enough for the wheel."""
    pytest.importorskip("build")
    lines = (CI / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [shlex.split(line)[1:] for line in lines if line.startswith("COPY ")]
    assert len(copies) == 2
    for *sources, target in copies:
        for source in sources:
            place = tmp_path / target.strip("/")
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, place, dirs_exist_ok=True, ignore=ignored)
            else:
                place.mkdir(exist_ok=True)
                shutil.copy(ROOT / source, place)
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", tmp_path / "src", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "src" / "dist").glob("*.whl")
    assert wheel.stat().st_size > 1_000_000
    with zipfile.ZipFile(wheel) as opened:
        licences = {name.rpartition("/")[2] for name in opened.namelist() if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE.md"}


@pytest.mark.slow
def test_the_hook_lets_a_model_pass_and_stops_a_broken_one(repository: Path) -> None:
    """By pre-commit itself, which makes an environment of its own with a wheel of this checkout."""
    pytest.importorskip("pre_commit")
    pytest.importorskip("build")
    wheels = repository / "wheels"
    built = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", wheels, ROOT, cwd=repository
    )
    assert built.returncode == 0, built.stdout + built.stderr
    shutil.copyfile(CI / "pre-commit-config.yaml", repository / ".pre-commit-config.yaml")
    links = f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}".strip()
    places = {"PIP_FIND_LINKS": links, "PRE_COMMIT_HOME": str(repository / "cache")}

    def commit(name: str) -> subprocess.CompletedProcess[str]:
        run("git", "add", f"models/{name}", ".pre-commit-config.yaml", cwd=repository)
        return run(sys.executable, "-m", "pre_commit", "run", cwd=repository, **places)

    run("git", "init", "-q", cwd=repository)
    passed = commit("digits.onnx")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "Passed" in passed.stdout
    (repository / "models" / "broken.onnx").write_bytes(b"no model")
    stopped = commit("broken.onnx")
    assert stopped.returncode == 1
    assert "broken.onnx" in stopped.stdout and "OQ" in stopped.stdout, stopped.stdout
