"""StableHLO operators inside of TFLite models: those that say what a TFLite operator says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from openqnn.frontends.tflite.elementwise import type_of
from openqnn.frontends.tflite.flatbuffer import schema
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Value

_PAIRS: Final[dict[str, Callable[[Translation], Callable[..., Value]]]] = {
    "STABLEHLO_ADD": lambda t: t.add, "STABLEHLO_SUBTRACT": lambda t: t.sub,
    "STABLEHLO_MULTIPLY": lambda t: t.mul, "STABLEHLO_DIVIDE": lambda t: t.div,
    "STABLEHLO_MAXIMUM": lambda t: t.maximum, "STABLEHLO_MINIMUM": lambda t: t.minimum,
    "STABLEHLO_POWER": lambda t: t.pow,
    "STABLEHLO_AND": lambda t: t.logical_and, "STABLEHLO_OR": lambda t: t.logical_or,
}  # fmt: skip
_SINGLES: Final[dict[str, Callable[[Translation], Callable[..., Value]]]] = {
    "STABLEHLO_ABS": lambda t: t.abs, "STABLEHLO_NEGATE": lambda t: t.neg, "STABLEHLO_TANH": lambda t: t.tanh,
    "STABLEHLO_EXPONENTIAL": lambda t: t.exp, "STABLEHLO_LOG": lambda t: t.log,
    "STABLEHLO_LOGISTIC": lambda t: t.sigmoid, "STABLEHLO_COSINE": lambda t: t.cos,
    "STABLEHLO_RSQRT": lambda t: t.rsqrt, "STABLEHLO_FLOOR": lambda t: t.floor,
}  # fmt: skip
_COMPARISONS: Final[tuple[Callable[[Translation], Callable[..., Value]], ...]] = (
    lambda t: t.equal, lambda t: t.not_equal, lambda t: t.greater_equal, lambda t: t.greater,
    lambda t: t.less_equal, lambda t: t.less,
)  # fmt: skip


@translates(*_PAIRS)
def pair(t: Translation, a: Value, b: Value) -> Value:
    if t.op in ("STABLEHLO_AND", "STABLEHLO_OR") and a.dtype is not DType.BOOL_8:
        t.refuse("QNN has no operations on the bits of integers")
    return _PAIRS[t.op](t)(a, b)


@translates(*_SINGLES)
def single(t: Translation, x: Value) -> Value:
    return _SINGLES[t.op](t)(x)


@translates("STABLEHLO_CBRT")
def cbrt(t: Translation, x: Value) -> Value:
    return t.mul(t.sign(x), t.pow(t.abs(x), 1 / 3))


@translates("STABLEHLO_REMAINDER")
def remainder(t: Translation, a: Value, b: Value) -> Value:
    """What remains has the sign of the dividend."""
    quotient = t.div(a, b)
    if a.dtype.is_float:
        quotient = t.mul(t.sign(quotient), t.floor(t.abs(quotient)))
    return t.sub(a, t.mul(quotient, b))


@translates("STABLEHLO_CUSTOM_CALL")
def custom_call(t: Translation, *inputs: Value, call_target_name: str = "") -> NoReturn:
    t.refuse(f"it calls '{call_target_name}', which is not part of the model")


@translates("STABLEHLO_COMPARE")
def compare(t: Translation, a: Value, b: Value, *, comparison_direction: int = 0) -> Value:
    if not 0 <= comparison_direction < len(_COMPARISONS):
        t.refuse(f"comparison {comparison_direction} is not known")
    return _COMPARISONS[comparison_direction](t)(a, b)


@translates("STABLEHLO_SELECT")
def select(t: Translation, condition: Value, a: Value, b: Value) -> Value:
    return t.select(condition, a, b)


@translates("STABLEHLO_CLAMP")
def clamp(t: Translation, low: Value, x: Value, high: Value) -> Value:
    return t.minimum(t.maximum(x, low), high)


@translates("STABLEHLO_CONVERT")
def convert(t: Translation, x: Value) -> Value:
    target = type_of(t, schema().enums["TensorType"].index(t.result().type))
    return t.cast(x, target) if x.dtype is not target else t.copy(x)


@translates("STABLEHLO_RESHAPE")
def reshape(t: Translation, x: Value) -> Value:
    """The shape is that of the result's tensor."""
    shape = t.result().shape
    if int(np.prod(shape)) != x.size:
        t.refuse(f"{list(x.shape)} cannot become {list(shape)}")
    return t.reshape(x, shape)


@translates("STABLEHLO_TRANSPOSE")
def transpose(t: Translation, x: Value, *, permutation: Any = ()) -> Value:
    order = [t.axis(int(a), x.rank) for a in permutation]
    if sorted(order) != list(range(x.rank)):
        t.refuse(f"{order} is no order of the axes of {list(x.shape)}")
    return t.transpose(x, order)


@translates("STABLEHLO_CONCATENATE")
def concatenate(t: Translation, *parts: Value, dimension: int = 0) -> Value:
    return t.concat(list(parts), t.axis(dimension, parts[0].rank))
