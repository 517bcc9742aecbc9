"""Damaged TensorFlow models of every form are converted or refused, also where TensorFlow crashes."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

import openqnn
from openqnn.errors import OpenQnnError
from openqnn.frontends.tensorflow.run_tensorflow import PYTHON, SCRIPT
from tests.frontends.tensorflow.test_tensorflow import TENSORFLOW, models, needs_tensorflow
from tests.fuzz.damage import damaged

__all__ = ["models"]  # a fixture
pytestmark = [*needs_tensorflow, pytest.mark.slow]
SERVER = Path(__file__).with_name("fork_server.py")
RUNS = int(os.environ.get("OPENQNN_FUZZ_RUNS", "200"))  # of each of five forms
HANGS = 99


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A Python that answers by forks of one which has TensorFlow already."""
    folder = tmp_path_factory.mktemp("server")
    server = subprocess.Popen(
        [TENSORFLOW, "-P", SERVER, folder / "socket", SCRIPT], stderr=subprocess.DEVNULL
    )
    client = folder / "python"
    client.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{SERVER}" "{folder / "socket"}" "$@"\n')
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    end = time.monotonic() + 300
    while not (folder / "socket").exists():
        assert server.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    yield client
    server.kill()
    server.wait()


def file_of(form: str, models: Path, folder: Path, seed: int) -> Path:
    """A damaged model."""
    chance = random.Random(seed)
    if form == "saved_model":
        path = folder / "saved"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(models / "two_saved", path)
        files = [f for f in sorted(path.rglob("*")) if f.is_file()]
        chosen = path / "saved_model.pb" if chance.random() < 0.7 else chance.choice(files)
        chosen.write_bytes(damaged(chosen.read_bytes(), seed))
        return path
    if form == "checkpoint":
        for file in models.glob("ckpt*"):
            shutil.copy(file, folder)
        chosen = (
            folder / "ckpt.meta" if chance.random() < 0.7 else chance.choice(sorted(folder.glob("ckpt*")))
        )
        chosen.write_bytes(damaged(chosen.read_bytes(), seed))
        return folder / "ckpt.meta"
    name = {"frozen": "frozen.pb", "h5": "two.h5", "keras": "two.keras"}[form]
    path, content = folder / name, (models / name).read_bytes()
    path.write_bytes(content if form == "keras" and seed % 2 else damaged(content, seed))
    if form == "keras" and seed % 2:
        _damage_entry(models / name, path, seed)
    return path


def _damage_entry(source: Path, target: Path, seed: int) -> None:
    """A sound archive of one damaged file."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        chosen = random.Random(seed).choice(["config.json", *old.namelist()])
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, damaged(content, seed) if name == chosen else content)


@pytest.mark.parametrize("form", ["frozen", "keras", "h5", "saved_model", "checkpoint"])
def test_damaged_models(
    form: str, models: Path, preloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON, str(preloaded))
    seen: Counter[str] = Counter()
    for seed in range(RUNS):
        said = refusal(file_of(form, models, tmp_path, seed))
        assert "Traceback" not in said, f"seed {seed}"
        assert f"ended with code {HANGS}:" not in said, f"seed {seed} hangs"
        seen["refused" if said else "good"] += 1
        seen["TensorFlow crashed"] += "ended with code" in said
    print(form, dict(seen))
    assert seen["good"] > RUNS // 50 and seen["refused"] > RUNS // 5, "the damage teaches nothing"


def refusal(path: Path) -> str:
    with warnings.catch_warnings(action="ignore"):
        try:
            openqnn.convert(path, batch=1)
        except OpenQnnError as e:
            return e.message
    return ""
