"""Quantized tensors: encodings where scales are known, arithmetic where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from openqnn.ir import DType
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

X = rand(3, 4, 5) * 3
KINDS = ["uint8", "int8", "uint16", "int16"]


def encoding(kind: str, count: int = 0) -> dict[str, np.ndarray]:
    scale = (
        np.full(count, 0.02, np.float32) * np.arange(1, count + 1, dtype=np.float32)
        if count
        else np.float32(0.02)
    )
    zero = np.full(count, 3, kind) if count else np.asarray(100, kind)
    return {"s": np.asarray(scale), "z": zero}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [True, False])
def test_quantized_numbers_are_plain_integers_outside(kind: str, known: bool) -> None:
    given = encoding(kind)
    graph = same(
        node("QuantizeLinear", "x s z"),
        {"x": X, **({} if known else given)},
        given if known else {},
        tolerance=0,
    )
    assert graph.outputs[0].dtype.numpy == kind
    assert ops(graph)["Quantize"] == int(known)


@pytest.mark.parametrize("kind", [*KINDS, "int32"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("known", [True, False])
def test_dequantized(kind: str, axis: int | None, known: bool) -> None:
    info = np.iinfo(kind)
    x = np.random.default_rng(0).integers(max(info.min, -9999), min(info.max, 9999), (3, 4, 5)).astype(kind)
    given = encoding(kind, 0 if axis is None else x.shape[axis])
    if kind == "int32":
        given["z"] = np.zeros_like(given["z"])
    dequantize = node("DequantizeLinear", "x s z", **({} if axis is None else {"axis": axis}))
    graph = same(dequantize, {"x": x, **({} if known else given)}, given if known else {})
    assert ops(graph)["Dequantize"] == int(known)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
def test_pairs_of_onnx_runtime(kind: str) -> None:
    """Its quantizer writes 16 bits so into models that are older than those of ONNX itself."""
    ms = {"domain": "com.microsoft"}
    nodes = [node("QuantizeLinear", "x s z", "q", **ms), node("DequantizeLinear", "q s z", **ms)]
    found = ops(same(nodes, {"x": X}, encoding(kind), opset=13))
    assert found["Quantize"] == found["Dequantize"] == 1


def test_a_pair_keeps_the_fixed_point_value() -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), node("Relu", "d")]
    graph = same(nodes, {"x": X}, encoding("uint8"))
    dequantize = next(n for n in graph.nodes if n.op == "Dequantize")
    fixed = dequantize.x(0)
    assert fixed.dtype is DType.UFIXED_8 and fixed.encoding is not None and fixed.encoding.offset == (-100,)
    assert fixed.producer is not None and fixed.producer.op == "Quantize"


def test_quantized_data_moves_as_integers() -> None:
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("Transpose", "q", "t", perm=[2, 0, 1]),
        node("DequantizeLinear", "t s z", "y"),
    ]
    same(nodes, {"x": X}, encoding("uint8"))


def test_known_weights_are_fixed_point_along_their_axis() -> None:
    w = np.random.default_rng(0).integers(-128, 127, (6, 80, 3, 3)).astype(np.int8)
    scale = np.linspace(0.01, 0.05, 6, dtype=np.float32)
    nodes = [node("DequantizeLinear", "w s z", "d", axis=0), node("Conv", "x d")]
    graph = same(
        nodes, {"x": rand(1, 80, 8, 8)}, {"w": w, "s": scale, "z": np.zeros(6, np.int8)}, tolerance=1e-4
    )
    weight = next(v for v in graph.constants() if v.dtype is DType.SFIXED_8)
    assert weight.encoding is not None and weight.encoding.axis == 0 and weight.encoding.symmetric
    assert weight.data is not None and weight.data.base is not None


def test_numbers_beyond_the_range_saturate() -> None:
    x = np.float32([-1e9, -3, 2.5 * 0.02, 3.5 * 0.02, 1e9])
    same(node("QuantizeLinear", "x s z"), {"x": x}, encoding("int8"), tolerance=0)


def test_dynamic_quantization() -> None:
    same(node("DynamicQuantizeLinear", "x", "y s z"), {"x": X}, tolerance=1e-6)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_products_of_quantized_matrices(kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 100, s).astype(kind) for s in ((4, 6), (6, 5)))
    constants = {"b": b, "as": np.float32(0.02), "az": np.asarray(9, kind), "bs": np.float32(0.03)}
    constants |= {"bz": np.asarray(4, kind), "ys": np.float32(0.3), "yz": np.asarray(10, kind)}
    same(node("QLinearMatMul", "a as az b bs bz ys yz"), {"a": a}, constants, tolerance=0)


def test_blocks_that_do_not_divide_are_refused() -> None:
    constants = {"s": np.ones((3, 2, 5), np.float32), "z": np.zeros((3, 2, 5), np.uint8)}
    model = model_of(node("QuantizeLinear", "x s z", axis=1, block_size=3), {"x": X}, constants, 21)
    with pytest.raises(UnsupportedError, match="do not divide"):
        import_onnx(model)
