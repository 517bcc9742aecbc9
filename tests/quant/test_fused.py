"""What HTP computes at once needs ranges that it can keep: judged by libQnnHtp itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array, DType, Graph
from openqnn.ops import Builder
from openqnn.quant import apply
from tests.qnn.nets import needs_htp

Network: TypeAlias = Callable[[], tuple[Graph, list[dict[str, Array]]]]


def normed() -> tuple[Graph, list[dict[str, Array]]]:
    """The same of a Batchnorm, which is a layer to HTP."""
    rng, graph = np.random.default_rng(3), Graph("normed")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 32))
    weights = b.const(rng.uniform(11, 12.4, 32).astype(np.float32), name="w")
    graph.add_output(
        b("HardSwish", b("Batchnorm", x, weights, b.const(np.full(32, -12, np.float32))), name="z")
    )
    return graph, [{"x": rng.uniform(-1, 1, x.shape).astype(np.float32)} for _ in range(4)]


def gated() -> tuple[Graph, list[dict[str, Array]]]:
    """A convolution whose results are mostly far below zero, and HardSwish behind it."""
    rng, graph = np.random.default_rng(3), Graph("gated")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 8))
    weights = b.const(rng.normal(0, 1.3, (1, 1, 8, 32)).astype(np.float32), name="w")
    bias = b.const(np.full(32, -12, np.float32), name="b")
    y = b("Conv2d", x, weights, bias, stride=(1, 1), pad_amount=((0, 0), (0, 0)), name="y")
    graph.add_output(b("HardSwish", y, name="z"))
    return graph, [{"x": rng.uniform(-1, 1, x.shape).astype(np.float32)} for _ in range(4)]


def worst(graph: Graph, data: list[dict[str, Array]]) -> float:
    """The largest error on HTP, in parts of the range that results have."""
    made = openqnn.quantize(graph, data, wide=False)
    with openqnn.Session(graph) as real, openqnn.Session(made, "htp") as fixed:
        pairs = [(real.run(d)["z"], fixed.run(d)["z"]) for d in data]
    reach = max(a.max() for a, _ in pairs) - min(a.min() for a, _ in pairs)
    return float(max(np.abs(a - b).max() for a, b in pairs) / reach)


@needs_htp
@pytest.mark.parametrize("network", [gated, normed])
def test_sums_far_below_zero_give_zero(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, data = network()
    assert worst(graph, data) < 0.1
    monkeypatch.setattr(apply, "least_top", lambda node, lowest: -np.inf)
    assert worst(graph, data) > 0.3
