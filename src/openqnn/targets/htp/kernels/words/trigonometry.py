"""How HTP computes sine, cosine and arc tangent of a 16-bit tensor, as measured on libQnnHtp.

Sine, cosine and the arc tangent up to 1 are its very integers. Beyond 1, two of four polynomials of the
reciprocal are not known to the last bit.
"""

from __future__ import annotations

import numpy as np

from openqnn.ir import Array, Node
from openqnn.targets.htp.kernels.bytes.products import scale_of
from openqnn.targets.htp.kernels.words.curves import mantissa

HALF_TURN = 1 << 15
QUARTER = 1 << 14
FRACTION = 16  # bits behind the point in what a step of the input is, in 65536ths of a turn
MANTISSA = 15  # bits of the factor that takes a result to steps of the output
LESS = 1e-5  # by how much HTP has the ratio too small that this factor is rounded from

# In 4 pieces of a quarter turn: coefficients of t^0 to t^3 for t in [0, 1) along the quarter, in halves of
# the result's last bit, but for t^3, which is in whole ones. Sines have 13 bits behind the point, cosines 14.
SINES = np.array([
    (1, 25738, -34, -5197), (-31, 26082, -1286, -4405), (-419, 28334, -5694, -2951),
    (-2146, 35125, -14642, -975),
])  # fmt: skip
COSINES = np.array([
    (32769, 24, -40985, 1950), (32634, 1526, -46801, 5902), (31904, 5846, -55430, 8809),
    (30619, 11029, -62432, 10394),
])  # fmt: skip
SINE_BITS, COSINE_BITS = 13, 14
# The same for the arc tangent of t in [0, 1), with 14 bits: coefficients of t^0 to t^2.
ARCS = np.array([(1, 33067, -1887), (-268, 35471, -4539), (-466, 36500, -5173), (299, 34566, -4563)])
ARC_BITS, RIGHT_ANGLE = 14, 25736
ONE = 1 << 15  # of what the arc tangent takes
# 1 / x for x in [1, 2) in 4 pieces, with 15 bits: coefficients of t^0 to t^4 for t = x - 1, in halves of the
# last bit, but for t^4, which is in whole ones.
INVERSES = np.array([
    (65537, -65523, 65090, -60076, 18475), (65460, -64324, 57817, -39465, 6990),
    (65034, -60854, 47061, -24428, 2990), (64142, -56025, 37201, -15430, 1442),
])  # fmt: skip


def sin(n: Node, x: Array) -> Array:
    turned, quarter, _ = _angle(n, x)
    return in_steps(n, np.sign(x) * turned * _polynomial(SINES, quarter), SINE_BITS)


def cos(n: Node, x: Array) -> Array:
    turned, quarter, second = _angle(n, x)
    return in_steps(n, turned * second * _polynomial(COSINES, quarter), COSINE_BITS)


def atan(n: Node, x: Array) -> Array:
    """Polynomials up to 1, and of the reciprocal beyond."""
    by, exponent = mantissa(scale_of(n.x(0)) * ONE)
    size = np.floor(np.ldexp(np.abs(x) * float(by), exponent - MANTISSA)).astype(np.int64)
    t = np.minimum(2 * np.where(size < ONE, size, _inverse(np.maximum(size, ONE))), 2 * ONE - 1)
    arc = _horner(ARCS[t >> 14], t)
    return in_steps(n, np.sign(x) * np.where(size < ONE, arc, RIGHT_ANGLE - arc), ARC_BITS)


def _inverse(size: Array) -> Array:
    """The reciprocal of numbers of 1 and more, by that of their highest 17 bits."""
    twos = np.floor(np.log2(size)).astype(np.int64) - MANTISSA
    t = (2 * size >> twos) - 2 * ONE
    return _horner(INVERSES[t >> 14], t) >> twos


def _angle(n: Node, x: Array) -> tuple[Array, Array, Array]:
    """The sign of the half turn that x is in, how far it is in a quarter, and the sign of that."""
    by = int(np.rint(scale_of(n.x(0)) * HALF_TURN / np.pi * (1 << FRACTION)))
    angle = np.abs(x) * by >> FRACTION
    left = angle & (HALF_TURN - 1)
    first = left < QUARTER
    turned = np.where(angle & HALF_TURN, -1, 1)
    return turned, np.where(first, left, HALF_TURN - 1 - left), np.where(first, 1, -1)


def _polynomial(table: Array, quarter: Array) -> Array:
    return _horner(table[quarter >> 12], quarter << 2)


def _horner(c: Array, t: Array) -> Array:
    """A polynomial of fractions of 16 bits; each product is cut to whole numbers."""
    found = c[:, -1]
    for coefficient in c.T[-2::-1]:
        found = (coefficient << 15) + found * t >> 16
    return found


def in_steps(n: Node, y: Array, bits: int) -> Array:
    """Rounded to steps of the output, halves away from zero, by a factor of 15 bits.

    HTP rounds that from a ratio that is a little too small; by 0.97e-5 to 1.03e-5, all encodings tried say.
    """
    ratio = np.ldexp(1.0, -bits) / scale_of(n.out)
    shift = MANTISSA - 1 - int(np.floor(np.log2(ratio)))
    by = np.ldexp(np.rint(np.ldexp(ratio * (1 - LESS), shift)), -shift)
    return (np.sign(y) * np.floor(np.abs(y) * by + 0.5)).astype(np.int64)
