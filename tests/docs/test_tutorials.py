"""Tutorials run as they stand with all other pages; those that cannot run say so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.blocks import FRAMEWORKS
from tests.docs.test_blocks import OURS
from tests.libraries import need

PAGES = Path(__file__).parents[2] / "docs" / "tutorials"
NOT_RUN = {"shared_buffers", "windows_hibernation", "arm64x"}


def commands(name: str, kinds: tuple[str, ...] = ("sh",)) -> str:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    return "".join(re.findall(rf"^```(?:{'|'.join(kinds)})\n(.*?)^```", text, re.M | re.S))


def test_every_tutorial_runs_with_the_pages() -> None:
    """All blocks of a page are run, one after the other, by `test_blocks_run`."""
    tutorials = {page.stem for page in PAGES.glob("*.md")} - NOT_RUN
    assert tutorials <= {page.stem for page in OURS if page.parent == PAGES}
    assert all(commands(name).count("\n") > 4 for name in tutorials)


@pytest.mark.frameworks
def test_a_cnn_of_every_framework_runs(tmp_path: Path) -> None:
    """All of the page, in an environment that has PyTorch and TensorFlow."""
    pytest.importorskip("torch")
    assert find_spec("tensorflow")
    script = commands("cnn", ("sh", f"sh {FRAMEWORKS}"))
    assert {"qnn-pytorch-converter", "qnn-tensorflow-converter"} <= set(script.split())
    said = succeed(script, tmp_path)
    for name in ("from_pt2", "from_pt", "from_saved_model", "from_tflite"):
        assert re.search(rf"^{name} [\d.e-]+$", said, re.M), said


def succeed(script: str, tmp_path: Path) -> str:
    """What the script says, all of it; every command must succeed."""
    for library in ("htp", "cpu", "ir", "saver"):
        need(library)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if key != "QNN_SDK_ROOT"} | {"PATH": path}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Traceback" not in done.stdout
    return done.stdout


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_a_page_that_cannot_run_says_what_applies(name: str) -> None:
    assert not commands(name)
    assert "What applies here" in (PAGES / f"{name}.md").read_text(encoding="utf-8")
