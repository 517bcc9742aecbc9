"""Copies of integers that join others: HTP would take them over as they are, whatever their encoding."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.htp.steps import steps_apart
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

NEAREST = {"interpolation_mode": "NEAREST", "transformation_mode": "ASYMMETRIC", "nearest_mode": "FLOOR"}


@pytest.mark.parametrize("width", [8, 16])
def test_what_is_enlarged_and_joined_is_converted_first(width: int) -> None:
    """As in detectors, which read the small tensor elsewhere, too: it has a range of its own."""
    graph = Graph("joined")
    x = graph.add_input("x", DType.FLOAT_32, (1, 8, 8, 16))
    y = graph.add_input("y", DType.FLOAT_32, (1, 16, 16, 16))
    b = Builder(graph)
    small = b("Tanh", x)
    large = b("Resize", small, shape=(1, 16, 16, 16), **NEAREST)
    graph.add_output(b("Concat", large, b("HardSwish", y), axis=3))
    graph.add_output(b("Sigmoid", small))
    rng = np.random.default_rng(1)
    ranges = {x: (-0.5, 1), y: (-4, 5)}
    data = [{v.name: rng.uniform(*ranges[v], v.shape).astype(np.float32) for v in ranges} for _ in range(4)]
    fixed = openqnn.quantize(graph, data, act_bw=width, algorithms=())
    with openqnn.Session(fixed) as ours, openqnn.Session(fixed, backend="htp") as htp:
        said, found = ours.run(data[0]), htp.run(data[0])
    joined = fixed.outputs[0]
    assert joined.encoding is not None
    apart = np.abs(said[joined.name] - found[joined.name]) / joined.encoding.scale[0]
    assert apart.max() < 1.5


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("moved", ["reshape", "transpose"])
def test_an_input_that_is_moved_and_joined_is_converted_first(moved: str, width: int) -> None:
    graph = Graph("joined")
    x = graph.add_input("x", DType.FLOAT_32, (1, 8, 8, 8))
    b = Builder(graph)
    y = b.reshape(x, (1, 64, 8)) if moved == "reshape" else b.transpose(x, (0, 2, 1, 3))
    graph.add_output(b.concat([y, b.add(b.mul(y, y), y)], y.rank - 1))
    data = [{"x": np.random.default_rng(i).normal(0, 1, x.shape).astype(np.float32)} for i in range(4)]
    assert steps_apart(graph, data, width) < 1.5
