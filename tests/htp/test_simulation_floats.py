"""What a quantized graph leaves in floats: libQnnHtp has half precision there, as the simulation does."""

from __future__ import annotations

import numpy as np

import openqnn
from openqnn.ir import Array, DType, Graph
from openqnn.ops import Builder
from openqnn.quant.recipe import FLOAT
from openqnn.runtime.metrics import sqnr
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

LAYERS = 5


def layers() -> Graph:
    """Matrices one after the other."""
    rng, graph = np.random.default_rng(0), Graph("layers")
    b, x = Builder(graph), graph.add_input("x", DType.FLOAT_32, (64, 96))
    for number in range(LAYERS):
        b.stem = f"layer{number}"
        x = b.relu(b("FullyConnected", x, b.const(rng.normal(0, 0.14, (96, 96)).astype(np.float32))))
    graph.add_output(x)
    return graph


def test_floats_of_a_mixed_graph_have_half_precision() -> None:
    """All but the last layer: without that they are exact, and 16 bits have over 80 dB."""
    graph = layers()
    samples = [np.random.default_rng(i).standard_normal((64, 96)).astype(np.float32) for i in range(2)]
    floating = {node.name: FLOAT for node in graph.nodes[:-1]}
    fixed = openqnn.quantize(graph, samples, act_bw=16, widths=floating)
    assert {v.dtype for v in fixed.values() if v.dtype.is_float} == {DType.FLOAT_32}
    results: list[Array] = []
    for made, backend in ((graph, "cpu"), (fixed, "cpu"), (fixed, "htp")):
        with openqnn.Session(made, backend) as session:
            results += session.run({"x": samples[0]}).values()
    real, ours, theirs = results
    assert sqnr(real, theirs) < 70
    assert abs(sqnr(real, ours) - sqnr(real, theirs)) < 0.5


def test_floats_of_a_float_graph_are_whole() -> None:
    graph, x = layers(), np.random.default_rng(1).standard_normal((64, 96)).astype(np.float32)
    with openqnn.Session(graph) as session:
        (found,) = session.run({"x": x}).values()
    for node in graph.nodes:
        if node.op == "FullyConnected":
            assert node.x(1).data is not None
            x = np.maximum(x @ node.x(1).data.T, 0)
    np.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-5)
