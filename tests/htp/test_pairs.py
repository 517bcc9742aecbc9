"""Where a graph changes between floating and fixed point: what HTP would leave out, or add to one element."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Encoding, Given, Graph
from openqnn.ops import Builder
from openqnn.targets.htp.qdq_pairs import spread_numbers
from tests.htp.steps import steps_apart
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


@pytest.mark.parametrize("shape", [(1, 64, 64), (64, 32), (1, 8, 8, 16)])
@pytest.mark.parametrize("op", ["ElementWiseMultiply", "ElementWiseDivide"])
def test_a_number_behind_a_quantized_product_is_added_to_all(op: str, shape: tuple[int, ...]) -> None:
    sizes, unit = list(shape), "<scale=[0.02] offset=[-130] bits=8 symmetric=false>"
    graph = graph_of(f"""
        input %x: float32{sizes}
        %t: float32{sizes} = Tanh(%x)
        %p: float32{sizes} = {op}(%x, %t)
        %q: ufixed8{sizes} {unit} = Quantize(%p)
        const %one: ufixed8[] <scale=[0.005] offset=[0] bits=8 symmetric=false> = [200]
        %s: ufixed8{sizes} {unit} = ElementWiseAdd(%q, %one)
        const %half: ufixed8[] <scale=[0.0025] offset=[0] bits=8 symmetric=false> = [200]
        %y: ufixed8{sizes} {unit.replace("0.02", "0.01")} = ElementWiseMultiply(%s, %half)
        output %y
    """)
    spread_numbers(graph)
    x = np.random.default_rng(0).uniform(0.2, 1, shape).astype(np.float32)
    wanted, found = both(graph, x)
    assert np.mean(np.abs(found - wanted) <= 0.0101) > 0.99


def test_an_error_function_in_single_ops() -> None:
    """Behind a layer HTP takes them for one op as soon as they are halved, and computes another."""
    rng = np.random.default_rng(0)
    weights = {"w": (rng.normal(size=(64, 32)) * 0.2).astype(np.float32)}
    graph = graph_of(
        """
        input %x: float32[64,32]
        const %w: float32[64,32] = data
        %r: float32[64,64] = FullyConnected(%x, %w) keep_dims=false
        %v: float32[1,64,64] = Reshape(%r)
        const %root: float32[] = [1.4142135]
        %a: float32[1,64,64] = ElementWiseDivide(%v, %root)
        %b: float32[1,64,64] = ElementWiseMultiply(%a, %root)
        %c: float32[1,64,64] = ElementWiseAbs(%b)
        const %least: float32[] = [0.001]
        %d: float32[1,64,64] = ElementWiseMaximum(%c, %least)
        %e: float32[1,64,64] = Gelu(%d)
        %f: float32[1,64,64] = ElementWiseDivide(%e, %d)
        const %two: float32[] = [2.0]
        %g: float32[1,64,64] = ElementWiseMultiply(%f, %two)
        const %one: float32[] = [1.0]
        %h: float32[1,64,64] = ElementWiseSubtract(%g, %one)
        %i: float32[1,64,64] = ElementWiseDivide(%b, %d)
        %j: float32[1,64,64] = ElementWiseMultiply(%h, %i)
        %k: float32[1,64,64] = ElementWiseAdd(%j, %one)
        %l: float32[1,64,64] = Relu(%k)
        %m: float32[1,64,64] = ElementWiseMultiply(%v, %l)
        const %half: float32[] = [0.5]
        %y: float32[1,64,64] = ElementWiseMultiply(%m, %half)
        output %y
        """,
        weights,
    )
    x = rng.normal(size=(64, 32)).astype(np.float32)
    wanted, found = both(openqnn.quantize(graph, [{"x": x}], act_bw=8), x)
    assert np.sum((found - wanted) ** 2) < np.sum(wanted**2) / 1000


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("shape", [(16, 32), (1, 16, 32), (1, 2, 8, 32)])
def test_a_number_behind_a_matrix_is_for_all_channels(shape: tuple[int, ...], width: int) -> None:
    """It became the bias of the first."""
    rng = np.random.default_rng(3)
    graph = Graph("number")
    x = graph.add_input("x", DType.FLOAT_32, shape)
    b = Builder(graph)
    y = b("MatMul", x, b.const(rng.normal(0, 0.2, (32, 32)).astype(np.float32)))
    graph.add_output(b.mul(b.add(y, 0.3), 0.5))
    data = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(4)]
    assert steps_apart(graph, data, width) < 2.5
