"""ATen ops that work on each element by itself: arithmetic, functions of one number, extremes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi

import numpy as np

from openqnn.frontends.compositions import power
from openqnn.frontends.onnx import elementwise as onnx
from openqnn.frontends.torch.promotion import real, result_type, to_type, together, typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value

Pair = Callable[[TorchTranslation, Value, Value], Value]
_BOOL, _FLOAT = DType.BOOL_8, DType.FLOAT_32


def _arithmetic(t: TorchTranslation, pair: Pair, a: Term, b: Term) -> Value:
    """In the common type; what bools give is a bool."""
    dtype = result_type(a, b)
    wide = DType.INT_32 if dtype is _BOOL else dtype
    return to_type(t, pair(t, typed(t, a, wide), typed(t, b, wide)), dtype)


def _scaled(t: TorchTranslation, x: Term, factor: Term) -> Term:
    if not isinstance(factor, Value) and factor == 1:
        return x
    return _arithmetic(t, TorchTranslation.mul, x, factor) if isinstance(x, Value) else x * factor  # type: ignore[operator]


@translates("add")
def add(t: TorchTranslation, x: Term, other: Term, *, alpha: Term = 1) -> Value:
    return _arithmetic(t, TorchTranslation.add, x, _scaled(t, other, alpha))


@translates("sub", "subtract")
def sub(t: TorchTranslation, x: Term, other: Term, *, alpha: Term = 1) -> Value:
    return _arithmetic(t, TorchTranslation.sub, x, _scaled(t, other, alpha))


@translates("rsub")
def rsub(t: TorchTranslation, x: Term, other: Term, *, alpha: Term = 1) -> Value:
    return sub(t, other, x, alpha=alpha)


@translates("mul", "multiply")
def mul(t: TorchTranslation, x: Term, other: Term) -> Value:
    return _arithmetic(t, TorchTranslation.mul, x, other)


@translates("div", "divide", "true_divide")
def div(t: TorchTranslation, x: Term, other: Term, *, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return floor_divide(t, x, other)
    if rounding_mode == "trunc":
        return _divided_towards_zero(t, x, other)
    a, b = together(t, (x, other), _FLOAT)
    return t.div(a, b)


def _divided_towards_zero(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    return trunc(t, t.div(a, b)) if a.dtype.is_float else t.div(a, b)


@translates("floor_divide")
def floor_divide(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    if a.dtype.is_float:
        # As torch does it: from the remainder, which is exact where the quotient is not.
        rest = onnx.mod(t, a, b)
        whole = t.round(t.div(t.sub(a, rest), b))
        endless = t.logical_not(finite(t, t.div(a, b)))
        return t.select(endless, t.div(a, b), whole)
    if not a.dtype.signed:
        return t.div(a, b)
    rest = t.mod(a, b)
    return t.div(t.sub(a, rest), b)


@translates("remainder")
def remainder(t: TorchTranslation, x: Term, other: Term) -> Value:
    return onnx.mod(t, *together(t, (x, other)))


@translates("fmod")
def fmod(t: TorchTranslation, x: Term, other: Term) -> Value:
    return onnx.mod(t, *together(t, (x, other)), fmod=1)


@translates("pow")
def pow_(t: TorchTranslation, x: Term, exponent: Term) -> Value:
    dtype = result_type(x, exponent)
    if not isinstance(exponent, Value) and isinstance(x, Value):
        base = typed(t, x, dtype)
        if exponent == 0:
            return t.constant(np.ones(x.shape, dtype.numpy))
        if exponent in (1, 2, 3) or (dtype.is_float and exponent in (0.5, -0.5, -1)):
            return power(t, base, exponent) if exponent != 1 else t.copy(base)
    a, b = typed(t, x, dtype), typed(t, exponent, dtype)
    return t.pow(a, b) if dtype.is_float else onnx.pow_(t, a, b)


@translates("float_power")
def float_power(t: TorchTranslation, x: Term, exponent: Term) -> Value:
    return t.pow(real(t, x), real(t, exponent))


@translates("square")
def square(t: TorchTranslation, x: Value) -> Value:
    return _arithmetic(t, TorchTranslation.mul, x, x)


@translates("reciprocal")
def reciprocal(t: TorchTranslation, x: Value) -> Value:
    return t.div(1.0, real(t, x))


@translates("neg", "negative")
def neg(t: TorchTranslation, x: Value) -> Value:
    return t.neg(x)


@translates("abs", "absolute")
def abs_(t: TorchTranslation, x: Value) -> Value:
    return x if x.dtype is _BOOL else t.abs(x)


@translates("sign", "sgn")
def sign(t: TorchTranslation, x: Value) -> Value:
    return x if x.dtype is _BOOL else t.sign(x)


@translates("signbit")
def signbit(t: TorchTranslation, x: Value) -> Value:
    """The sign of zero shows in its reciprocal."""
    if not x.dtype.is_float:
        return t.less(x, 0) if x.dtype.signed else t.constant(np.zeros(x.shape, np.bool_))
    return t.less(t.select(t.equal(x, 0), t.div(1.0, x), x), 0)


@translates("copysign")
def copysign(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other), _FLOAT)
    size = t.abs(a)
    return t.select(signbit(t, b), t.neg(size), size)


# -- functions of one number ---------------------------------------------------------------------------------

Function = Callable[[TorchTranslation, Value], Value]
_FUNCTIONS: dict[str, Function] = {
    "exp": TorchTranslation.exp,
    "log": TorchTranslation.log,
    "sin": TorchTranslation.sin,
    "cos": TorchTranslation.cos,
    "asin": TorchTranslation.asin,
    "atan": TorchTranslation.atan,
    "sqrt": TorchTranslation.sqrt,
    "rsqrt": TorchTranslation.rsqrt,
    "tan": onnx.tan,
    "acos": onnx.acos,
    "cosh": onnx.cosh,
    "sinh": onnx.sinh,
    "acosh": onnx.acosh,
    "exp2": lambda t, x: t.exp(t.mul(x, log(2))),
    "special_exp2": lambda t, x: t.exp(t.mul(x, log(2))),
    "log2": lambda t, x: t.mul(t.log(x), 1 / log(2)),
    "log10": lambda t, x: t.mul(t.log(x), 1 / log(10)),
    "deg2rad": lambda t, x: t.mul(x, pi / 180),
    "rad2deg": lambda t, x: t.mul(x, 180 / pi),
}
_ALIASES = {
    "asin": "arcsin", "atan": "arctan", "acos": "arccos", "acosh": "arccosh", "asinh": "arcsinh",
    "atanh": "arctanh",
}  # fmt: skip


def _register(name: str, function: Function) -> None:
    names = [name, _ALIASES[name]] if name in _ALIASES else [name]
    translates(*names)(lambda t, x: function(t, real(t, x)))


for _name, _function in _FUNCTIONS.items():
    _register(_name, _function)


@translates("log1p", "special_log1p")
def log1p(t: TorchTranslation, x: Value) -> Value:
    """With the rounding of 1 + x taken back, so that small numbers keep their digits."""
    y = real(t, x)
    up = t.add(y, 1.0)
    lost = t.div(t.sub(y, t.sub(up, 1.0)), up)
    near = t.less(t.abs(y), 0.5)
    return t.add(t.log(up), t.select(near, lost, t.scalar(0, y)))


@translates("expm1", "special_expm1")
def expm1(t: TorchTranslation, x: Value) -> Value:
    """2 sinh(x/2) exp(x/2) is as exact as tanh: exp(x) - 1 = tanh(x/2) (exp(x) + 1)."""
    y = real(t, x)
    grown = t.exp(y)
    near = t.mul(t.tanh(t.mul(y, 0.5)), t.add(grown, 1.0))
    return t.select(t.less(t.abs(y), 1.0), near, t.sub(grown, 1.0))


@translates("asinh", "arcsinh")
def asinh(t: TorchTranslation, x: Value) -> Value:
    """log(|x| + sqrt(x^2 + 1)), in the form that keeps the digits of small numbers; by log(2|x|) far out."""
    y = real(t, x)
    size = t.abs(y)
    small = t.minimum(size, 1e4)
    squared = t.square(small)
    near = log1p(t, t.add(small, t.div(squared, t.add(t.sqrt(t.add(squared, 1.0)), 1.0))))
    far = t.add(t.log(size), log(2))
    return t.mul(t.sign(y), t.select(t.less(size, 1e4), near, far))


@translates("atanh", "arctanh")
def atanh(t: TorchTranslation, x: Value) -> Value:
    y = real(t, x)
    return t.mul(t.sub(log1p(t, y), log1p(t, t.neg(y))), 0.5)


@translates("erf", "special_erf")
def erf(t: TorchTranslation, x: Value) -> Value:
    return onnx.erf(t, real(t, x))


@translates("erfc", "special_erfc")
def erfc(t: TorchTranslation, x: Value) -> Value:
    return t.sub(1.0, erf(t, x))


@translates("floor", "ceil", "round", "trunc", "fix")
def rounded(t: TorchTranslation, x: Value, *, decimals: int = 0) -> Value:
    if not x.dtype.is_float:
        return x
    if decimals:
        scale = float(10 ** abs(decimals))
        if decimals > 0:
            return t.div(t.round(t.mul(x, scale)), scale)
        return t.mul(t.round(t.div(x, scale)), scale)
    kind = t.op.split(".")[0].rstrip("_")
    if kind == "round":
        return t.round(x)
    return trunc(t, x) if kind in ("trunc", "fix") else t.floor(x) if kind == "floor" else t.ceil(x)


def finite(t: TorchTranslation, x: Value) -> Value:
    return t.less_equal(t.abs(x), float(np.finfo(x.dtype.numpy).max))


def trunc(t: TorchTranslation, x: Value) -> Value:
    return t.mul(t.sign(x), t.floor(t.abs(x))) if x.dtype.is_float else x


@translates("frac")
def frac(t: TorchTranslation, x: Value) -> Value:
    return t.sub(x, trunc(t, x))


@translates("atan2", "arctan2")
def atan2(t: TorchTranslation, x: Term, other: Term) -> Value:
    """The angle of (other, x): by the smaller of the two quotients, moved into its octant."""
    y, x_ = together(t, (x, other), _FLOAT)
    up, side = t.abs(y), t.abs(x_)
    low, high = t.minimum(up, side), t.maximum(up, side)
    both_zero = t.equal(high, 0)
    angle = t.atan(t.div(low, t.select(both_zero, t.scalar(1, high), high)))
    equal = t.equal(low, high)
    angle = t.select(t.logical_and(equal, t.greater(high, 0)), t.scalar(pi / 4, high), angle)
    angle = t.select(t.greater(up, side), t.sub(pi / 2, angle), angle)
    angle = t.select(signbit(t, x_), t.sub(pi, angle), angle)
    angle = t.select(signbit(t, y), t.neg(angle), angle)
    nan = t.logical_not(t.equal(t.add(y, x_), t.add(y, x_)))
    both_inf = t.logical_and(t.is_inf(y), t.is_inf(x_))
    return t.select(t.logical_and(nan, t.logical_not(both_inf)), t.scalar(np.nan, y), angle)


@translates("hypot")
def hypot(t: TorchTranslation, x: Value, other: Value) -> Value:
    """Without overflow: the larger times the root of 1 plus the quotient's square."""
    a, b = (t.abs(v) for v in together(t, (x, other), _FLOAT))
    large, small = t.maximum(a, b), t.minimum(a, b)
    safe = t.select(t.equal(large, 0), t.scalar(1, large), large)
    found = t.mul(large, t.sqrt(t.add(t.square(t.div(small, safe)), 1.0)))
    return t.select(t.is_inf(large), large, found)


@translates("logit", "special_logit")
def logit(t: TorchTranslation, x: Value, eps: float | None = None) -> Value:
    y = real(t, x)
    if eps is not None:
        y = t.minimum(t.maximum(y, eps), 1 - eps)
    return t.log(t.div(y, t.sub(1.0, y)))


@translates("xlogy", "special_xlogy")
def xlogy(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other), _FLOAT)
    product = t.mul(a, t.log(b))
    zero = t.logical_and(t.equal(a, 0), t.logical_not(t.is_nan(b)))
    return t.select(zero, t.scalar(0, a), product)


@translates("logaddexp")
def logaddexp(t: TorchTranslation, x: Value, other: Value) -> Value:
    a, b = together(t, (x, other), _FLOAT)
    high, low = t.maximum(a, b), t.minimum(a, b)
    gap = t.select(t.equal(a, b), t.scalar(0, a), t.sub(low, high))
    return t.add(high, log1p(t, t.exp(gap)))


@translates("logaddexp2")
def logaddexp2(t: TorchTranslation, x: Value, other: Value) -> Value:
    a, b = together(t, (x, other), _FLOAT)
    return t.mul(logaddexp(t, t.mul(a, log(2)), t.mul(b, log(2))), 1 / log(2))


# -- extremes ------------------------------------------------------------------------------------------------


@translates("maximum")
def maximum(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    if a.dtype is _BOOL:
        return t.logical_or(a, b)
    return t.maximum(a, b)


@translates("minimum")
def minimum(t: TorchTranslation, x: Term, other: Term) -> Value:
    a, b = together(t, (x, other))
    return t.logical_and(a, b) if a.dtype is _BOOL else t.minimum(a, b)


@translates("max.other")
def max_other(t: TorchTranslation, x: Value, other: Value) -> Value:
    return maximum(t, x, other)


@translates("min.other")
def min_other(t: TorchTranslation, x: Value, other: Value) -> Value:
    return minimum(t, x, other)


@translates("fmax", "fmin")
def fmax(t: TorchTranslation, x: Value, other: Value) -> Value:
    """The larger of two numbers; where one is NaN, the other."""
    a, b = together(t, (x, other))
    if a.dtype.is_float:
        a, b = t.select(t.is_nan(a), b, a), t.select(t.is_nan(b), a, b)
    return maximum(t, a, b) if t.op.startswith("fmax") else minimum(t, a, b)


@translates("clamp", "clip")
def clamp(t: TorchTranslation, x: Value, min: Term | None = None, max: Term | None = None) -> Value:
    bounds = [b for b in (min, max) if b is not None]
    dtype = result_type(x, *bounds)
    y = typed(t, x, dtype)
    if dtype.is_float and all(not isinstance(b, Value) for b in bounds):
        low, high = (-inf if min is None else float(min), inf if max is None else float(max))  # type: ignore[arg-type]
        if not low <= high:
            return t.constant(np.broadcast_to(np.asarray(high, dtype.numpy), x.shape))
        return onnx.clip_to(t, y, low, high)
    y = y if min is None else t.maximum(y, typed(t, min, dtype))
    return y if max is None else t.minimum(y, typed(t, max, dtype))


@translates("clamp_min")
def clamp_min(t: TorchTranslation, x: Value, min: Term) -> Value:
    return clamp(t, x, min)


@translates("clamp_max")
def clamp_max(t: TorchTranslation, x: Value, max: Term) -> Value:
    return clamp(t, x, None, max)


@translates("nan_to_num")
def nan_to_num(
    t: TorchTranslation, x: Value, nan: float | None = None, posinf: float | None = None,
    neginf: float | None = None,
) -> Value:  # fmt: skip
    if not x.dtype.is_float:
        return x
    info = np.finfo(x.dtype.numpy)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    y = t.select(t.is_nan(x), t.scalar(nan or 0.0, x), x)
    y = t.select(t.is_inf(x, detect_negative=False), t.scalar(high, x), y)
    return t.select(t.is_inf(x, detect_positive=False), t.scalar(low, x), y)


# -- three operands ------------------------------------------------------------------------------------------


@translates("lerp")
def lerp(t: TorchTranslation, x: Value, end: Value, weight: Term) -> Value:
    return t.add(x, t.mul(t.sub(end, x), typed(t, weight, x.dtype)))


@translates("addcmul")
def addcmul(t: TorchTranslation, x: Value, tensor1: Value, tensor2: Value, *, value: Term = 1) -> Value:
    return add(t, x, mul(t, tensor1, tensor2), alpha=value)


@translates("addcdiv")
def addcdiv(t: TorchTranslation, x: Value, tensor1: Value, tensor2: Value, *, value: Term = 1) -> Value:
    return add(t, x, div(t, tensor1, tensor2), alpha=value)
