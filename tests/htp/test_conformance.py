"""ONNX's node tests on libQnnHtp: a sample always, all in the slow suite. None may be wrong or fail."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.htp.conformance import BASELINE, ROOT, Outcome, counts

BAD = ("wrong", "failed", "crash")
SAMPLE = 12  # every so many cases: about half a minute


def outcomes(*flags: str, timeout: float) -> list[Outcome]:
    """In a process of its own: it forks workers, which a process with ONNX Runtime's threads must not do."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.htp.conformance", "--json", *flags],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return [Outcome(**o) for o in json.loads(done.stdout)]


def check(found: list[Outcome]) -> None:
    bad = [f"{o.name}: {o.outcome}: {o.reason}" for o in found if o.outcome in BAD]
    assert not bad, "\n".join(bad)
    assert not [o.name for o in found if o.outcome == "refused" and not o.reason.strip()]


def test_sample_of_node_tests() -> None:
    found = outcomes("--sample", str(SAMPLE), timeout=300)
    check(found)
    total = counts(found)
    assert total["pass"] + total["fixed"] > 0.7 * len(found), total


@pytest.mark.slow
def test_all_node_tests() -> None:
    found = outcomes(timeout=1800)
    check(found)
    baseline, total = json.loads(BASELINE.read_text(encoding="utf-8")), counts(found)
    assert total["pass"] >= baseline["pass"], total
    assert total["pass"] + total["fixed"] >= baseline["pass"] + baseline["fixed"], total
