"""Factors of channels that no layer takes in have the width of the data, not one coarse scale of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import openqnn
from openqnn.ir import Array, Graph
from openqnn.runtime.metrics import sqnr
from tests.frontends.onnx.against_ort import model_of, node, rand
from tests.qnn.nets import needs_htp

CHANNELS = 48


def lonely_norm() -> Graph:
    """A batch norm behind a Relu and in front of one: its factors are of uneven size."""
    rng = np.random.default_rng(0)
    drawn = {k: rng.normal(size=CHANNELS).astype(np.float32) for k in "gbm"}
    constants: dict[str, Any] = {**drawn, "g": np.exp(drawn["g"]), "v": rng.uniform(0.5, 1.5, CHANNELS)}
    constants["v"] = constants["v"].astype(np.float32)
    nodes = [node("Relu", "x", "r"), node("BatchNormalization", "r g b m v", "n"), node("Relu", "n", "y")]
    return openqnn.convert(model_of(nodes, {"x": rand(1, CHANNELS, 8, 8)}, constants, 17))


def result(graph: Graph, sample: dict[str, Array], backend: str) -> Array:
    with openqnn.Session(graph, backend) as session:
        return session.run(sample)["y"]


@needs_htp
def test_16_bit_data_keep_their_accuracy() -> None:
    """They had 46 dB."""
    graph, data = lonely_norm(), [{"x": rand(1, CHANNELS, 8, 8, seed=i)} for i in range(6)]
    fixed = openqnn.quantize(graph, data, act_bw=16, weight_bw=8)
    assert "Batchnorm" not in {n.op for n in fixed.nodes}
    want = result(graph, data[0], "cpu")
    assert min(sqnr(want, result(fixed, data[0], b)) for b in ("cpu", "htp")) > 65


def test_factors_move_into_a_layer_through_reshapes() -> None:
    constants = {"w": rand(6, 5), "g": rand(5, seed=2), "there": np.array([2, 2, 5])}
    nodes = [node("MatMul", "x w", "h"), node("Reshape", "h there", "f"), node("Mul", "f g", "y")]
    graph = openqnn.convert(model_of(nodes, {"x": rand(4, 6)}, constants, 17))
    assert [n.op for n in graph.nodes] == ["FullyConnected", "Reshape"]
    x = rand(4, 6, seed=9)
    want = (x @ constants["w"] * constants["g"]).reshape(2, 2, 5)
    np.testing.assert_allclose(result(graph, {"x": x}, "cpu"), want, atol=1e-5)


def test_what_the_reshape_is_read_for_besides_stays() -> None:
    constants = {"w": rand(6, 5), "g": rand(5, seed=2), "rows": np.array([2, 2, 5])}
    nodes = [
        node("MatMul", "x w", "h"), node("Reshape", "h rows", "f"), node("Mul", "f g", "a"),
        node("Add", "a f", "y"),
    ]  # fmt: skip
    graph = openqnn.convert(model_of(nodes, {"x": rand(4, 6)}, constants, 17))
    x = rand(4, 6, seed=9)
    want = ((x @ constants["w"]) * (constants["g"] + 1)).reshape(2, 2, 5)
    np.testing.assert_allclose(result(graph, {"x": x}, "cpu"), want, atol=1e-5)
