"""How HTP computes functions of one 16-bit tensor: polynomials by pieces, in integers.

Measured on libQnnHtp with all 65536 stored integers and many encodings. Whatever the steps are, a function of
one number is a table by stored integer in the end, so the rules are NumPy on all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from openqnn.ir import Array, DType, Node, Value
from openqnn.ops.onnx_writer import Body
from openqnn.runtime.cpu.arithmetic import Kernel
from openqnn.targets.htp.kernels.bytes.products import (
    Compute,
    dequantized,
    offset_of,
    rounded,
    scale_of,
    single,
)

# From all stored integers, less the zero point, to results in steps of the output.
Curve: TypeAlias = Callable[[Node, Array], Array]

STORED = 1 << 16
FACTOR = 15  # bits of a factor between two encodings
NUDGE = 1 / 32  # what HTP adds before it rounds a result to steps
HALF, ONE = 1 << 14, 1 << 15  # fractions have 15 bits

# tanh over (1 - x / TANH_END)^2, in 16 pieces: coefficients of t^0 to t^3, t in [0, 1) along the piece, with
# 0, 2, 5 and 5 bits more than the result.
TANH_END = 16 / 3
TANH = np.array([
    (32766, -58, -35, -142), (32746, -117, -389, -94), (32702, -250, -672, -149), (32613, -475, -1115, -216),
    (32453, -837, -1760, -303), (32179, -1392, -2668, -407), (31735, -2214, -3895, -521),
    (31044, -3385, -5465, -626), (30007, -4987, -7353, -677), (28509, -7078, -9406, -619),
    (26426, -9658, -11295, -396), (23647, -12622, -12507, 30), (20101, -15726, -12445, 620),
    (15800, -18595, -10585, 1198), (10858, -20788, -6954, 1600), (5494, -21927, -2101, 1636),
])  # fmt: skip

# 2^x for x in [0, 1), in 4 pieces of one polynomial: coefficients of x^0 to x^3, with 15, 15, 14 and 14 bits.
POWER = np.array([
    (32769, 22715, 3925, 987), (32762, 22791, 3780, 1180), (32704, 23130, 3447, 1401),
    (32463, 24076, 2824, 1676),
])  # fmt: skip

# 2^x for x in [0, 1) in Softmax, in 4 pieces: coefficients of t^0 to t^2, t in [0, 1) along the piece.
QUARTERS = np.array([
    (16384.43, 2831.17, 268.81), (19484.49, 3367.14, 319.61), (23171.13, 4003.25, 380.77),
    (27555.23, 4760.54, 451.39),
])  # fmt: skip
PAIR = 1.0, 0.690511, 0.237944, 0.071545  # the same for Softmax of two numbers: one polynomial
# erf for x in [0, 4), by pieces of 1: coefficients of x^0 to x^3, with 15, 14, 16 and 17 bits.
ERF = np.array([
    (0, 18990, -10826, -19971), (-4432, 27537, -55737, 19199), (28048, 2475, -3460, 808), (32664, 42, -42, 7),
])  # fmt: skip
HIGHEST = 0x7F7F  # of what is split in two signed bytes to be multiplied: larger numbers become this one
SOFTPLUS = 0.703109, 0.512704, 0.108826, -0.0046106, -0.00066647  # coefficients between the next two
SOFTPLUS_FROM, SOFTPLUS_TO = -2.0, 5.0
SLOPE = 22  # bits behind the point in what a step of Softmax's input is, as a power of two


def by_table(rule: Curve) -> Kernel:
    """The rule of an op with one input and one output, both of 16 bits."""

    def fixed(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
        if not is_wide(n.x(0)) or not is_wide(n.out):
            return None
        found = rule(n, np.arange(STORED, dtype=np.int64) + offset_of(n.x(0)))
        table = np.clip(found - offset_of(n.out), 0, STORED - 1).astype(n.out.dtype.numpy)
        return b.op("Gather", b.const(table), b.cast(x[0], np.int32))

    return fixed


def first_of(*rules: Kernel) -> Kernel:
    """The first rule that applies."""

    def fixed(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
        return next((found for rule in rules if (found := rule(n, b, x, compute)) is not None), None)

    return fixed


def is_wide(value: Value) -> bool:
    return value.dtype is DType.UFIXED_16 and value.encoding is not None


def factor(ratio: float) -> tuple[int, int]:
    """A ratio of encodings as HTP has it: an integer of 15 bits, and how far to the right it is shifted."""
    shift = min(FACTOR, FACTOR - 1 - int(np.floor(np.log2(ratio))))
    return int(np.rint(np.ldexp(ratio, shift))), shift


def scaled_down(x: Array, ratio: float) -> Array:
    """Integers times a ratio, cut to integers."""
    by, shift = factor(ratio)
    return x * by >> shift if shift >= 0 else x * by << -shift


def to_steps(y: Array, ratio: float) -> Array:
    """Integers times a ratio, rounded to steps of the output; next to a power of two the ratio is that."""
    power = np.exp2(np.rint(np.log2(ratio)))
    by = power if abs(ratio / power - 1) < 1 / ONE else ratio
    return np.floor(y * by + 0.5 + NUDGE).astype(np.int64)


def nearest(x: Array, bits: int) -> Array:
    return (x + (1 << (bits - 1))) >> bits


def _tanh_of(n: Node, x: Array, per_one: float) -> Array:
    """tanh of the size of x, as a fraction; `per_one` is how much of its argument 1.0 is."""
    end = STORED - 1
    left = end - np.minimum(scaled_down(np.abs(x), scale_of(n.x(0)) * per_one), end)
    warped = left * left >> 16
    c, t = TANH[warped >> 12], warped & 4095
    slope = c[:, 1] + nearest((c[:, 2] + nearest(c[:, 3] * t, 12)) * t, 15)
    return c[:, 0] + nearest(slope * t, 14)


def tanh(n: Node, x: Array) -> Array:
    y = _tanh_of(n, x, STORED / TANH_END)
    return to_steps(np.where(x < 0, ~y, np.where(x == 0, 0, y)), 1 / (ONE * scale_of(n.out)))


def sigmoid(n: Node, x: Array) -> Array:
    """Half of tanh of half of x, and a half."""
    y = HALF + (_tanh_of(n, x, STORED / TANH_END / 2) >> 1)
    return to_steps(np.where(x < 0, ONE - 1 - y, np.where(x == 0, HALF, y)), 1 / (ONE * scale_of(n.out)))


def sigmoid_table(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Sigmoid by table; remembers its input so that x * sigmoid(x) is fused as on HTP."""
    found = by_table(sigmoid)(n, b, x, compute)
    if found is not None:
        b.sigmoids[found] = x[0]
    return found


def mantissa(ratio: float) -> tuple[int, int]:
    """A ratio as 15 bits and an exponent: M / 2^15 * 2^e."""
    exponent = int(np.floor(np.log2(ratio))) + 1
    return int(np.floor(np.ldexp(ratio, FACTOR - exponent) + 0.5)), exponent


def steps_per_step(n: Node) -> float:
    """What a step of the input is in steps of the output; in float32, which tells where halves are."""
    return float(single(scale_of(n.x(0))) * (single(1) / single(scale_of(n.out))))


def shifted(x: Array, left: Array | int) -> Array:
    left = np.asarray(left)
    return np.where(left >= 0, x << np.clip(left, 0, 31), x >> np.clip(-left, 0, 62))


def times(x: Array, ratio: float) -> Array:
    """Integers times a ratio: the product with its mantissa is cut before it is shifted to the left."""
    by, exponent = mantissa(ratio)
    return shifted(x * by >> FACTOR, exponent)


def power_of_e(x: Array, scale: float, ratio: float) -> Array:
    """e^(x * scale) * ratio, in integers."""
    by, exponent = mantissa(scale * np.log2(np.e) * STORED)
    k = np.trunc(np.ldexp(x * float(by), exponent - FACTOR)).astype(np.int64)
    c, t = POWER[k >> 14 & 3], k & (STORED - 1)
    slope = (c[:, 1] << 15) + (c[:, 2] + (c[:, 3] * t >> 16)) * t >> 16
    m = (c[:, 0] << 15) + slope * t >> 16
    by, exponent = mantissa(ratio / HALF)
    return shifted(m * by >> FACTOR, (k >> 16) + exponent)


def exp(n: Node, x: Array) -> Array:
    return power_of_e(x, scale_of(n.x(0)), 1 / scale_of(n.out))


def elu(n: Node, x: Array) -> Array:
    alpha = (n.float("alpha") if "alpha" in n.params else 1.0) / scale_of(n.out)
    zero = offset_of(n.out)
    below = power_of_e(np.minimum(x, 0), scale_of(n.x(0)), alpha) + int(-alpha - zero) + zero
    return np.where(x < 0, below, times(x, steps_per_step(n)))


def hard_swish(n: Node, x: Array) -> Array:
    """x in steps of the output times a fraction of 15 bits, both rounded, and their product again.

    Where a step of the output is more than two of x, x keeps some bits of a step, which go last.
    """
    by, exponent = mantissa(scale_of(n.x(0)) * ONE / 6)
    half = 0.5 + np.ldexp(1.0, min(exponent, -1) - 1)
    share = np.clip(np.floor(np.ldexp(x * float(by), exponent - FACTOR) + HALF + half), 0, ONE - 1)
    by, exponent = mantissa(steps_per_step(n))
    more = max(-exponent, 0)
    steps = np.floor(np.ldexp(x * float(by), exponent + more - FACTOR) + 0.5)
    found = np.floor(steps * share / ONE + 0.5)
    return np.floor(np.ldexp(found, -more) + 0.5).astype(np.int64)


def gelu(n: Node, x: Array) -> Array:
    """x times a fraction of 12 bits: half of erf, by polynomials, and a half. Steps of the output are cut."""
    by, exponent = mantissa(float(single(scale_of(n.x(0))) * single(np.sqrt(0.5))) * HALF)
    z = np.floor(np.ldexp(np.abs(x) * float(by), exponent - FACTOR) + 0.5).astype(np.int64)
    z = np.minimum(z, STORED - 1)
    c = ERF[z >> 14]
    slope = (c[:, 1] << 15) + ((c[:, 2] << 15) + c[:, 3] * z >> 16) * z >> 16
    erf = (c[:, 0] << 12) + slope * z + ONE >> 16
    found = np.sign(x) * nearest(np.abs(x) * np.maximum(2048 + np.sign(x) * erf, 0), 12)
    by, exponent = mantissa(steps_per_step(n))
    steps = np.ldexp(found * float(by), exponent - FACTOR)
    return (np.trunc(steps) if exponent >= 0 else np.floor(steps + 0.5)).astype(np.int64)


def softplus(n: Node, x: Array) -> Array:
    """e^x, a polynomial, and x itself."""
    beta = n.float("beta") if "beta" in n.params else 1.0
    threshold = n.float("threshold") if "threshold" in n.params else 20.0
    real = x * scale_of(n.x(0))
    z = beta * real
    soft = np.where(z < SOFTPLUS_FROM, np.exp(z), np.polynomial.polynomial.polyval(z, SOFTPLUS)) / beta
    found = np.where((z > threshold) | (z >= SOFTPLUS_TO), real, soft)
    return np.rint(found / scale_of(n.out)).astype(np.int64)


def hard_sigmoid(n: Node, x: Array) -> Array:
    """HTP takes 16 bits for [0, 1), whatever the encoding of the output is."""
    alpha, beta = (n.float(name) if name in n.params else v for name, v in (("alpha", 0.2), ("beta", 0.5)))
    return np.clip(np.rint((alpha * x * scale_of(n.x(0)) + beta) * STORED), 0, STORED - 1) + offset_of(n.out)


def softmax(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Powers of two of 15 bits by how far below the largest number the others are, over their sum."""
    data, out, axis = n.x(0), n.out, n.int("axis")
    if not is_wide(data) or not is_wide(out):
        return None
    pair = data.shape[axis] == 2
    below = np.arange(STORED, dtype=np.int64)
    rule = powers_by_one if pair else _powers
    found = rule(below, scale_of(data) * n.float("beta") * np.log2(np.e))
    stored, axes = b.cast(x[0], np.int32), b.ints(axis)
    down = b.op("Sub", b.op("ReduceMax", stored, axes), stored)
    parts = b.op("Gather", b.const(found.astype(np.float32)), down)
    share = b.op("Div", parts, b.op("ReduceSum", parts, axes))
    steps = b.op("Mul", share, b.const(1 / scale_of(out), np.float32))
    whole = b.op("Round", steps) if pair else b.op("Floor", steps)
    return rounded(b, whole, out)


def _powers(below: Array, slope: float) -> Array:
    steepest = 2.0**46  # beyond, one step is nothing already: data with a mask of -3e38 have such scales
    k = -below * int(min(np.ldexp(slope, SLOPE), steepest)) >> SLOPE - 16
    c, t = QUARTERS[k >> 14 & 3], (k & (HALF - 1)) / HALF
    found = np.floor(c[:, 0] + (c[:, 1] + c[:, 2] * t) * t).astype(np.int64)
    return np.minimum(shifted(found, (k >> 16) + 1), ONE - 1)


def powers_by_one(below: Array, slope: float) -> Array:
    """2^-(below * slope) by one polynomial: for Softmax of two numbers, and for LogSoftmax."""
    whole = np.floor(-below * slope)
    return np.polynomial.polynomial.polyval(-below * slope - whole, PAIR) * np.exp2(whole)


def product(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Two tensors: the second is split in signed bytes, and the lowest 16 bits of a sum are cut off."""
    first, second = n.x(0), n.x(1)
    if not is_wide(first) or not is_wide(second) or not is_wide(n.out) or x[1] in b.constants:
        return None
    unit = scale_of(first) * scale_of(second)
    highest = b.const(HIGHEST * scale_of(second), np.float32)
    operands = [dequantized(b, x[0], first), b.op("Min", dequantized(b, x[1], second), highest)]
    operands += [dequantized(b, name, n.x(i)) for i, name in enumerate(x[2:], start=2) if name]
    found = b.op("Sub", compute(operands), b.const(unit * STORED / 2, np.float32))
    return rounded(b, found, n.out, scale_of(n.out))


def squared(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A squared difference: the difference is rounded to 16 bits, too, before it is squared."""
    values = (n.x(0), n.x(1), n.out)
    if not all(is_wide(v) for v in values):
        return None
    step = 2 * np.sqrt(scale_of(n.out) * (STORED - 1 + offset_of(n.out))) / (STORED - 1)
    ratios = [scale_of(v) / step for v in values[:2]]
    shift = mantissa(max(ratios))[1]
    factors = [np.rint(np.ldexp(r, FACTOR - shift)) * np.ldexp(1.0, shift - FACTOR) for r in ratios]
    terms = [
        b.op("Mul", b.cast(name, np.float64), b.const(f, np.float64))
        for name, f in zip(x, factors, strict=False)
    ]
    zeros = sum(f * offset_of(v) * sign for f, v, sign in zip(factors, values, (1, -1), strict=False))
    moved = b.op("Add", b.op("Sub", *terms), b.const(zeros + 0.5, np.float64))
    limits = (b.const(limit, np.float64) for limit in (-ONE, ONE - 1))
    whole = b.cast(b.op("Clip", b.op("Floor", moved), *limits), np.float32)
    real = b.op("Mul", b.op("Mul", whole, whole), b.const(step**2, np.float32))
    return rounded(b, real, n.out, scale_of(n.out))
