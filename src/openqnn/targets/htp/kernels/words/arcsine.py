"""How HTP computes the arc sine of a 16-bit tensor, as measured on libQnnHtp.

Polynomials by pieces that get shorter towards 1, and a table for its last 32 numbers. Two numbers that are
neighbours along the last axis but one share a word of the processor, the second of them in its upper half;
the lower half is not cleared, so that the first number is there as more bits of the second one. With all
stored integers, such neighbours and all encodings and shapes tried, these are HTP's very results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, offset_of, scale_of
from openqnn.targets.htp.kernels.words.curves import FACTOR, STORED, is_wide, mantissa
from openqnn.targets.htp.kernels.words.trigonometry import in_steps

RESULT = 15  # bits behind the point of a result; polynomials leave out the last one

# Coefficients of t^0 to t^3 for t in [0, 1) along the piece: pieces of 1/16 up to 7/8, of 1/128 beyond.
COARSE = np.array([
    (1, 16384, 0, 686), (2050, 16416, 256, 711), (4108, 16514, 522, 762), (6182, 16680, 807, 846),
    (8281, 16921, 1122, 973), (10415, 17248, 1485, 1157), (12597, 17674, 1916, 1427),
    (14839, 18221, 2446, 1831), (17158, 18919, 3124, 2454), (19577, 19817, 4029, 3464),
    (22124, 20991, 5296, 5224), (24840, 22566, 7182, 8613), (27790, 24781, 10207, 16214),
    (31079, 28140, 15494, 38154),
])  # fmt: skip
FINE = np.array([
    (34913, 4230, 493, 138), (35450, 4361, 544, 163), (36004, 4504, 605, 193), (36577, 4664, 677, 234),
    (37171, 4845, 765, 291), (37789, 5050, 874, 365), (38434, 5285, 1009, 469), (39112, 5560, 1184, 621),
    (39826, 5886, 1413, 850), (40586, 6279, 1727, 1208), (41400, 6769, 2171, 1851), (42284, 7401, 2838, 3079),
    (43259, 8261, 3917, 5784), (44364, 9528, 5804, 13601), (45672, 11710, 8827, 51293),
])  # fmt: skip
# Those of t^0 to t^2 in pieces of 1/2048, from 127/128 on.
FINEST = np.array([
    (47374, 2051, 536), (47504, 2118, 593), (47639, 2192, 660), (47779, 2275, 741), (47924, 2367, 840),
    (48075, 2472, 963), (48233, 2592, 1119), (48400, 2731, 1323), (48576, 2895, 1597), (48763, 3094, 1980),
    (48964, 3339, 2547), (49183, 3653, 3447), (49425, 4074, 5043), (49699, 4676, 8420), (50025, 5604, 18693),
])  # fmt: skip
# Of each of them: bits of a piece, bits of t, and how many bits more than the result the coefficients have.
CUBIC, SQUARE = (1, 4, 7, 10), (1, 5, 9)
PIECES = ((COARSE, 12, 13, CUBIC), (FINE, 9, 13, CUBIC), (FINEST, 5, 12, SQUARE))
LAST = np.array([
    50463, 50480, 50497, 50513, 50531, 50548, 50566, 50585, 50603, 50622, 50642, 50662, 50682, 50703, 50725,
    50747, 50770, 50794, 50819, 50844, 50871, 50899, 50928, 50959, 50992, 51028, 51067, 51109, 51158, 51215,
    51290, 51471,
])  # fmt: skip


def asin(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A table of sizes and of as many bits of the neighbour as count, for either sign."""
    if not is_wide(n.x(0)) or not is_wide(n.out):
        return None
    number = np.arange(STORED) + offset_of(n.x(0))
    by, exponent = mantissa(scale_of(n.x(0)) * STORED)
    size = np.floor(np.ldexp(np.abs(number) * float(by), exponent - FACTOR)).astype(np.int64) % STORED
    arcs, first, parts = _arcs()
    table = np.concatenate([in_steps(n, sign * arcs, RESULT) for sign in (1, -1)]) - offset_of(n.out)
    stored = b.const(np.clip(table, 0, STORED - 1).astype(n.out.dtype.numpy))
    start = first[size] + np.where(number < 0, len(arcs), 0)
    here = b.cast(x[0], np.int32)
    index = b.op("Gather", b.const(start, np.int32), here)
    if n.x(0).rank > 1 and n.x(0).shape[-2] > 1:
        below = _neighbours(n, b, b.op("Gather", b.const(size, np.int32), here))
        part = b.op("Mul", below, b.op("Gather", b.const(parts[size], np.int32), here))
        index = b.op("Add", index, b.op("Div", part, b.const(STORED, np.int32)))
    return b.op("Gather", stored, index)


def by_place(n: Node) -> bool:
    """Whether a result depends on where a number is."""
    return is_wide(n.x(0)) and is_wide(n.out)


def _neighbours(n: Node, b: Body, size: str) -> str:
    """Along the last axis but one, what is before every second number; zero for the others."""
    *_, along, _ = shape = n.x(0).shape
    rest = b.op("Slice", size, b.ints(0), b.ints(along - 1), b.ints(len(shape) - 2))
    none = b.const(np.zeros((*shape[:-2], 1, shape[-1])), np.int32)
    second = (np.arange(along) % 2).reshape(-1, 1)
    return b.op("Mul", b.op("Concat", none, rest, axis=len(shape) - 2), b.const(second, np.int32))


@cache
def _arcs() -> tuple[Array, Array, Array]:
    """All results; by size, where the first is and how many there are, one after the other."""
    found: list[Array] = []
    parts: list[Array] = []
    for table, piece, bits, more in PIECES:
        found += [_polynomial(c, np.arange(1 << bits), bits, more) << 1 for c in table]
        parts.append(np.full(len(table) << piece, 1 << bits - piece))
    counts = np.concatenate([*parts, np.ones_like(LAST)])
    return np.concatenate([*found, LAST]), np.cumsum(counts) - counts, counts


def _polynomial(c: Array, t: Array, bits: int, more: Sequence[int]) -> Array:
    """Evaluates a polynomial at fractions of that many bits; a product is cut to the bits of what it is added
    to, the last one after that."""
    found = c[-1]
    for i in range(len(c) - 2, 0, -1):
        found = c[i] + (found * t >> bits + more[i + 1] - more[i])
    last = bits + more[1]
    return (c[0] << last - more[0]) + found * t >> last
