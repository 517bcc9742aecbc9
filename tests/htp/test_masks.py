"""Masked attention in fixed point: numbers that Softmax leaves out take no steps away from the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array, DType, Graph, Value
from openqnn.ops import Builder
from openqnn.quant.plan import CUT
from openqnn.quant.recipe import Scheme
from openqnn.runtime.metrics import sqnr
from tests.qnn.nets import needs_htp

pytestmark = [needs_htp, pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")]

LEAST = float(np.finfo(np.float32).min)
TOKENS, WIDTH = 24, 16
CAUSAL = np.tril(np.ones((TOKENS, TOKENS), bool))


def added(b: Builder, scores: Value) -> Value:
    return b.add(scores, b.const(np.where(CAUSAL, 0, LEAST).astype(np.float32)))


def by_input(b: Builder, scores: Value) -> Value:
    mask = b.graph.add_input("mask", DType.FLOAT_32, (1, 1, TOKENS))
    return b.add(scores, b.mul(b.sub(b.const(np.array([1], np.float32)), mask), LEAST))


def selected(b: Builder, scores: Value) -> Value:
    return b.select(b.const(CAUSAL[None]), scores, b.const(np.array([-np.inf], np.float32)))


def scaled_after(b: Builder, scores: Value) -> Value:
    return b.mul(b.add(scores, b.const(np.where(CAUSAL, 0, -1e9).astype(np.float32))), 0.5)


def attention(masked: Callable[[Builder, Value], Value]) -> Graph:
    graph = Graph("attention")
    shape = (1, TOKENS, WIDTH)
    q, k, v = (graph.add_input(name, DType.FLOAT_32, shape) for name in "qkv")
    b = Builder(graph, "test")
    scores = b.mul(b.matmul(q, b.transpose(k, (0, 2, 1))), 0.25)
    graph.add_output(b.matmul(b.softmax(masked(b, scores), 2), v))
    return graph


def sample(graph: Graph, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    mask = (np.arange(TOKENS) < rng.integers(10, TOKENS)).astype(np.float32).reshape(1, 1, TOKENS)
    data = {n: rng.normal(0, 1.5, (1, TOKENS, WIDTH)).astype(np.float32) for n in "qkv"} | {"mask": mask}
    return {value.name: data[value.name] for value in graph.inputs}


@pytest.mark.parametrize("masked", [added, by_input, selected, scaled_after])
@pytest.mark.parametrize(
    ("choices", "least"),
    [
        ({"act_bw": 8}, 27.0),
        ({"act_bw": 8, "headroom": False}, 27.0),
        ({"act_bw": 16}, 60.0),
        ({"act_bw": 16, "act": Scheme(symmetric=True)}, 60.0),
    ],
)
def test_masks_take_no_steps_away(
    masked: Callable[[Builder, Value], Value], choices: dict[str, Any], least: float
) -> None:
    graph = attention(masked)
    x = sample(graph, 99)
    fixed = openqnn.quantize(graph, [sample(graph, i) for i in range(8)], hold_back=False, **choices)
    softmax = next(n for n in fixed.nodes if n.op == "Softmax")
    assert fixed.provenance[softmax.x(0).name] == CUT
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as ours:
        (want,), (said,) = real.run(x).values(), ours.run(x).values()
    with openqnn.Session(fixed, backend="htp") as htp:
        (found,) = htp.run(x).values()
    assert sqnr(want, found) > least
    assert sqnr(want, said) > least
