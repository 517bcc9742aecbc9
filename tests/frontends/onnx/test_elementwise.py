"""Arithmetic and activations beyond ONNX's node tests."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

X = rand(2, 3, 4) * 3


@pytest.mark.parametrize(
    ("exponent", "op"),
    [
        (2.0, "ElementWiseMultiply"),
        (0.5, "ElementWiseSquareRoot"),
        (-1.0, "ElementWiseDivide"),
        (1.7, "ElementWisePower"),
    ],
)
def test_known_powers_are_simpler_ops(exponent: float, op: str) -> None:
    graph = same(node("Pow", "x e"), {"x": np.abs(X) + 0.1}, {"e": np.float32(exponent)})
    assert op in ops(graph)


def test_a_power_of_integers_stays_an_integer() -> None:
    x = np.arange(-3, 4, dtype=np.int32)
    same(node("Pow", "x e"), {"x": x, "e": np.full(7, 3, np.int32)})


@pytest.mark.parametrize(
    ("low", "high", "op"),
    [
        (0, 6, "Relu6"),
        (-1, 2, "ReluMinMax"),
        (0, None, "Relu"),
        (None, 2, "ElementWiseMinimum"),
        (2, -1, "ElementWiseMinimum"),
    ],
)
def test_clip_picks_the_op_that_says_it_best(low: float | None, high: float | None, op: str) -> None:
    bounds = {n: np.float32(v) for n, v in (("low", low), ("high", high)) if v is not None}
    names = " ".join(n if n in bounds else "_" for n in ("low", "high"))
    graph = same(node("Clip", f"x {names}"), {"x": X}, bounds)
    assert op in ops(graph)


def test_clip_before_opset_11_has_attributes() -> None:
    assert "Relu6" in ops(same(node("Clip", "x", min=0.0, max=6.0), {"x": X}, opset=10))


def test_clip_by_run_time_bounds() -> None:
    same(node("Clip", "x low high"), {"x": X, "low": np.float32(-0.5), "high": np.float32(0.5)})


@pytest.mark.parametrize("op", ["Erf", "Sinh", "Asinh", "Tan", "Softsign", "Mish"])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 4.0])
def test_composed_functions_hold_over_magnitudes(op: str, scale: float) -> None:
    x = np.linspace(-1, 1, 401, dtype=np.float32) * np.float32(scale)
    same(node(op, "x"), {"x": x}, tolerance=3e-6 if op != "Tan" else 1e-4)


def test_erf_at_zero_is_zero() -> None:
    same(node("Erf", "x"), {"x": np.zeros(3, np.float32)}, tolerance=0)


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_integers_keep_onnx_signs(fmod: int) -> None:
    a, b = np.asarray([-7, 7, -7, 7, -128, 6], np.int32), np.asarray([3, -3, -3, 3, 3, 3], np.int32)
    same(node("Mod", "a b", fmod=fmod), {"a": a, "b": b})


def test_integers_are_divided_towards_zero() -> None:
    same(node("Div", "a b"), {"a": np.asarray([-7, 7], np.int32), "b": np.asarray([2, -2], np.int32)})


def test_small_floats_are_true() -> None:
    same(node("Cast", "x", to=9), {"x": np.asarray([0.2, 0, -0.7], np.float32)})


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_inputs_broadcast(op: str, count: int) -> None:
    shapes = [(3, 4), (4,), (2, 1, 4), (1, 1)][:count]
    same(node(op, " ".join("abcd"[:count])), {n: rand(*s) for n, s in zip("abcd", shapes, strict=False)})


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_bits_of_every_width(op: str, dtype: str) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    a, b = (rng.integers(info.min, info.max, 50, dtype=dtype, endpoint=True) for _ in range(2))
    same(node(op, "a b"), {"a": a, "b": b})


@pytest.mark.parametrize(
    ("op", "inputs"),
    [("Gelu", "x"), ("QuickGelu", "x"), ("FastGelu", "x b"), ("BiasGelu", "x b"), ("FastGelu", "x")],
)
def test_activations_of_microsoft(op: str, inputs: str) -> None:
    same(node(op, inputs, domain="com.microsoft"), {"x": X}, {"b": rand(4)}, tolerance=1e-4)


@pytest.mark.parametrize("opset", [7, 10, 13])
def test_dropout_does_nothing(opset: int) -> None:
    graph = same([node("Dropout", "x", "d"), node("Relu", "d")], {"x": X}, opset=opset)
    assert list(ops(graph)) == ["Relu"]


def test_a_training_dropout_is_refused() -> None:
    constants = {"ratio": np.float32(0.5), "training": np.asarray(True)}
    with pytest.raises(UnsupportedError, match="at random"):
        import_onnx(model_of(node("Dropout", "x ratio training"), {"x": X}, constants, 13))


def test_scalars_have_no_axes() -> None:
    graph = same(node("Add", "a b"), {"a": np.float32(1).reshape(()), "b": np.float32(2).reshape(())})
    assert graph.outputs[0].shape == ()
