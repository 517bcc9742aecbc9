"""Elementwise ops that HTP lacks, or computes wrongly."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType, Node, Shape, Value
from openqnn.ops import Builder
from openqnn.passes.edit import aligned_shape, scalar
from openqnn.passes.htp.rules import Instead, Refusal, rule

INT = DType.INT_32
LARGEST = 65504.0  # of the finite numbers in half precision


def number(b: Builder, like: Value, value: float) -> Value:
    return b.const([value], like.dtype.numpy)


@rule("ElementWiseSoftplus")
def softplus(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": only the generic form is there.
    parameters = {k: node.float(k) for k in ("beta", "threshold")}
    return b("ElementWiseNeuron", node.x(0), operation="SOFTPLUS", **parameters)


@rule("ElementWiseFmod")
def floored_remainder(node: Node, b: Builder) -> Instead:
    # "OpValidator not found"; the generic FMOD and MOD are refused too. Integers have ElementWiseMod.
    x, y = node.x(0), node.x(1)
    if x.dtype.is_integer:
        return b("ElementWiseMod", x, y)
    whole = b("ElementWiseBinary", x, y, operation="FLOOR_DIV", dtype=x.dtype)
    return b("ElementWiseSubtract", x, b("ElementWiseMultiply", whole, y))


@rule("ElementWiseFloorDiv")
def floor_division(node: Node, b: Builder) -> Instead:
    # Wrong numbers on some shapes; the generic FLOOR_DIV is right. Integers have none, and Divide cuts
    # towards zero.
    x, y = node.x(0), node.x(1)
    if x.dtype.is_float:
        return b("ElementWiseBinary", x, y, operation="FLOOR_DIV", dtype=x.dtype)
    rest = b("ElementWiseMod", x, y)
    return b("ElementWiseDivide", b("ElementWiseSubtract", x, rest), y)


@rule("ElementWiseAsin")
def arc_sine(node: Node, b: Builder) -> Instead:
    # Quantized types only. asin x = 2 atan(x / (1 + sqrt(1 - x^2))), which has no pole.
    x = node.x(0)
    rest = b("ElementWiseSubtract", number(b, x, 1), b("ElementWiseMultiply", x, x))
    root = b("ElementWiseSquareRoot", b("Relu", rest))
    half = b("ElementWiseAtan", b("ElementWiseDivide", x, b("ElementWiseAdd", root, number(b, x, 1))))
    return b("ElementWiseMultiply", half, number(b, x, 2))


@rule("Logit")
def logit(node: Node, b: Builder) -> Instead:
    # Float16 with a second input only; spelled out.
    x = node.x(0)
    odds = b("ElementWiseDivide", x, b("ElementWiseSubtract", number(b, x, 1), x))
    return b("ElementWiseLog", odds)


@rule("ElementWiseNeg")
def negated_integer(node: Node, b: Builder) -> Instead:
    # Floats only; 0 - x is exact.
    x = node.x(0)
    return b("ElementWiseSubtract", number(b, x, 0), x) if x.dtype is INT else None


@rule("ElementWiseSign")
def sign_of_integer(node: Node, b: Builder) -> Instead:
    # Floats only; clipping an integer to -1..1 is its sign.
    x = node.x(0)
    return b("ReluMinMax", x, min_value=-1.0, max_value=1.0) if x.dtype is INT else None


@rule("Relu")
def relu_of_integer(node: Node, b: Builder) -> Instead:
    # Floats only.
    x = node.x(0)
    return b("ElementWiseMaximum", x, number(b, x, 0)) if x.dtype is INT else None


@rule("ReluMinMax")
def clip_of_integer(node: Node, b: Builder) -> Instead:
    # The bounds are float32 parameters, which do not hold every int32.
    x, low, high = node.x(0), node.float("min_value"), node.float("max_value")
    if x.dtype is not INT or max(abs(low), abs(high)) < 1 << 24:
        return None
    limits = np.iinfo(np.int32)
    bounds = [b.const([int(np.clip(v, limits.min, limits.max))], np.int32) for v in (low, high)]
    return b("ElementWiseMinimum", b("ElementWiseMaximum", x, bounds[0]), bounds[1])


@rule("Cast")
def cast_to_bool(node: Node, b: Builder) -> Instead:
    # HTP's Cast to bool gives False for negative numbers and for fractions below 1.
    x = node.x(0)
    if node.out.dtype is not DType.BOOL_8 or x.dtype is DType.BOOL_8:
        return None
    return b("ElementWiseNotEqual", x, number(b, x, 0))


@rule("Cast")
def cast_to_same(node: Node, b: Builder) -> Instead:
    # What was a cast between integer types is none any more.
    x = node.x(0)
    return b("Reshape", x, shape=x.shape) if x.dtype is node.out.dtype else None


@rule("IsNan", "IsInf")
def special_numbers(node: Node, b: Builder) -> Instead:
    # On float32 IsNan is True for infinities and IsInf fails in finalize: inside, such numbers are 131008. On
    # float16 both are right, for inputs that come so; what HTP itself computes is never infinite or NaN.
    x = node.x(0)
    if x.dtype is DType.FLOAT_16:
        return _of_one_sign(node, b) if node.op == "IsInf" else None
    if x.producer is not None:
        raise Refusal(
            "HTP's half-precision numbers saturate: what it computes is never infinite or NaN",
            "compare with a large number instead",
        )
    half = b("Cast", x, dtype=DType.FLOAT_16)
    return b(node.op, half, **node.params)


def _of_one_sign(node: Node, b: Builder) -> Instead:
    """The library confuses detect_negative with detect_positive: both, and the sign by comparison."""
    x, negative, positive = node.x(0), node.flag("detect_negative"), node.flag("detect_positive")
    if negative == positive:
        return None
    either = b("IsInf", x)
    side = b("ElementWiseLess" if negative else "ElementWiseGreater", x, number(b, x, 0))
    return b("ElementWiseAnd", either, side)


@rule("ElementWiseSelect")
def integer_choice_in_full(node: Node, b: Builder) -> Instead:
    # With int32, a branch of a single element is not repeated: what lies behind it in memory is read.
    x, y = node.x(1), node.x(2)
    if x.dtype is not INT or all(v.size > 1 or node.out.size == 1 for v in (x, y)):
        return None
    return b("ElementWiseSelect", node.x(0), *(repeated(b, v, node.out.shape) for v in (x, y)))


def repeated(b: Builder, x: Value, shape: Shape) -> Value:
    """A value broadcast for good."""
    if x.shape == shape:
        return x
    full = aligned_shape(x.shape, len(shape))
    if x.data is not None:
        return b.const(np.ascontiguousarray(np.broadcast_to(x.data, shape)))
    low = x if x.shape == full else b("Reshape", x, shape=full)
    return b("Tile", low, multiples=tuple(n // d for n, d in zip(shape, full, strict=True)))


@rule("ElementWiseEqual")
def equal_to_infinity(node: Node, b: Builder) -> Instead:
    # Infinities saturate at different numbers, 65504 to 131008: from the smallest of these on it is one.
    x, y = node.x(0), node.x(1)
    limit = scalar(y) if x.dtype.is_float else None
    if limit is None or not np.isinf(limit):
        return None
    op = "ElementWiseGreaterEqual" if limit > 0 else "ElementWiseLessEqual"
    return b(op, x, number(b, x, LARGEST if limit > 0 else -LARGEST))


@rule("ElementWiseMultiply")
def shift_left_wraps(node: Node, b: Builder) -> Instead:
    # HTP's int32 saturates where others wrap around. A product with a table of all powers of two is a shift:
    # the bits that would be lost are taken away before, x = low + half * n with -half <= low < half.
    x, factor = node.x(0), node.x(1).producer
    table = factor.x(0).data if factor is not None and factor.op == "Gather" else None
    if factor is None or table is None or table.dtype != np.int32 or table.shape != (32,) or table[31] >= 0:
        return None
    places = factor.x(1)
    lookup = lambda entries: b("Gather", b.const(entries, np.int32), places, axis=0)
    half = lookup([1 << min(31 - k, 30) for k in range(32)])
    rest = b("ElementWiseMod", x, half)
    count = b("ElementWiseDivide", b("ElementWiseSubtract", x, rest), half)
    odd = b("ElementWiseMod", count, number(b, x, 2))
    low = b("ElementWiseSubtract", rest, b("ElementWiseMultiply", odd, half))
    done = b("ElementWiseMultiply", low, lookup([1 << max(k - 1, 0) for k in range(32)]))
    moved = b("ElementWiseMultiply", done, number(b, x, 2))
    stays = b("ElementWiseEqual", places, number(b, places, 0))
    return b("ElementWiseSelect", stays, x, moved)
