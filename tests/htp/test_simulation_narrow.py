"""Convert from 16 bits to 8 is that of libQnnHtp, for all stored integers.

None of these encodings led to the rule.
"""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = (1, 16, 64, 64)
# The encodings of input and output.
CASES: dict[str, tuple[tuple[float, int], tuple[float, int]]] = {
    "same range": ((3.1e-4, 0), (3.1e-4 * 257, 0)),
    "same range, signed": ((7.3e-5, -257 * 117), (7.3e-5 * 257, -117)),
    "narrower": ((1.9e-4, -12345), (2.3e-2, -71)),
    "wider": ((4.4e-4, -33333), (0.41, -99)),
    "finest": ((2.2e-3, -40001), (3.9e-2, -7)),
    "power of two": ((1.0 / 1024, -12345), (0.125, -97)),
    "next to a power of two": ((1.00002 / 256, -77), (1.0, -3)),
    "beyond 16 bits": ((1e-3, -23456), (1.21, -253)),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_those_of_the_library(name: str) -> None:
    data, out = CASES[name]
    graph = Graph("narrow")
    x = graph.add_input("x", DType.UFIXED_16, SHAPE)
    x.encoding = Encoding.per_tensor(*data, 16)
    graph.add_output(Builder(graph)("Convert", x, dtype=DType.UFIXED_8, encoding=Encoding.per_tensor(*out)))
    feed = {x.name: np.arange(1 << 16, dtype=np.uint16).reshape(SHAPE)}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.ptp(theirs) > 20
    np.testing.assert_array_equal(ours, theirs)
