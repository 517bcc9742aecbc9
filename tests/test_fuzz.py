"""Damaged model files are converted or refused: no crash, no hang, no traceback, no memory without bounds."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.tool import environment
from tests.fuzz.mutate import FIRST_QUANTIZED
from tests.fuzz.worker import FIRST_CAFFE, FIRST_TFLITE

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds for one model: it takes a fraction of one, also on a busy machine
CHUNK = 250


class Child:
    """A worker process; it is started again after it crashed or hung."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def ask(self, seed: int) -> dict[str, str]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"], cwd=ROOT, env=environment(), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        print(seed, file=stdin, flush=True)
        if not select.select([stdout], [], [], PATIENCE)[0]:
            self.end()
            return {"outcome": "hang", "what": "", "detail": f"no answer in {PATIENCE} s"}
        line = stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.end()
        return {"outcome": "crash", "what": "", "detail": f"the process ended with code {code}"}


def failures(seeds: range, seen: Counter[str]) -> Iterator[str]:
    with Child() as child:
        for seed in seeds:
            answer = child.ask(seed)
            seen[answer["outcome"]] += 1
            if answer["outcome"] not in ("good", "refused"):
                yield f"seed {seed} ({answer['outcome']}): {answer['what']}\n{answer['detail']}"


def assert_survives(seeds: range) -> None:
    seen = Counter[str]()
    found = list(failures(seeds, seen))
    again = "python -m tests.fuzz.worker SEED shows one"
    assert not found, "\n".join([f"{len(found)} of {len(seeds)} ({again})", *found[:10]])
    assert seen["good"] > len(seeds) // 20 and seen["refused"] > len(seeds) // 4, "the damage teaches nothing"


@pytest.mark.parametrize("chunk", range(8))
def test_damaged_models(chunk: int) -> None:
    assert_survives(range(chunk * CHUNK, (chunk + 1) * CHUNK))


@pytest.mark.parametrize(
    "first", [pytest.param(n * CHUNK, marks=[pytest.mark.slow] * (n > 0)) for n in range(8)]
)
def test_damaged_quantized_models(first: int) -> None:
    start = FIRST_QUANTIZED + first
    assert_survives(range(start, start + CHUNK))


@pytest.mark.parametrize(
    "first", [pytest.param(n * CHUNK, marks=[pytest.mark.slow] * (n > 0)) for n in range(4)]
)
def test_damaged_tflite_models(first: int) -> None:
    start = FIRST_TFLITE + first
    assert_survives(range(start, start + CHUNK))


@pytest.mark.parametrize(
    "first", [pytest.param(n * CHUNK, marks=[pytest.mark.slow] * (n > 0)) for n in range(4)]
)
def test_damaged_caffe_networks(first: int) -> None:
    start = FIRST_CAFFE + first
    assert_survives(range(start, start + CHUNK))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(8, 88))
def test_many_damaged_models(chunk: int) -> None:
    assert_survives(range(chunk * CHUNK, (chunk + 1) * CHUNK))
