"""Batchnorm of 16 bits has HTP's products and its factor."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

CHANNELS = 8

pytestmark = needs_htp


@pytest.mark.parametrize("moved", [False, True], ids=["as_is", "moved"])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
def test_nearly_all_are_the_same_integers(biased: bool, moved: bool) -> None:
    """With a rounded result, four in ten are: the zero point of the output has the factor's error, too."""
    graph, rng = Graph("channels"), np.random.default_rng(4)
    b = Builder(graph)
    x = graph.add_input("x", DType.UFIXED_16, (1, CHANNELS, 32, 32) if moved else (1, 32, 32, CHANNELS))
    x.encoding = Encoding.per_tensor(8.410648657821237e-5, -37203, 16)
    data = b("Transpose", x, perm=(0, 2, 3, 1)) if moved else x
    data.encoding = x.encoding
    real = b.const(np.ones(CHANNELS, np.float32))
    y = b("Batchnorm", data, real, *([real] if biased else []))
    codes = Encoding.per_tensor(0.011, -100, 8), Encoding.per_tensor(0.02, -120, 8)
    for index, code in enumerate(codes[: 1 + biased], start=1):
        stored = rng.integers(0, 256, CHANNELS).astype(np.uint8)
        given = Value(f"given{index}", DType.UFIXED_8, (CHANNELS,), code, stored)
        graph.set_input(graph.nodes[-1], index, given)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(1.641089392238523e-4, -28938, 16)
    graph.add_output(y)
    feed = {"x": rng.integers(0, 1 << 16, x.shape).astype(np.uint16)}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][y.name]
    apart = np.abs(theirs.astype(np.int64) - CpuExecutable(graph, threads=1).run(feed)[y.name])
    assert apart.max() <= 1 and np.mean(apart == 0) > 0.98
