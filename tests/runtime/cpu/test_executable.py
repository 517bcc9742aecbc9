"""The built-in backend computes the graph's own numbers, whatever ONNX Runtime would like to make of them."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import run_graph


def _quantized_conv(dtype: DType, offset: int) -> tuple[Graph, np.ndarray, Encoding, Encoding]:
    """Quantize, Dequantize, Conv2d with float weights that no 8-bit scheme hits, and the same again."""
    rng = np.random.default_rng(0)
    graph = Graph("qdq")
    b = Builder(graph)
    weights = rng.normal(size=(1, 1, 16, 16)).astype(np.float32)
    weights[..., 0] *= 100  # one channel far larger: a scale for the whole tensor would wipe out the others
    inside, outside = Encoding.per_tensor(0.02, offset), Encoding.per_tensor(0.05, offset)
    x = graph.add_input("x", DType.FLOAT_32, (1, 8, 8, 16))
    real = {"dtype": DType.FLOAT_32}
    x = b("Dequantize", b("Quantize", x, dtype=dtype, encoding=inside), **real)
    y = b("Conv2d", x, b.const(weights), stride=(1, 1), pad_amount=((0, 0), (0, 0)))
    graph.add_output(b("Dequantize", b("Quantize", y, dtype=dtype, encoding=outside), **real))
    return graph, weights, inside, outside


@pytest.mark.parametrize(("dtype", "offset"), [(DType.UFIXED_8, -128), (DType.SFIXED_8, 0)])
def test_float_weights_between_quantized_activations_stay_as_they_are(dtype: DType, offset: int) -> None:
    graph, weights, inside, outside = _quantized_conv(dtype, offset)
    x = np.random.default_rng(1).normal(size=(1, 8, 8, 16)).astype(np.float32)
    real = inside.dequantize(inside.quantize(x, dtype.signed)) @ weights[0, 0]
    want = outside.dequantize(outside.quantize(real, dtype.signed))
    (got,) = run_graph(graph, {"x": x}).values()
    assert np.abs(got - want).max() <= 0.05 * 1.001, "at most one step, where rounding decides"
    assert (np.abs(got - want) < 0.001).mean() > 0.99
