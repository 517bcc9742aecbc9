"""What HTP's kernels leave over: sums and rows at the end, in numbers that make no whole vectors."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph, Value
from openqnn.ops import Builder
from tests.htp.steps import steps_apart
from tests.qnn.nets import needs_htp

pytestmark = needs_htp


def apart(b: Builder, width: int) -> float:
    shape = b.graph.inputs[0].shape
    data = [{"x": np.random.default_rng(i).normal(0, 1, shape).astype(np.float32)} for i in range(3)]
    return steps_apart(b.graph, data, width)


def graph_of(shape: tuple[int, ...]) -> tuple[Builder, Value]:
    graph = Graph("left")
    return Builder(graph), graph.add_input("x", DType.FLOAT_32, shape)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize(
    "shape", [(33, 64), (1, 257, 32), (1, 4, 9, 32), (1, 13, 13, 16), (2, 3, 11, 16), (1, 5, 7, 8)]
)
def test_the_last_sums_of_channels(shape: tuple[int, ...], op: str, width: int) -> None:
    """Up to four of them stayed at the lowest number that there is."""
    b, x = graph_of(shape)
    b.graph.add_output(b(op, x, axes=(len(shape) - 1,), keep_dims=op == "ReduceMean"))
    assert apart(b, width) < (3.5 if width == 8 else 40)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 8, 16, 8), 2), ((1, 16, 16, 32), 2), ((50, 16), 0), ((1, 20, 4, 4), 1)]
)
def test_many_short_rows(shape: tuple[int, ...], axis: int, width: int) -> None:
    """Half of them were others, and of enlarged images most."""
    b, x = graph_of(shape)
    rows = np.random.default_rng(1).integers(0, shape[axis], 40).astype(np.int32)
    b.graph.add_output(b.gather(b.relu(x), b.const(rows), axis=axis))
    assert apart(b, width) < 1.5


@pytest.mark.parametrize("channels", [2, 4, 8])
def test_many_short_rows_of_integers(channels: int) -> None:
    graph = Graph("rows")
    x = graph.add_input("x", DType.INT_32, (1, 8, 16, channels))
    b = Builder(graph)
    rows = np.random.default_rng(1).integers(0, 16, 40).astype(np.int32)
    graph.add_output(b.gather(b.add(x, 1), b.const(rows), axis=2))
    given = {"x": np.random.default_rng(2).integers(-99, 99, x.shape).astype(np.int32)}
    with openqnn.Session(graph) as ours, openqnn.Session(graph, backend="htp") as htp:
        (said,), (found,) = ours.run(given).values(), htp.run(given).values()
    np.testing.assert_array_equal(found, said)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("more", [0.5, 1.0, 3.0])
def test_logarithms_of_a_narrow_range(more: float, width: int) -> None:
    """With fine steps, all of them were the same number."""
    b, x = graph_of((1, 8, 8, 32))
    b.graph.add_output(b.log(b.add(b("Sigmoid", x), more)))
    assert apart(b, width) < (3.5 if width == 8 else 1.5)


@pytest.mark.parametrize("shape", [(1, 12, 8, 16), (1, 16, 8, 24), (1, 9, 9, 32), (1, 4, 4, 8)])
def test_softplus_behind_a_layer(shape: tuple[int, ...]) -> None:
    """At 16 bits, of more than eight rows."""
    b, x = graph_of(shape)
    size = shape[-1]
    weights = np.random.default_rng(1).normal(0, 0.2, (1, 1, size, size)).astype(np.float32)
    y = b.conv(x, b.const(weights), None, stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    b.graph.add_output(b("ElementWiseSoftplus", y, beta=1.0, threshold=20.0))
    assert apart(b, 16) < 8
