"""Curves behind layers in half precision: apart they are exact, joined to the layer they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.qnn.nets import each_version

CHANNELS, ROWS = 32, 64
CURVES = {"Tanh": 0.2, "Gelu": 1.0}  # with inputs for which they are the coarsest
JOINED = {"advanced_activation_fusion": True}


def behind_a_layer(curve: str, layer: str) -> Graph:
    rng = np.random.default_rng(5)
    graph, width = Graph(curve), 0.3 / np.sqrt(CHANNELS)
    weights = rng.normal(0, width, (CHANNELS, CHANNELS)).astype(np.float32)
    shape = (1, 8, 8, CHANNELS) if layer == "Conv2d" else (ROWS, CHANNELS)
    x = graph.add_input("x", DType.FLOAT_32, shape)
    b = Builder(graph)
    if layer == "Conv2d":
        y = b(layer, x, b.const(weights[None, None]), stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    else:
        y = b(layer, x, b.const(weights))
    graph.add_output(b(curve, y))
    return graph


def decibels(graph: Graph, htp: Path, data: np.ndarray, settings: dict[str, bool] | None) -> float:
    with openqnn.Session(graph) as ours, openqnn.Session(graph, htp, settings=settings) as theirs:
        (want,), (got,) = ours.run({"x": data}).values(), theirs.run({"x": data}).values()
    return float(10 * np.log10(np.square(want).sum() / np.square(want - got).sum()))


@each_version("htp", "system")
@pytest.mark.parametrize("layer", ["Conv2d", "MatMul"])
@pytest.mark.parametrize("curve", CURVES)
def test_curves_are_as_fine_as_half_precision(folder: Path, curve: str, layer: str) -> None:
    graph, htp = behind_a_layer(curve, layer), folder / "libQnnHtp.so"
    data = np.random.default_rng(6).normal(0, CURVES[curve], graph.inputs[0].shape)
    data = data.astype(np.float16).astype(np.float32)
    assert decibels(graph, htp, data, None) > 60
    assert decibels(graph, htp, data, JOINED) < 48  # or there is no more need for any of this
