"""Comparison, logic, choice and bits of ATen."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from openqnn.frontends.onnx import elementwise as onnx
from openqnn.frontends.torch.elementwise import Pair, finite
from openqnn.frontends.torch.promotion import result_type, to_type, together, typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value

_BOOL, _FLOAT = DType.BOOL_8, DType.FLOAT_32

# -- comparison and logic ------------------------------------------------------------------------------------

_COMPARISONS: dict[str, Pair] = {
    "eq": TorchTranslation.equal,
    "ne": TorchTranslation.not_equal,
    "lt": TorchTranslation.less,
    "le": TorchTranslation.less_equal,
    "gt": TorchTranslation.greater,
    "ge": TorchTranslation.greater_equal,
}
_LONG_NAMES = {
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "eq",
}  # fmt: skip


def _compare(pair: Pair) -> Callable[..., Value]:
    def compared(t: TorchTranslation, x: Term, other: Term) -> Value:
        dtype = result_type(x, other)
        wide = DType.INT_32 if dtype is _BOOL else dtype
        return pair(t, typed(t, x, wide), typed(t, other, wide))

    return compared


for _name, _pair in _COMPARISONS.items():
    translates(_name, _LONG_NAMES[_name])(_compare(_pair))


def _truth(t: TorchTranslation, x: Term) -> Value:
    return typed(t, x, _BOOL)


@translates("logical_and")
def logical_and(t: TorchTranslation, x: Value, other: Value) -> Value:
    return t.logical_and(_truth(t, x), _truth(t, other))


@translates("logical_or")
def logical_or(t: TorchTranslation, x: Value, other: Value) -> Value:
    return t.logical_or(_truth(t, x), _truth(t, other))


@translates("logical_xor")
def logical_xor(t: TorchTranslation, x: Value, other: Value) -> Value:
    return t.logical_xor(_truth(t, x), _truth(t, other))


@translates("logical_not")
def logical_not(t: TorchTranslation, x: Value) -> Value:
    return t.logical_not(_truth(t, x))


@translates("isnan")
def is_nan(t: TorchTranslation, x: Value) -> Value:
    return t.is_nan(x) if x.dtype.is_float else t.constant(np.zeros(x.shape, np.bool_))


@translates("isinf", "isposinf", "isneginf")
def is_inf(t: TorchTranslation, x: Value) -> Value:
    if not x.dtype.is_float:
        return t.constant(np.zeros(x.shape, np.bool_))
    return t.is_inf(x, detect_negative="pos" not in t.op, detect_positive="neg" not in t.op)


@translates("isfinite")
def isfinite(t: TorchTranslation, x: Value) -> Value:
    return finite(t, x) if x.dtype.is_float else t.constant(np.ones(x.shape, np.bool_))


@translates("isclose")
def is_close(
    t: TorchTranslation,
    x: Value,
    other: Value,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Value:
    a, b = together(t, (x, other), _FLOAT)
    near = t.less_equal(t.abs(t.sub(a, b)), t.add(t.mul(t.abs(b), rtol), atol))
    near = t.logical_or(t.logical_and(near, finite(t, b)), t.equal(a, b))
    if equal_nan:
        near = t.logical_or(near, t.logical_and(is_nan(t, a), is_nan(t, b)))
    return near


@translates("where")
def where(t: TorchTranslation, condition: Value, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    return t.select(_truth(t, condition), a, b)


@translates("masked_fill")
def masked_fill(t: TorchTranslation, x: Value, mask: Value, value: Term) -> Value:
    fill = typed(t, value, x.dtype)
    return t.select(_truth(t, mask), fill, x)


@translates("heaviside")
def heaviside(t: TorchTranslation, x: Value, values: Value) -> Value:
    zero = t.equal(x, 0)
    step = to_type(t, t.greater(x, 0), x.dtype)
    step = t.select(is_nan(t, x), x, step) if x.dtype.is_float else step
    return t.select(zero, typed(t, values, x.dtype), step)


# -- bits ----------------------------------------------------------------------------------------------------


@translates("bitwise_not")
def bitwise_not(t: TorchTranslation, x: Value) -> Value:
    return t.logical_not(x) if x.dtype is _BOOL else onnx.bitwise_not(t, x)


def _bitwise(on_bools: Pair, on_bits: Pair) -> Callable[..., Value]:
    def combined(t: TorchTranslation, x: Term, other: Term) -> Value:
        a, b = together(t, (x, other))
        return on_bools(t, a, b) if a.dtype is _BOOL else on_bits(t, a, b)

    return combined


translates("bitwise_and", "__and__")(_bitwise(TorchTranslation.logical_and, onnx.bitwise_and))
translates("bitwise_or", "__or__")(_bitwise(logical_or, onnx.bitwise_or))
translates("bitwise_xor", "__xor__")(_bitwise(TorchTranslation.logical_xor, onnx.bitwise_xor))


@translates("bitwise_left_shift", "__lshift__", "bitwise_right_shift", "__rshift__")
def shift(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    if a.dtype.is_float:
        factor = t.exp(t.mul(b, log(2)))
        return t.mul(a, factor) if "l" in t.op.replace("bitwise", "") else t.div(a, factor)
    return onnx.bit_shift(t, a, b, direction="LEFT" if "lshift" in t.op or "left" in t.op else "RIGHT")
