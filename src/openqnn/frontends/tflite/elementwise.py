"""TFLite operators that work on each element by itself: arithmetic, comparison, logic, casts."""

from __future__ import annotations

from functools import reduce
from math import pi

import numpy as np

from openqnn.frontends.compositions import power
from openqnn.frontends.tflite.flatbuffer import schema
from openqnn.frontends.tflite.stored_numbers import numpy_type
from openqnn.frontends.tflite.table import rows, translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.frontends.translation import narrow_type
from openqnn.ir import DType, Value, dtype_of

rows({
    "ABS": "ElementWiseAbs",
    "ADD": "ElementWiseAdd",
    "CEIL": "ElementWiseCeil",
    "COS": "ElementWiseCos",
    "DIV": "ElementWiseDivide",
    "EQUAL": "ElementWiseEqual",
    "EXP": "ElementWiseExp",
    "FLOOR": "ElementWiseFloor",
    "GREATER": "ElementWiseGreater",
    "GREATER_EQUAL": "ElementWiseGreaterEqual",
    "LESS": "ElementWiseLess",
    "LESS_EQUAL": "ElementWiseLessEqual",
    "LOG": "ElementWiseLog",
    "LOGICAL_AND": "ElementWiseAnd",
    "LOGICAL_NOT": "ElementWiseNot",
    "LOGICAL_OR": "ElementWiseOr",
    "MAXIMUM": "ElementWiseMaximum",
    "MINIMUM": "ElementWiseMinimum",
    "MUL": "ElementWiseMultiply",
    "NEG": "ElementWiseNeg",
    "NOT_EQUAL": "ElementWiseNotEqual",
    "ROUND": "ElementWiseRound",
    "RSQRT": "ElementWiseRsqrt",
    "SIGN": "ElementWiseSign",
    "SIN": "ElementWiseSin",
    "SQRT": "ElementWiseSquareRoot",
    "SQUARED_DIFFERENCE": "ElementWiseSquaredDifference",
    "SUB": "ElementWiseSubtract",
})  # fmt: skip


def type_of(t: Translation, code: int) -> DType:
    """The type that an operator's option names, as QNN computes with it."""
    kind = schema().name_of("TensorType", code)
    found = numpy_type(kind)
    try:
        return narrow_type(dtype_of(found if found is not None else ""))
    except (ValueError, TypeError):
        t.refuse(f"QNN has no {kind.lower()}")


@translates("SQUARE")
def square(t: Translation, x: Value) -> Value:
    return t.square(x)


@translates("ADD_N")
def add_n(t: Translation, x: Value, *more: Value) -> Value:
    return reduce(t.add, more, x) if more else t.copy(x)


@translates("POW")
def pow_(t: Translation, x: Value, exponent: Value) -> Value:
    known = float(exponent.data.reshape(-1)[0]) if exponent.data is not None and exponent.size == 1 else None
    if x.dtype.is_float:
        return power(t, x, known) if known in (2, 3, 0.5, -0.5, -1) else t.pow(x, exponent)
    if known in (2, 3):
        return power(t, x, known)
    y = t.pow(t.cast(x, DType.FLOAT_32), t.cast(exponent, DType.FLOAT_32))
    return t.cast(t.round(y), x.dtype)


@translates("FLOOR_DIV")
def floor_div(t: Translation, a: Value, b: Value) -> Value:
    return t("ElementWiseFloorDiv", a, b)


@translates("FLOOR_MOD")
def floor_mod(t: Translation, a: Value, b: Value) -> Value:
    """What remains has the sign of the divisor, as QNN's remainders have."""
    return t("ElementWiseFmod", a, b) if a.dtype.is_float else t.mod(a, b)


@translates("ATAN2")
def atan2(t: Translation, y: Value, x: Value) -> Value:
    """The angle of the right half, turned by half a circle where x is negative."""
    right = t.atan(t.div(y, x))
    turned = t.select(t.less(y, 0.0), t.sub(right, pi), t.add(right, pi))
    steep = t.select(t.less(y, 0.0), t.scalar(-pi / 2, x), t.scalar(pi / 2, x))
    steep = t.select(t.equal(y, 0.0), t.scalar(0.0, x), steep)
    found = t.select(t.less(x, 0.0), turned, right)
    return t.select(t.equal(x, 0.0), steep, found)


@translates("CAST")
def cast(t: Translation, x: Value, *, out_data_type: int = 0) -> Value:
    target = type_of(t, schema().enums["TensorType"].index(t.result().type))
    if x.dtype is target:
        return x if x.data is not None else t.copy(x)
    if target is DType.BOOL_8 and x.dtype.is_float:
        return t.not_equal(x, 0.0)
    if x.data is not None and x.data.dtype.kind == "f" and target.is_integer:
        info = np.iinfo(target.numpy)
        return t.constant(np.clip(np.trunc(x.data), info.min, info.max).astype(target.numpy))
    return t.cast(x, target)


@translates("SELECT")
def select(t: Translation, condition: Value, a: Value, b: Value) -> Value:
    """A condition of one axis chooses whole rows."""
    if condition.rank == 1 and a.rank > 1 and condition.size == a.shape[0]:
        condition = t.reshape(condition, (condition.size, *(1,) * (a.rank - 1)))
    return t.select(condition, a, b)


@translates("SELECT_V2")
def select_v2(t: Translation, condition: Value, a: Value, b: Value) -> Value:
    return t.select(condition, a, b)


@translates("ZEROS_LIKE")
def zeros_like(t: Translation, x: Value) -> Value:
    return t.constant(np.zeros(x.shape, x.dtype.numpy))
