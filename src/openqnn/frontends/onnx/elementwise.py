"""ONNX ops that work on each element by itself: arithmetic, comparison, logic, bits, casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from math import inf, pi, sqrt

import numpy as np

from openqnn.frontends.compositions import power
from openqnn.frontends.onnx.element_types import onnx_dtype
from openqnn.frontends.onnx.table import rows, translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value

rows({
    "Abs": "ElementWiseAbs",
    "Add": "ElementWiseAdd",
    "And": "ElementWiseAnd",
    "Asin": "ElementWiseAsin",
    "Atan": "ElementWiseAtan",
    "Ceil": "ElementWiseCeil",
    "Cos": "ElementWiseCos",
    "Div": "ElementWiseDivide",
    "Equal": "ElementWiseEqual",
    "Exp": "ElementWiseExp",
    "Floor": "ElementWiseFloor",
    "Greater": "ElementWiseGreater",
    "GreaterOrEqual": "ElementWiseGreaterEqual",
    "IsNaN": "IsNan",
    "Less": "ElementWiseLess",
    "LessOrEqual": "ElementWiseLessEqual",
    "Log": "ElementWiseLog",
    "Mul": "ElementWiseMultiply",
    "Neg": "ElementWiseNeg",
    "Not": "ElementWiseNot",
    "Or": "ElementWiseOr",
    "Round": "ElementWiseRound",
    "Sign": "ElementWiseSign",
    "Sin": "ElementWiseSin",
    "Sqrt": "ElementWiseSquareRoot",
    "Sub": "ElementWiseSubtract",
    "Xor": "ElementWiseXor",
})  # fmt: skip


# -- arithmetic ----------------------------------------------------------------------------------------------


@translates("Reciprocal")
def reciprocal(t: Translation, x: Value) -> Value:
    return t.div(1.0, x)


def _known_scalar(value: Value) -> float | None:
    return float(value.data.reshape(())) if value.data is not None and value.size == 1 else None


@translates("Pow")
def pow_(t: Translation, x: Value, exponent: Value) -> Value:
    """The result has the type of the base; QNN raises floats only."""
    known = _known_scalar(exponent)
    if (
        known in (1, 2, 3, 0.5, -0.5, -1)
        and exponent.rank <= x.rank
        and (known in (1, 2, 3) or x.dtype.is_float)
    ):
        return power(t, x, known) if known != 1 else t.reshape(x, x.shape)
    if x.dtype.is_float:
        return t.pow(x, t.cast(exponent, x.dtype))
    y = t.pow(t.cast(x, DType.FLOAT_32), t.cast(exponent, DType.FLOAT_32))
    return t.cast(t.round(y) if exponent.dtype.is_integer else y, x.dtype)


@translates("Mod")
def mod(t: Translation, a: Value, b: Value, *, fmod: int = 0) -> Value:
    """QNN's remainders have the sign of the divisor, as ONNX's Mod has; with fmod that of the dividend."""
    rest = t("ElementWiseFmod", a, b) if a.dtype.is_float else t.mod(a, b)
    zero = t.scalar(0, a)
    differ = None
    if a.dtype.signed:
        differ = t.logical_xor(t.less(a, zero), t.less(b, zero))
        inexact = t.not_equal(rest, zero)
        if fmod:
            rest = t.select(t.logical_and(differ, inexact), t.sub(rest, b), rest)
    finite = b.data is not None and bool(np.isfinite(b.data).all())
    if not a.dtype.is_float or finite or differ is None:
        return rest
    # By infinity everything finite leaves itself, or infinity where only that has the right sign.
    left = a if fmod else t.select(t.logical_and(differ, _not_zero(t, a)), b, a)
    endless = t.logical_and(t.is_inf(b), t.logical_not(t.is_inf(a)))
    return t.select(endless, left, rest)


def _not_zero(t: Translation, x: Value) -> Value:
    return t.not_equal(x, 0)


@translates("Max")
def max_(t: Translation, *values: Value) -> Value:
    return _folded(t, t.maximum, values)


@translates("Min")
def min_(t: Translation, *values: Value) -> Value:
    return _folded(t, t.minimum, values)


@translates("Sum")
def sum_(t: Translation, *values: Value) -> Value:
    return _folded(t, t.add, values)


@translates("Mean")
def mean(t: Translation, *values: Value) -> Value:
    total = _folded(t, t.add, values)
    return t.div(total, float(len(values))) if len(values) > 1 else total


def _folded(t: Translation, pair: Callable[[Value, Value], Value], values: tuple[Value, ...]) -> Value:
    if not values or any(v is None for v in values):
        t.refuse("an input is missing")
    return fold(pair, values)


@translates("Clip")
def clip_by_attributes(t: Translation, x: Value, *, max: float = inf, min: float = -inf) -> Value:
    return clip_to(t, x, min, max)


@translates("Clip", since=11)
def clip(t: Translation, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    bounds = [None if v is None else _known_scalar(v) for v in (low, high)]
    known = all(v is None or b is not None for v, b in zip((low, high), bounds, strict=True))
    if known and x.dtype.is_float:
        return clip_to(
            t, x, *(default if b is None else b for b, default in zip(bounds, (-inf, inf), strict=True))
        )
    y = x if low is None else t.maximum(x, t.reshape(low, ()))
    return y if high is None else t.minimum(y, t.reshape(high, ()))


def clip_to(t: Translation, x: Value, low: float, high: float) -> Value:
    """The op that says a range best. A range turned around gives its upper end, as in ONNX."""
    if (low, high) == (0, 6):
        return t.relu6(x)
    if low == 0 and high == inf:
        return t.relu(x)
    largest = float(np.finfo(x.dtype.numpy).max)
    low, high = (-inf if low <= -largest else low), (inf if high >= largest else high)
    if -inf < low <= high < inf:
        return t.clip(x, low, high)
    y = x if low == -inf else t.maximum(x, low)
    return y if high == inf else t.minimum(y, high)


# -- trigonometry --------------------------------------------------------------------------------------------


@translates("Tan")
def tan(t: Translation, x: Value) -> Value:
    return t.div(t.sin(x), t.cos(x))


@translates("Acos")
def acos(t: Translation, x: Value) -> Value:
    return t.sub(pi / 2, t.asin(x))


@translates("Cosh")
def cosh(t: Translation, x: Value) -> Value:
    both = t.add(t.exp(x), t.exp(t.neg(x)))
    return t.mul(both, 0.5)


@translates("Sinh")
def sinh(t: Translation, x: Value) -> Value:
    """sinh(x) as tanh(x) * cosh(x): the difference of two exponentials loses all digits near zero."""
    return t.mul(t.tanh(x), cosh(t, x))


@translates("Asinh")
def asinh(t: Translation, x: Value) -> Value:
    size = t.abs(x)
    root = t.sqrt(t.add(t.square(x), 1.0))
    return t.mul(t.sign(x), t.log(t.add(size, root)))


@translates("Acosh")
def acosh(t: Translation, x: Value) -> Value:
    root = t.sqrt(t.sub(t.square(x), 1.0))
    return t.log(t.add(x, root))


@translates("Atanh")
def atanh(t: Translation, x: Value) -> Value:
    return t.mul(t.log(t.div(t.add(1.0, x), t.sub(1.0, x))), 0.5)


@translates("Erf")
def erf(t: Translation, x: Value) -> Value:
    """From Gelu, which is z times the normal distribution function: erf(z / sqrt 2) = 2 gelu(z) / z - 1.

    Taken at |z| and given the sign again. Below 1/1000 it is a straight line, which keeps clear of 0 / 0.
    """
    z = t.mul(x, sqrt(2))
    size = t.maximum(t.abs(z), 1e-3)
    half = t.div(t.gelu(size), size)
    return t.mul(t.sub(t.mul(half, 2.0), 1.0), t.div(z, size))


# -- comparison and choice -----------------------------------------------------------------------------------


@translates("IsInf")
def is_inf(t: Translation, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return t.is_inf(x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


@translates("Where")
def where(t: Translation, condition: Value, a: Value, b: Value) -> Value:
    return t.select(condition, a, b)


# -- bits ----------------------------------------------------------------------------------------------------


@translates("BitShift")
def bit_shift(t: Translation, x: Value, by: Value, *, direction: str = "") -> Value:
    """Times or by a power of two that is looked up; a shift out of range leaves the sign only."""
    if direction not in ("LEFT", "RIGHT"):
        t.refuse(f"direction={direction!r} is neither LEFT nor RIGHT")
    bits, signed = x.dtype.bits, x.dtype.signed
    places = t.cast(by, DType.INT_32)
    inside = t.equal(places, t.minimum(t.maximum(places, 0), bits - 1))
    wide = DType.INT_32 if signed or bits < 32 else DType.UINT_32
    powers = np.left_shift(1, np.arange(bits, dtype=np.int64)).astype(wide.numpy)
    factor = t.gather(t.constant(powers), t.minimum(t.maximum(places, 0), bits - 1), axis=0)
    data = t.cast(x, wide)
    if direction == "RIGHT":
        return t.cast(_shifted_right(t, data, factor, inside, signed), x.dtype)
    product = t.mul(data, factor)
    if bits < 32:
        low = t.mod(t.add(product, 1 << (bits - 1)) if signed else product, 1 << bits)
        product = t.sub(low, 1 << (bits - 1)) if signed else low
    return t.cast(t.select(inside, product, t.scalar(0, product)), x.dtype)


def _shifted_right(t: Translation, x: Value, factor: Value, inside: Value, signed: bool) -> Value:
    """A quotient rounded down: the remainder, which is not negative, is taken away first."""
    if not signed:
        return t.select(inside, t.div(x, factor), t.scalar(0, x))
    zero = t.scalar(0, x)
    negative = t.less(x, zero)
    fill = t.select(negative, t.scalar(-1, x), zero)
    # The power 2^31 is negative as int32: shifting that far leaves the sign only, too.
    inside = t.logical_and(inside, t.greater(factor, zero))
    whole = t.div(t.sub(x, t.mod(x, factor)), factor)
    return t.select(inside, whole, fill)


@translates("BitwiseNot")
def bitwise_not(t: Translation, x: Value) -> Value:
    """In two's complement this is -1 - x; without a sign, the largest number minus x."""
    return t.sub(-1 if x.dtype.signed else int(np.iinfo(x.dtype.numpy).max), x)


@translates("BitwiseAnd")
def bitwise_and(t: Translation, a: Value, b: Value) -> Value:
    dtype = a.dtype
    return t.cast(_and(t, t.cast(a, DType.INT_32), t.cast(b, DType.INT_32), dtype), dtype)


@translates("BitwiseOr")
def bitwise_or(t: Translation, a: Value, b: Value) -> Value:
    """What b adds to a: nothing on the way leaves the range, and stored integers saturate."""
    wide = t.cast(a, DType.INT_32), t.cast(b, DType.INT_32)
    return t.cast(t.add(wide[0], t.sub(wide[1], _and(t, *wide, a.dtype))), a.dtype)


@translates("BitwiseXor")
def bitwise_xor(t: Translation, a: Value, b: Value) -> Value:
    """What only a has and what only b has."""
    wide = t.cast(a, DType.INT_32), t.cast(b, DType.INT_32)
    both = _and(t, *wide, a.dtype)
    return t.cast(t.add(t.sub(wide[0], both), t.sub(wide[1], both)), a.dtype)


def _and(t: Translation, a: Value, b: Value, dtype: DType) -> Value:
    """QNN has no bit operations: four bits of each side at a time look their result up in a table."""
    digits = np.arange(16, dtype=np.int32)
    table = (digits[:, None] & digits).ravel()
    total: Value | None = None
    places = min(dtype.bits, 32) // 4
    for place in range(places):
        low = [t.mod(x, 16) for x in (a, b)]
        signed = place == places - 1 and (dtype.signed or dtype.bits >= 32)
        entries = np.where(table > 7, table - 16, table) if signed else table
        found = t.gather(t.constant(entries), t.add(t.mul(low[0], 16), low[1]), axis=0)
        found = t.mul(found, 16**place) if place else found
        total = found if total is None else t.add(total, found)
        a, b = (t.div(t.sub(x, d), 16) for x, d in zip((a, b), low, strict=True))
    assert total is not None
    return total


# -- types and copies ----------------------------------------------------------------------------------------


def cast_to(t: Translation, x: Value, dtype: DType) -> Value:
    """QNN cuts floats off towards zero; for bool ONNX asks whether they differ from zero."""
    if dtype is not DType.BOOL_8 or x.dtype is DType.BOOL_8 or x.data is not None:
        return t.cast(x, dtype)
    return t.not_equal(x, 0)


@translates("Cast")
def cast(t: Translation, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast_to(t, x, onnx_dtype(to, "the result"))


@translates("CastLike")
def cast_like(t: Translation, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast_to(t, x, like.dtype)


@translates("Identity")
def identity(t: Translation, x: Value | list[Value] | None) -> list[Value | list[Value] | None]:
    return [x]


@translates("Dropout")
def dropout_by_attribute(t: Translation, x: Value, *, ratio: float = 0.5) -> list[Value]:
    return [x, _all_kept(t, x)] if t.is_read(1) else [x]


@translates("Dropout", since=12)
def dropout(
    t: Translation, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *, seed: int = 0
) -> list[Value]:
    training = training_mode is not None and bool(t.static(training_mode, "training_mode").any())
    rate = 0.5 if ratio is None else float(t.static(ratio, "ratio").ravel()[0])
    if training and rate != 0:
        t.refuse("training_mode drops elements at random", hint="export the model for inference")
    return [x, _all_kept(t, x)] if t.is_read(1) else [x]


def _all_kept(t: Translation, x: Value) -> Value:
    return t.constant(np.broadcast_to(np.True_, x.shape))
