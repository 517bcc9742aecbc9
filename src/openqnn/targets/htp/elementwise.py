"""Elementwise ops that HTP lacks, or computes wrongly."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType, Node, Shape, Value
from openqnn.ops import Builder
from openqnn.passes.edit import aligned_shape, scalar
from openqnn.targets.htp.rules import Instead, Refusal, fixed_rule, rule, takes

INT = DType.INT_32
LARGEST = 65504.0  # of the finite numbers in half precision


# What the library's validators list; Mod and the extremes say "incorrect Rank 5".
takes("ElementWiseAbs", "ElementWiseSelect", "ReluMinMax", kinds="FI")
takes("ElementWiseMaximum", "ElementWiseMinimum", kinds="FI", axes=4)
takes("ElementWiseEqual", "ElementWiseNotEqual", kinds="FI")
takes("ElementWiseLess", "ElementWiseLessEqual", "ElementWiseGreater", "ElementWiseGreaterEqual", kinds="FI")
takes("ElementWiseAnd", "ElementWiseOr", "ElementWiseXor", "ElementWiseNot", kinds="B")
takes("ElementWiseMod", kinds="I", axes=4)
takes("IsNan", "IsInf", kinds="")
takes(
    "ElementWiseAtan", "ElementWiseCeil", "ElementWiseCos", "ElementWiseFloor", "ElementWiseNeg",
    "ElementWiseRound", "ElementWiseSign", "ElementWiseSin", "ElementWiseSquareRoot",
    "ElementWiseSquaredDifference", "Elu", "HardSwish", "Relu1", "Relu6", "Tanh", axes=4,
)  # fmt: skip


@rule("ElementWiseSoftplus", "ElementWiseNeuron", half=True)
def softplus_by_series(node: Node, b: Builder) -> Instead:
    # A polynomial of the fourth degree from -2 to 5, off by up to a tenth, which is meant for fixed point.
    # Here max(z, 0) + log(1 + u) with u = e^-|z|; log(1 + u) = 2 artanh(s) with s = u / (2 + u) up to 1/3.
    if not _is_soft(node):
        return None
    beta = node.float("beta", 1.0)
    if beta == 1 and _only_for_tanh(node, b):
        return None
    z = node.x(0) if beta == 1 else b.mul(node.x(0), beta)
    u = b.exp(b.neg(b.abs(z)))
    s = b.div(u, b.add(u, 2))
    square = b.square(s)
    series = b.scalar(2 / 7, z)
    for number in (2 / 5, 2 / 3, 2.0):
        series = b.add(b.mul(square, series), number)
    soft = b.add(b.relu(z), b.mul(s, series))
    return soft if beta == 1 else b.div(soft, beta)


@rule("Tanh", half=True)
def tanh_of_softplus(node: Node, b: Builder) -> Instead:
    # Mish: with e = e^x it is n / (n + 2), n = e (e + 2). Above 4.5 it is one, in half precision, and the
    # library divides by way of the reciprocal, which must not become too small.
    soft = node.x(0).producer
    if soft is None or not _is_soft(soft) or soft.float("beta", 1.0) != 1:
        return None
    e = b.exp(b.minimum(soft.x(0), 4.5))
    n = b.mul(e, b.add(e, 2))
    return b.div(n, b.add(n, 2))


def _only_for_tanh(node: Node, b: Builder) -> bool:
    return all(user.op == "Tanh" for user in node.out.users) and not b.graph.is_output(node.out)


def _is_soft(node: Node) -> bool:
    """A softplus in floats whose threshold changes nothing in half precision."""
    named = node.op == "ElementWiseSoftplus"
    if not named and not (node.op == "ElementWiseNeuron" and node.enum("operation") == "SOFTPLUS"):
        return False
    return node.out.dtype.is_float and node.float("threshold", 20.0) >= 8


@rule("ElementWiseSoftplus")
def softplus(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": only the generic form is there.
    parameters = {k: node.float(k) for k in ("beta", "threshold")}
    return b.neuron("SOFTPLUS", node.x(0), **parameters)


@rule("ElementWiseFmod")
def floored_remainder(node: Node, b: Builder) -> Instead:
    # "OpValidator not found"; the generic FMOD and MOD are refused too. Integers have ElementWiseMod.
    x, y = node.x(0), node.x(1)
    if x.dtype.is_integer:
        return b.mod(x, y)
    whole = b.binary("FLOOR_DIV", x, y)
    return b.sub(x, b.mul(whole, y))


@rule("ElementWiseFloorDiv")
def floor_division(node: Node, b: Builder) -> Instead:
    # Wrong numbers on some shapes; the generic FLOOR_DIV is right. Integers have none, and Divide cuts
    # towards zero.
    x, y = node.x(0), node.x(1)
    if x.dtype.is_float:
        return b.binary("FLOOR_DIV", x, y)
    rest = b.mod(x, y)
    return b.div(b.sub(x, rest), y)


@rule("ElementWiseAsin")
def arc_sine(node: Node, b: Builder) -> Instead:
    # Quantized types only. asin x = 2 atan(x / (1 + sqrt(1 - x^2))), which has no pole.
    x = node.x(0)
    rest = b.sub(1, b.square(x))
    root = b.sqrt(b.relu(rest))
    half = b.atan(b.div(x, b.add(root, 1)))
    return b.mul(half, 2)


@rule("Logit")
def logit(node: Node, b: Builder) -> Instead:
    # Float16 with a second input only; spelled out.
    x = node.x(0)
    odds = b.div(x, b.sub(1, x))
    return b.log(odds)


@rule("ElementWiseNeg")
def negated_integer(node: Node, b: Builder) -> Instead:
    # Floats only; 0 - x is exact.
    x = node.x(0)
    return b.sub(0, x) if x.dtype is INT else None


@rule("ElementWiseSign")
def sign_of_integer(node: Node, b: Builder) -> Instead:
    # Floats only; clipping an integer to -1..1 is its sign.
    x = node.x(0)
    return b.clip(x, -1.0, 1.0) if x.dtype is INT else None


@rule("Relu")
def relu_of_integer(node: Node, b: Builder) -> Instead:
    # Floats only.
    x = node.x(0)
    return b.maximum(x, 0) if x.dtype is INT else None


@rule("ReluMinMax")
def clip_of_integer(node: Node, b: Builder) -> Instead:
    # The bounds are float32 parameters, which do not hold every int32.
    x, low, high = node.x(0), node.float("min_value"), node.float("max_value")
    if x.dtype is not INT or max(abs(low), abs(high)) < 1 << 24:
        return None
    limits = np.iinfo(np.int32)
    bounds = [b.const([int(np.clip(v, limits.min, limits.max))], np.int32) for v in (low, high)]
    return b.minimum(b.maximum(x, bounds[0]), bounds[1])


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
    half = b.cast(x, DType.FLOAT_16)
    return b(node.op, half, **node.params)


def _of_one_sign(node: Node, b: Builder) -> Instead:
    """The library confuses detect_negative with detect_positive: both, and the sign by comparison."""
    x, negative, positive = node.x(0), node.flag("detect_negative"), node.flag("detect_positive")
    if negative == positive:
        return None
    either = b.is_inf(x)
    side = b.less(x, 0) if negative else b.greater(x, 0)
    return b.logical_and(either, side)


@rule("ElementWiseSelect")
def integer_choice_in_full(node: Node, b: Builder) -> Instead:
    # With int32, a branch of a single element is not repeated: what lies behind it in memory is read.
    x, y = node.x(1), node.x(2)
    if x.dtype is not INT or all(v.size > 1 or node.out.size == 1 for v in (x, y)):
        return None
    return b.select(node.x(0), *(repeated(b, v, node.out.shape) for v in (x, y)))


def repeated(b: Builder, x: Value, shape: Shape) -> Value:
    """A value broadcast for good."""
    if x.shape == shape:
        return x
    full = aligned_shape(x.shape, len(shape))
    if x.data is not None:
        return b.const(np.ascontiguousarray(np.broadcast_to(x.data, shape)))
    low = x if x.shape == full else b.reshape(x, full)
    return b.tile(low, [n // d for n, d in zip(shape, full, strict=True)])


@rule("ElementWiseEqual")
def equal_to_infinity(node: Node, b: Builder) -> Instead:
    # Infinities saturate at different numbers, 65504 to 131008: from the smallest of these on it is one.
    x, y = node.x(0), node.x(1)
    limit = scalar(y) if x.dtype.is_float else None
    if limit is None or not np.isinf(limit):
        return None
    return b.greater_equal(x, LARGEST) if limit > 0 else b.less_equal(x, -LARGEST)


@fixed_rule("ElementWiseNeuron")
def curve_of_16_bits(node: Node, b: Builder, width: int) -> Value | None:
    """At 16 bits the kernels of some give wrong numbers; the same in single steps is right."""
    if width != 16:
        return None
    if _is_soft(node) and node.float("beta", 1.0) == 1:  # behind a layer, where there are more than 8 rows
        x = node.x(0)
        return b.add(b.relu(x), b.log(b.add(b.exp(b.neg(b.abs(x))), 1)))
    if node.enum("operation") != "HARD_SIGMOID":
        return None
    moved = b.add(b.mul(node.x(0), node.float("alpha")), node.float("beta"))
    return b.clip(moved, 0.0, 1.0)
