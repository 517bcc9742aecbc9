"""Every code block of the pages runs, is run by a test of its own, or is marked as output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import FRAMEWORKS, NOT_RUN, RUN, SHOWN, blocks_of, indented_code
from tests.docs.test_links import PAGES
from tests.libraries import need
from tests.test_repo import ROOT

HTP = "libQnnHtp.so"
ELSEWHERE = {
    "docs/guide.md": "tests/guide/test_guide.py",
    "docs/custom_ops.md": "tests/op_packages/test_tutorials.py",
    **{f"examples/{name}/README.md": "tests/test_repo.py" for name in (
        "03_fixed_point", "04_prefill_and_decode",
    )},
}  # fmt: skip
"""Pages whose blocks have a test of their own."""
SLOW = {
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("deploy", "debugging", "quantization", "onnxruntime", "evaluating", "viewer")
    ),
}
"""Pages that take long: `make docs` and `make slow` run them."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


RUNNABLE = [page for page in PAGES if any(block.runs for block in blocks_of(page))]
OURS = [page for page in RUNNABLE if name_of(page) not in ELSEWHERE]
CASES = [pytest.param(p, id=name_of(p), marks=[pytest.mark.slow] * (name_of(p) in SLOW)) for p in OURS]


@pytest.mark.parametrize("page", CASES)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    if "htp" in page.read_text(encoding="utf-8").lower():
        need(HTP)
    paths = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.blocks", page],
        cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


@pytest.mark.frameworks
def test_python_that_needs_a_framework_runs(tmp_path: Path) -> None:
    """In an environment that has it; blocks of `sh` are in tutorials, which have a test of their own."""
    pytest.importorskip("torch")
    blocks = [b for page in PAGES for b in blocks_of(page) if (b.language, b.more) == ("python", FRAMEWORKS)]
    assert blocks
    for block in blocks:
        command = [sys.executable, "-c", block.text]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    strange = [f"{b.line}: {b.language}" for b in blocks_of(page) if b.language not in (*RUN, *SHOWN)]
    assert not strange, f"languages are {', '.join((*RUN, *SHOWN))}"
    assert not indented_code(page), "give blocks a fence and a language"


def test_blocks_that_do_not_run_say_why() -> None:
    marked = [
        b
        for page in PAGES
        for b in blocks_of(page)
        if b.language in RUN and not (b.runs or b.more == FRAMEWORKS)
    ]
    assert marked
    for block in marked:
        assert len(block.text.partition("\n")[0].partition(NOT_RUN)[2]) > 8, block


def test_pages_with_tests_of_their_own_exist() -> None:
    assert set(ELSEWHERE) <= {name_of(page) for page in RUNNABLE}
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())
