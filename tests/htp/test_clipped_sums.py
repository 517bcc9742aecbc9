"""Sums of what was clipped, and filters with gaps, which libQnnHtp computes wrong as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.metrics import sqnr
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = (1, 12, 12, 32)
Made = Callable[[Builder, Value, Value], Value]


def times(b: Builder, x: Value, factor: float) -> Value:
    return b("ElementWiseMultiply", x, b.const(np.full((1, 1, 1, 1), factor, np.float32)))


def flat(b: Builder, x: Value) -> Value:
    return b("Reshape", b("Relu", b("Reshape", x, shape=SHAPE[1:])), shape=SHAPE)


SUMS: dict[str, Made] = {
    "first": lambda b, x, y: b("ElementWiseAdd", b("Relu", times(b, x, 0.5)), times(b, y, 1.3)),
    "second": lambda b, x, y: b("ElementWiseAdd", times(b, x, 0.5), b("Relu6", times(b, y, 1.3))),
    "both": lambda b, x, y: b("ElementWiseAdd", b("Relu", times(b, x, 0.5)), b("Relu", times(b, y, 1.3))),
    "reshaped": lambda b, x, y: b("ElementWiseAdd", flat(b, times(b, x, 0.5)), times(b, y, 1.3)),
    "larger": lambda b, x, y: b("ElementWiseAdd", b("Relu", b("ElementWiseSubtract", x, y)), y),
}


def noise(graph: Graph, **choices: Any) -> float:
    """What libQnnHtp makes of a graph in fixed point, beside real numbers, in dB."""
    rng = np.random.default_rng(3)
    data = [
        {v.name: rng.normal(0.5, 1.5, v.shape).astype(np.float32) for v in graph.inputs} for _ in range(3)
    ]
    fixed = openqnn.quantize(graph, data, algorithms=(), **choices)
    with openqnn.Session(graph) as real, openqnn.Session(fixed, backend="htp") as htp:
        (want,), (found,) = (session.run(data[0]).values() for session in (real, htp))
    return sqnr(want, found)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("name", SUMS)
def test_clips_hold_within_sums(name: str, width: int) -> None:
    """It would add the unclipped tensors: 15 dB, and 2 dB where a difference and its subtrahend are added."""
    graph = Graph("sum")
    x, y = (graph.add_input(name, DType.FLOAT_32, SHAPE) for name in "xy")
    graph.add_output(SUMS[name](Builder(graph), x, y))
    assert noise(graph, act_bw=width) > (33 if width == 8 else 70)


@pytest.mark.parametrize(
    ("op", "apart", "stride", "least"),
    [
        ("Conv2d", (2, 2), (1, 1), 36),
        ("Conv2d", (1, 4), (1, 1), 36),
        ("Conv2d", (2, 2), (2, 2), 65),
        ("DepthWiseConv2d", (2, 2), (1, 1), 65),
        ("DepthWiseConv2d", (3, 1), (1, 1), 40),
    ],
)
@pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")
def test_gaps_between_taps(op: str, apart: tuple[int, int], stride: tuple[int, int], least: float) -> None:
    """With weights of 16 bits it gives 15 to 37 dB where these have 8 now."""
    graph, rng = Graph("gaps"), np.random.default_rng(0)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 32))
    b = Builder(graph)
    shape = (3, 3, 32, 16) if op == "Conv2d" else (3, 3, 1, 32)
    weights = b.const(rng.normal(0, 0.1, shape).astype(np.float32))
    y = b(op, b("Relu", x), weights, stride=stride, pad_amount=tuple((d, d) for d in apart), dilation=apart)
    graph.add_output(y)
    assert noise(graph, act_bw=16, weight_bw=16) > least
