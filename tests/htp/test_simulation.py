"""The built-in backend gives the stored integers of libQnnHtp: a sample always, all in the slow suite."""

from __future__ import annotations

import json

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.htp.simulation import BASELINE, NONE, WANTED, Outcome, rows, run_all, shares
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


def test_a_convolution_with_one_output_channel() -> None:
    """Its bias has a scale per channel as its weights have: HTP adds another bias otherwise."""
    rng = np.random.default_rng(4)
    graph = Graph("one")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 24))
    weights, bias = rng.normal(size=(1, 1, 24, 1)).astype(np.float32), np.full(1, 9.0, np.float32)
    graph.add_output(b("Conv2d", x, b.const(weights), b.const(bias), stride=(1, 1), pad_amount=NONE))
    arrays = [{"x": rng.normal(size=x.shape).astype(np.float32)} for _ in range(4)]
    fixed = openqnn.quantize(graph, arrays)
    with openqnn.Session(fixed) as cpu, openqnn.Session(fixed, "htp") as htp:
        ours, theirs = cpu.run(arrays[0]), htp.run(arrays[0])
    for name, array in ours.items():
        np.testing.assert_array_equal(theirs[name], array)
