"""Roots of a 16-bit tensor are those of libQnnHtp, for all stored integers.

None of these encodings led to the rules.
"""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import Array, DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = (1, 16, 64, 64)
ROOT, RECIPROCAL = "ElementWiseSquareRoot", "ElementWiseRsqrt"
# An op, the encodings of its input and of its output.
CASES: dict[str, tuple[str, tuple[float, int], tuple[float, int]]] = {
    "whole range": (ROOT, (4.31e-4, 0), (1.147e-4, 0)),
    "half the range": (ROOT, (7.7e-2, 0), (2.3e-3, 0)),
    "coarse": (ROOT, (3.3e-5, 0), (4.9e-3, -300)),
    "fine": (ROOT, (0.71, 0), (1.7e-5, -11)),
    "too fine": (ROOT, (2.9, 0), (1.3e-5, 0)),
    "below zero": (ROOT, (1.9e-3, -12345), (2.1e-4, -1001)),
    "reciprocal": (RECIPROCAL, (4.31e-4, 0), (1.9e-3, 0)),
    "reciprocal of few": (RECIPROCAL, (2.2e-2, 0), (0.31, -4000)),
    "reciprocal below zero": (RECIPROCAL, (6.1e-3, -2345), (8.3e-3, -77)),
}


def both(op: str, data: tuple[float, int], out: tuple[float, int]) -> tuple[Array, Array]:
    """The library's results of all stored integers, and those of the simulation."""
    graph = Graph("root")
    x = graph.add_input("x", DType.UFIXED_16, SHAPE)
    x.encoding = Encoding.per_tensor(*data, 16)
    y = Builder(graph)(op, x)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(*out, 16)
    graph.add_output(y)
    feed = {x.name: np.arange(1 << 16, dtype=np.uint16).reshape(SHAPE)}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    return theirs.astype(np.int64), ours.astype(np.int64)


@pytest.mark.parametrize("name", CASES)
def test_integers_are_those_of_the_library(name: str) -> None:
    theirs, ours = both(*CASES[name])
    assert np.ptp(theirs) > 0
    np.testing.assert_array_equal(ours, theirs)


def test_reciprocals_of_many_steps_are_in_floating_point() -> None:
    """1.0 is more steps than 16 bits hold: HTP has another kernel there."""
    theirs, ours = both(RECIPROCAL, (4.31e-4, 0), (1.3e-4, -50))
    apart = np.abs(theirs - ours).ravel()[1:]
    assert apart.max() <= 1 and np.mean(apart == 0) > 0.98, "by Newton's step, 7 in 10 would be others"
