"""The built-in backend gives the stored integers of libQnnHtp: a sample always, all in the slow suite."""

from __future__ import annotations

import json

import pytest

from tests.htp.simulation import BASELINE, WANTED, Outcome, rows, run_all, shares
from tests.qnn.nets import needs_htp

SAMPLE = 8  # every so many cases: about ten seconds
SLACK = 0.005  # of the share in the baseline: other samples of the same values
EXACT = "^(Conv2d|FullyConnected|ElementWiseAdd)"

pytestmark = needs_htp


def check(found: list[Outcome]) -> None:
    poor = [r for r in rows(found) if r.bits == 8 and r.within < WANTED]
    assert not poor, poor


def test_a_sample_in_8_bits_is_within_one_step() -> None:
    found = run_all(sample=SAMPLE)
    check(found)
    assert sum(o.values > 0 for o in found) > 0.4 * len(found), "most are refused or have no real data"


def test_sums_of_products_are_the_same_integers() -> None:
    found = [r for r in rows(run_all(EXACT)) if r.bits == 8]
    assert len(found) == 3
    for row in found:
        assert row.equal > 0.99, row
        assert row.largest <= 1, row


@pytest.mark.slow
def test_all_ops_agree_as_they_did() -> None:
    found = run_all()
    check(found)
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    worse = {k: (v, baseline[k]) for k, v in shares(found).items() if v < baseline.get(k, 0) - SLACK}
    assert not worse, worse
