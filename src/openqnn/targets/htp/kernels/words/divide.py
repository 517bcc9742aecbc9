"""How HTP divides two 16-bit tensors: the integers of libQnnHtp, for all numbers and encodings tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import OPS
from openqnn.targets.htp.kernels.bytes.products import Compute, offset_of, rounded, scale_of
from openqnn.targets.htp.kernels.words.curves import FACTOR, STORED, is_wide, mantissa

# 1 / x for x in [1, 2) in 4 pieces, with 14 bits: coefficients of t^0 to t^2 for t = x - 1, in halves of the
# last bit, but for t^2, which is in whole ones.
RECIPROCALS = np.array([
    (32769, -32086, 11794), (32232, -27318, 6555), (31054, -22353, 3945), (29548, -18222, 2530),
])  # fmt: skip
BITS = 14  # behind the point in reciprocals, and those that a quotient keeps before it is rounded down
LEAST = 1e-9  # far less than any quotient


def is_share(n: Node) -> bool:
    """Whether a node divides by a sum of what it divides, which HTP takes for the end of a Softmax."""
    total = n.x(1).producer
    while total is not None and OPS[total.op].keeps_values:
        total = total.x(0).producer
    return total is not None and n.x(0) in total.inputs


def divide(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """The highest 15 bits of one, times the factor to the output, times the reciprocal of the other."""
    values = (n.x(0), n.x(1), n.out)
    if not all(is_wide(v) for v in values):
        return None
    above, below = (np.arange(STORED, dtype=np.int64) + offset_of(v) for v in values[:2])
    by, exponent = mantissa(scale_of(n.x(0)) / scale_of(n.x(1)) / scale_of(n.out))
    highest, twos = _highest(above)
    scaled = np.ldexp((highest * by + (1 << FACTOR - 1) >> FACTOR) * 1.0, twos + exponent)
    exact = _product(b, x, np.sign(above) * scaled, reciprocals(below))
    half = b.op("Mul", b.op("Sign", exact), b.const(0.5))
    whole = b.op("Floor", b.op("Abs", b.op("Add", exact, half)))
    return rounded(b, b.cast(b.op("Mul", whole, b.op("Sign", exact)), np.float32), n.out)


def floor_divide(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """The quotient rounded down: what the reciprocal is off decides where quotients are whole."""
    values = (n.x(0), n.x(1), n.out)
    if not all(is_wide(v) for v in values):
        return None
    above, below = (np.arange(STORED, dtype=np.int64) + offset_of(v) for v in values[:2])
    highest, twos = _highest(above)
    ratio = scale_of(n.x(0)) / scale_of(n.x(1))
    found = _product(b, x, np.sign(above) * np.ldexp(highest * ratio, twos), reciprocals(below))
    return rounded(b, b.cast(b.op("Floor", _cut(b, found)), np.float32), n.out, scale_of(n.out))


def _cut(b: Body, x: str) -> str:
    """Numbers cut towards zero to their highest 14 bits."""
    size = b.op("Max", b.op("Abs", x), b.const(LEAST))
    twos = b.op("Floor", b.op("Add", b.op("Mul", b.op("Log", size), b.const(1 / np.log(2))), b.const(LEAST)))
    unit = b.op("Pow", b.const(2.0), b.op("Sub", twos, b.const(BITS - 1.0)))
    return b.op("Mul", b.op("Sign", x), b.op("Mul", b.op("Floor", b.op("Div", size, unit)), unit))


def _product(b: Body, x: Sequence[str], *tables: Array) -> str:
    """Product of what two tables have for the stored integers, in float64, where it is exact."""
    pairs = zip(tables, x, strict=False)
    return b.op("Mul", *(b.op("Gather", b.const(t), b.cast(name, np.int32)) for t, name in pairs))


def _highest(x: Array) -> tuple[Array, Array]:
    """The size of x as an integer of 15 bits, and the power of two that it is to be multiplied by."""
    size = np.maximum(np.abs(x), 1)
    twos = np.floor(np.log2(size)).astype(np.int64) + 1 - FACTOR
    return np.where(twos > 0, size >> np.maximum(twos, 0), size << np.maximum(-twos, 0)), twos


def reciprocals(x: Array) -> Array:
    """Reciprocals of integers; zero has a large one."""
    highest, twos = _highest(x)
    t = highest - (1 << FACTOR - 1) << 2
    c = RECIPROCALS[t >> 14]
    slope = (c[:, 1] << 15) + c[:, 2] * t >> 16
    found = np.ldexp(((c[:, 0] << 15) + slope * t >> 16) * 1.0, 1 - FACTOR - BITS - twos)
    return np.where(x == 0, STORED, np.sign(x) * found)
