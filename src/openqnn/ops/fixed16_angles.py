"""How HTP computes sine, cosine and arc tangent of a 16-bit tensor, as measured on libQnnHtp.

These are its very integers, but for the arc tangent beyond 1.
"""

from __future__ import annotations

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.fixed import scale_of
from openqnn.ops.fixed16 import mantissa

HALF_TURN = 1 << 15
QUARTER = 1 << 14
FRACTION = 16  # bits behind the point in what a step of the input is, in 65536ths of a turn
MANTISSA = 15  # bits of the factor that takes a result to steps of the output

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


def sin(n: Node, x: Array) -> Array:
    turned, quarter, _ = _angle(n, x)
    return _steps(n, np.sign(x) * turned * _polynomial(SINES, quarter), SINE_BITS)


def cos(n: Node, x: Array) -> Array:
    turned, quarter, second = _angle(n, x)
    return _steps(n, turned * second * _polynomial(COSINES, quarter), COSINE_BITS)


def atan(n: Node, x: Array) -> Array:
    """Polynomials up to 1, and of the reciprocal beyond; that is exact here, and HTP's is a little off."""
    by, exponent = mantissa(scale_of(n.x(0)) * ONE)
    size = np.floor(np.ldexp(np.abs(x) * float(by), exponent - MANTISSA)).astype(np.int64)
    inverse = (ONE * ONE * 2) // np.maximum(size, ONE)
    t = np.minimum(np.where(size < ONE, 2 * size, inverse), 2 * ONE - 1)
    c = ARCS[t >> 14]
    slope = (c[:, 1] << 15) + c[:, 2] * t >> 16
    arc = (c[:, 0] << 15) + slope * t >> 16
    return _steps(n, np.sign(x) * np.where(size < ONE, arc, RIGHT_ANGLE - arc), ARC_BITS)


def _angle(n: Node, x: Array) -> tuple[Array, Array, Array]:
    """The sign of the half turn that x is in, how far it is in a quarter, and the sign of that."""
    by = int(np.rint(scale_of(n.x(0)) * HALF_TURN / np.pi * (1 << FRACTION)))
    angle = np.abs(x) * by >> FRACTION
    left = angle & (HALF_TURN - 1)
    first = left < QUARTER
    turned = np.where(angle & HALF_TURN, -1, 1)
    return turned, np.where(first, left, HALF_TURN - 1 - left), np.where(first, 1, -1)


def _polynomial(table: Array, quarter: Array) -> Array:
    """Each product is cut to whole numbers."""
    c, t = table[quarter >> 12], quarter << 2
    slope = (c[:, 2] << 15) + c[:, 3] * t >> 16
    slope = (c[:, 1] << 15) + slope * t >> 16
    return (c[:, 0] << 15) + slope * t >> 16


def _steps(n: Node, y: Array, bits: int) -> Array:
    """Rounded to steps of the output, halves away from zero: a factor is rounded to 16 bits and cut to 15."""
    ratio = np.ldexp(1.0, -bits) / scale_of(n.out)
    shift = MANTISSA - 1 - int(np.floor(np.log2(ratio)))
    by = np.ldexp(np.floor(np.rint(np.ldexp(ratio, shift + 1)) / 2), -shift)
    return (np.sign(y) * np.floor(np.abs(y) * by + 0.5)).astype(np.int64)
