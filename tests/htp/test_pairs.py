"""Quantize and Dequantize of one encoding: HTP leaves the pair out unless something stands between."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import Encoding, Given, Graph
from tests.passes.harness import graph_of
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

KINDS = {
    "ufixed8": "<scale=[0.01] offset=[-20] bits=8 symmetric=false>",
    "sfixed8": "<scale=[0.01] offset=[0] bits=8 symmetric=true>",
    "ufixed16": "<scale=[0.0001] offset=[-2000] bits=16 symmetric=false>",
}


def both(graph: Graph, x: np.ndarray) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for backend in ("cpu", "htp"):
        with openqnn.Session(graph, backend) as session:
            found.append(session.run({"x": x})["y"])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_in_floating_point_rounds_and_clips(kind: str) -> None:
    graph = graph_of(f"""
        input %x: float32[1,8,8,4]
        const %two: float32[] = [2.0]
        %a: float32[1,8,8,4] = ElementWiseMultiply(%x, %two)
        %q: {kind}[1,8,8,4] {KINDS[kind]} = Quantize(%a)
        %d: float32[1,8,8,4] = Dequantize(%q)
        %y: float32[1,8,8,4] = ElementWiseMultiply(%d, %two)
        output %y
    """)
    steps = np.linspace(-3, 5, 256)
    wanted, found = both(graph, ((np.rint(steps * 50) + 0.3) / 100).astype(np.float32).reshape(1, 8, 8, 4))
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_a_given_range_clips_between_nodes_that_stay_in_floats() -> None:
    graph = graph_of("""
        input %x: float32[1,4,4,16]
        %m: float32[1,1,1,16] = ReduceMean(%x) axes=[1, 2] keep_dims=true
        %r: float32[1,16] = Reshape(%m)
        %p: float32[1,16] = Relu(%r)
        %y: float32[1,16] = Tanh(%p)
        output %y
    """)
    said = Given("model", 8, encoding=Encoding.per_tensor(0.002, 0))
    graph.given = dict.fromkeys(("m", "r", "p"), said)
    made = openqnn.quantize(graph, float_fallback=True)
    x = np.broadcast_to(np.linspace(-1, 2, 16, dtype=np.float32), (1, 4, 4, 16)).copy()
    wanted, found = both(made, x)
    assert wanted.max() < np.tanh(0.52)
    np.testing.assert_allclose(found, wanted, atol=3e-3)
