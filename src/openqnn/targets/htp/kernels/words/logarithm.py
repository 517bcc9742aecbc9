"""How HTP computes logarithms and LogSoftmax of a 16-bit tensor, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, rounded, scale_of, short, single
from openqnn.targets.htp.kernels.words.curves import STORED, is_wide, powers_by_one

ONE = 1 << 15
BITS = 16  # of a scale, the rest of which is cut off
HALF = 2.0**-16  # the logarithm has 15 bits behind the point: what is cut off on average


def logarithm(n: Node, x: Array) -> Array:
    """log(x) of x truncated to 15 fraction bits; x = 0 counts as half a step."""
    parts = np.floor(x * short(single(scale_of(n.x(0))).astype(np.float64)) * ONE)
    return np.rint(np.log(np.maximum(parts, 0.5) / ONE) / scale_of(n.out)).astype(np.int64)


def log_softmax(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """How far below the largest number the others are, less the logarithm of the sum of their powers."""
    data, out, axis = n.x(0), n.out, n.int("axis")
    if not is_wide(data) or not is_wide(out):
        return None
    slope, step = _cut(scale_of(data) * n.float("beta")), 1 / _cut(1 / scale_of(out))
    table = powers_by_one(np.arange(STORED, dtype=np.int64), slope * np.log2(np.e))
    stored, axes = b.cast(x[0], np.int32), b.ints(axis)
    down = b.op("Sub", b.op("ReduceMax", stored, axes), stored)
    parts = b.op("Gather", b.const(table.astype(np.float32)), down)
    whole = b.op("Sub", b.op("Log", b.op("ReduceSum", parts, axes)), b.const(HALF, np.float32))
    real = b.op("Mul", b.cast(down, np.float32), b.const(-slope, np.float32))
    return rounded(b, b.op("Sub", real, whole), out, step)


def _cut(scale: float) -> float:
    """The highest 16 bits: over a whole range, what is lost of the scales is up to two steps."""
    mantissa, exponent = np.frexp(scale)
    return float(np.ldexp(np.floor(np.ldexp(mantissa, BITS)), exponent - BITS))
