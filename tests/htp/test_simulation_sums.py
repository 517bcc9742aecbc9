"""Sums and means of 16 bits are HTP's integers: means over whole images, which it rounds, and the others."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

CASES = {
    "image": ((1, 8, 9, 40), (1, 2)),
    "row": ((1, 1, 9, 40), (2,)),
    "leading": ((50, 20), (0,)),
    "width": ((1, 8, 9, 40), (2,)),
    "channels": ((1, 8, 9, 40), (3,)),
    "last": ((12, 9, 40), (1, 2)),
    "batch": ((5, 6, 7, 8), (0, 1, 2)),
}

pytestmark = needs_htp


@pytest.mark.parametrize("moved", [False, True], ids=["as_is", "moved"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("op", "step"), [("ReduceMean", 4.1e-5), ("ReduceSum", 2.9e-3)])
def test_results_are_the_same_integers(op: str, step: float, name: str, moved: bool) -> None:
    shape, axes = CASES[name]
    graph, rank = Graph("sum"), len(shape)
    b = Builder(graph)
    x = graph.add_input("x", DType.UFIXED_16, shape[-1:] + shape[:-1] if moved else shape)
    x.encoding = Encoding.per_tensor(1.3e-4, -31000, 16)
    data = b("Transpose", x, perm=(*range(1, rank), 0)) if moved else x
    data.encoding = x.encoding
    y = b(op, data, axes=axes, keep_dims=True)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(step, -33333, 16)
    graph.add_output(y)
    feed = {"x": np.random.default_rng(1).integers(25000, 38000, x.shape).astype(np.uint16)}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][y.name]
    apart = np.abs(theirs.astype(np.int64) - CpuExecutable(graph, threads=1).run(feed)[y.name])
    assert apart.max() <= 1 and np.mean(apart == 0) > 0.9  # without it, half of them or less
