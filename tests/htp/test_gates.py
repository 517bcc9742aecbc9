"""Data times their own sigmoid behind a layer, which libQnnHtp computes as one op."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.htp.steps import steps_apart
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

CHANNELS = 32


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("size", [(10, 10), (12, 12), (16, 7), (9, 20), (16, 16)])
def test_every_size_comes_out_right(size: tuple[int, int], width: int) -> None:
    """With 16 bits a third of the numbers and more were others, in some of these sizes."""
    rng = np.random.default_rng(2)
    graph = Graph("gate")
    x = graph.add_input("x", DType.FLOAT_32, (1, *size, CHANNELS))
    b = Builder(graph)
    weights = b.const(rng.normal(0, 0.3, (1, 1, CHANNELS, CHANNELS)).astype(np.float32))
    y = b("Conv2d", x, weights, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    graph.add_output(b("ElementWiseMultiply", y, b("Sigmoid", y)))
    data = [{"x": rng.normal(0, 3, x.shape).astype(np.float32)} for _ in range(4)]
    assert steps_apart(graph, data, width) < 8.5
