"""Layers that libQnnHtp takes in other forms, or in floating point only: grouped, cubic, joined with such."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.htp.test_clipped_sums import noise
from tests.qnn.nets import needs_htp

pytestmark = [needs_htp, pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")]

SHAPE = (1, 12, 12, 24)


@pytest.mark.parametrize(("width", "least"), [(8, 30), (16, 36)])
@pytest.mark.parametrize("group", [4, 24])
def test_groups_of_transposed_filters(group: int, width: int, least: float) -> None:
    """A scale for each channel of a group did not fit the bias, which has all channels."""
    graph, rng = Graph("groups"), np.random.default_rng(0)
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    b = Builder(graph)
    weights = rng.normal(0, 0.2, (4, 4, 24, 24 // group)).astype(np.float32)
    bias = rng.normal(0, 0.2, 24).astype(np.float32)
    params = {"stride": (2, 2), "pad_amount": ((1, 1), (1, 1)), "group": group}
    graph.add_output(b("TransposeConv2d", x, b.const(weights), b.const(bias), **params))
    assert noise(graph, act_bw=width) > least


@pytest.mark.parametrize("channels", [24, 48])
@pytest.mark.parametrize("apart", [50, 150, 200])
def test_small_filters_beside_large_ones(apart: float, channels: int) -> None:
    """With 24 channels, large ones were huge numbers in 16 bits."""
    graph, rng = Graph("apart"), np.random.default_rng(0)
    x = graph.add_input("x", DType.FLOAT_32, (1, 12, 12, channels))
    b = Builder(graph)
    weights = rng.normal(0, 0.2, (3, 3, 1, channels)).astype(np.float32)
    weights /= np.abs(weights).max(axis=(0, 1, 2))
    weights[..., 5] /= apart
    params = {"stride": (2, 2), "pad_amount": ((1, 1), (1, 1))}
    graph.add_output(b("DepthWiseConv2d", x, b.const(weights), **params))
    assert noise(graph, act_bw=16) > 40


@pytest.mark.parametrize(("width", "least"), [(8, 33), (16, 65)])
@pytest.mark.parametrize("mode", ["ALIGN_CORNERS", "HALF_PIXEL"])
def test_cubic_neighbours(mode: str, width: int, least: float) -> None:
    """In 16 bits they are other numbers (-14 dB), but not in floating point."""
    graph = Graph("cubic")
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    how = {"interpolation_mode": "CUBIC", "transformation_mode": mode}
    graph.add_output(Builder(graph)("Resize", x, shape=(1, 24, 24, 24), **how))
    assert noise(graph, act_bw=width) > least


def test_what_floats_are_joined_with_has_a_known_range() -> None:
    """Tanh of 16 bits has its zero in the middle: with others it is computed in floats, and is joined so."""
    graph, rng = Graph("floats"), np.random.default_rng(0)
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    b = Builder(graph)
    parts = [b(op, x) for op in ("Relu6", "Tanh")]
    weights = b.const(rng.normal(0, 0.2, (1, 1, 48, 8)).astype(np.float32))
    layer = {"stride": (1, 1), "pad_amount": ((0, 0), (0, 0))}
    graph.add_output(b("Conv2d", b("Concat", *parts, axis=3), weights, **layer))
    assert noise(graph, act_bw=16) > 36
