"""Room beyond what calibration saw."""

from __future__ import annotations

import numpy as np

import openqnn
from openqnn.api.quantize import quantize
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.quant.encode import limits
from openqnn.quant.widen_ranges import FEW, widened
from tests.frontends.onnx.against_ort import model_of, node, rand


def test_few_numbers_say_nothing_of_an_end_near_zero() -> None:
    assert widened(-0.4, 0.05, 16, 60) == (-0.8, 0.05 + 0.4)
    assert widened(-0.4, 0.05, 16, FEW) == (-0.8, 0.1)


def test_what_has_one_sign_keeps_it() -> None:
    """HTP leaves a Relu to the end of the range."""
    assert widened(0.0, 2.0, 16, 60) == (0.0, 4.0)


def test_a_score_that_was_always_below_zero_is_not_clipped_above() -> None:
    graph = Graph("scores")
    x = graph.add_input("x", DType.FLOAT_32, (1, 4))
    graph.add_output(Builder(graph, "test").mul(x, 0.5))
    data = [{"x": np.array([[-1, -0.3, -0.7, 0.01]], np.float32)}]
    made = quantize(graph, data, act_bw=16, backend="cpu")
    coded = made.outputs[0].encoding
    assert coded is not None
    assert limits(coded)[1] > 0.4


def test_what_16_bits_leave_nothing_of_is_the_quietest_level_that_was_seen() -> None:
    """Zero times zero is minus infinity in decibels: with room below it would be twice as far away."""
    nodes = [
        node("MatMul", "x w", "h"), node("Mul", "h h", "p"), node("Max", "p e", "m"), node("Log", "m", "l"),
        node("Div", "l ten", "y"),
    ]  # fmt: skip
    constants = {"w": rand(8, 32), "e": np.float32(1e-12), "ten": np.float32(np.log(10))}
    graph = openqnn.convert(model_of(nodes, {"x": rand(64, 8)}, constants, 17))
    data = [{"x": rand(64, 8, seed=i)} for i in range(4)]
    silence = {"x": np.zeros((64, 8), np.float32)}
    with openqnn.Session(graph, "cpu") as real, openqnn.Session(quantize(graph, data, act_bw=16)) as made:
        seen = [real.run(d)["y"] for d in data]
        quietest = made.run(silence)["y"].min()
        assert abs(quietest - min(float(s.min()) for s in seen)) < 0.01
        assert made.run({"x": data[0]["x"] * 10})["y"].max() > max(float(s.max()) for s in seen) + 0.5
