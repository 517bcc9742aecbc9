"""How HTP computes roots of a 16-bit tensor, as measured on libQnnHtp: a small table and a step of Newton's.

With all 65536 stored integers and all encodings tried, these are its very results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, scale_of, single
from openqnn.targets.htp.kernels.words.curves import (
    FACTOR,
    HALF,
    STORED,
    by_table,
    is_wide,
    mantissa,
    nearest,
)

PIECE = 10  # bits of a piece of the table, in the middle of which its numbers are right
FIRST = 13  # bits of 1.0 in the table
ROOT = 17  # bits of 1.0 in a reciprocal root
CUT = 8  # bits that a square times x loses
LARGEST = 16  # exponent of a ratio


def square_root(n: Node, x: Array) -> Array:
    """x times the reciprocal of its root."""
    v, root, twos = _reciprocal(x)
    by, exponent = _ratio(np.sqrt(float(single(scale_of(n.x(0))))) / float(single(scale_of(n.out))))
    scaled = nearest(v * root * by, FACTOR)
    return _rounded(scaled, ROOT - min(exponent, LARGEST) + twos)


def reciprocal_root(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Where an output of 1.0 is too many steps for 16 bits, HTP computes in floating point."""
    if not is_wide(n.x(0)) or not is_wide(n.out):
        return None
    by, exponent = _ratio(1 / (np.sqrt(float(single(scale_of(n.x(0))))) * float(single(scale_of(n.out)))))
    if exponent > LARGEST:
        return None

    def rule(n: Node, stored: Array) -> Array:
        _, root, twos = _reciprocal(stored)
        return _rounded(root * by, ROOT + FACTOR - exponent - twos)

    return by_table(rule)(n, b, x, compute)


def _reciprocal(x: Array) -> tuple[Array, Array, Array]:
    """x in [2^14, 2^16), the reciprocal of its root, and how many times x was quadrupled.

    HTP has no sign here, what is below zero becomes a large number; and zero has the reciprocal zero.
    """
    unsigned = x & STORED - 1
    positive = np.maximum(unsigned, 1)
    twos = (15 - np.floor(np.log2(positive)).astype(np.int64)) // 2
    v = positive << 2 * twos
    middle = (v >> PIECE << PIECE) + (1 << PIECE - 1)
    first = np.rint((1 << FIRST) / np.sqrt(middle)).astype(np.int64)
    left = (3 << 2 * FIRST - CUT) - (v * first * first >> CUT)
    return v, np.where(unsigned > 0, first * left + HALF - 1 >> FACTOR, 0), twos


def _ratio(ratio: float) -> tuple[int, int]:
    """15 bits and an exponent, also of what is rounded up to the next power of two."""
    by, exponent = mantissa(ratio)
    return (by >> 1, exponent + 1) if by == 1 << FACTOR else (by, exponent)


def _rounded(x: Array, bits: Array) -> Array:
    """Integers over powers of two, halves rounded up; `bits` is 1 or more."""
    return x + (1 << np.minimum(bits - 1, 62)) >> np.minimum(bits, 63)
