"""Curves behind layers in half precision: apart they are exact, joined to the layer they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.metrics import sqnr
from tests.qnn.nets import each_version, needs_htp

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


def against_htp(graph: Graph, htp: Path, data: np.ndarray, settings: dict[str, bool] | None) -> float:
    with openqnn.Session(graph) as ours, openqnn.Session(graph, htp, settings=settings) as theirs:
        (want,), (got,) = ours.run({"x": data}).values(), theirs.run({"x": data}).values()
    return sqnr(want, got)


@each_version("htp", "system")
@pytest.mark.parametrize("layer", ["Conv2d", "MatMul"])
@pytest.mark.parametrize("curve", CURVES)
def test_curves_are_as_fine_as_half_precision(folder: Path, curve: str, layer: str) -> None:
    graph, htp = behind_a_layer(curve, layer), folder / "libQnnHtp.so"
    data = np.random.default_rng(6).normal(0, CURVES[curve], graph.inputs[0].shape)
    data = data.astype(np.float16).astype(np.float32)
    assert against_htp(graph, htp, data, None) > 60
    assert against_htp(graph, htp, data, JOINED) < 48  # or there is no more need for any of this


def softplus(b: Builder, x: Value, **given: float) -> Value:
    return b("ElementWiseSoftplus", x, **{"beta": 1.0, "threshold": 20.0, **given})


def generic(b: Builder, x: Value) -> Value:
    return b("ElementWiseNeuron", x, operation="SOFTPLUS")


def mish(b: Builder, x: Value) -> Value:
    return b.mul(x, b.tanh(softplus(b, x)))


def both(b: Builder, x: Value) -> Value:
    """A softplus that is for a Tanh, and for something else."""
    soft = softplus(b, x)
    return b.add(soft, b.tanh(soft))


FORMS = {
    "softplus": softplus,
    "generic": generic,
    "beta": lambda b, x: softplus(b, x, beta=0.5),
    "mish": mish,
    "both": both,
    "mish with beta": lambda b, x: b.mul(x, b.tanh(softplus(b, x, beta=0.5))),
}


@needs_htp
@pytest.mark.parametrize("form", FORMS)
def test_softplus_is_as_fine_as_half_precision(form: str) -> None:
    """The library's own is off by up to a tenth, between -4 and -1."""
    data = np.linspace(-7, 12, 1024).astype(np.float16).astype(np.float32)[None]
    graph = Graph("soft")
    graph.add_output(FORMS[form](Builder(graph), graph.add_input("x", DType.FLOAT_32, data.shape)))
    with openqnn.Session(graph) as ours, openqnn.Session(graph, "htp") as theirs:
        (want,), (got,) = ours.run({"x": data}).values(), theirs.run({"x": data}).values()
    np.testing.assert_allclose(got, want, rtol=3e-3, atol=2e-5)


@needs_htp
def test_softplus_is_one_op_in_fixed_point() -> None:
    graph = Graph("soft")
    graph.add_output(mish(Builder(graph), graph.add_input("x", DType.FLOAT_32, (1, 64))))
    data = [{"x": np.random.default_rng(i).normal(0, 3, (1, 64)).astype(np.float32)} for i in range(4)]
    fixed = openqnn.quantize(graph, data, act_bw=8)
    assert len(fixed.nodes) < 6
