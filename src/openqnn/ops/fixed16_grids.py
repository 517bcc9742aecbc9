"""How HTP samples a 16-bit image at free coordinates, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.body import Body
from openqnn.ops.fixed import Compute, offset_of, rounded, scale_of, single
from openqnn.ops.fixed16 import STORED, is_wide

HALF = STORED / 2
FACTOR = 15  # bits behind the point of what a step of a coordinate is


def grid_sample(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Places have 16 bits behind the point; between two pixels, and then between two rows, HTP rounds.

    Results are rounded to steps of the image first and to those of the output then.
    """
    if n.enum("mode") != "BILINEAR" or not all(is_wide(v) for v in (n.x(0), n.x(1), n.out)):
        return None
    batches, height, width, channels = n.x(0).shape
    sizes = np.array([width, height], np.float64)
    reflects = n.enum("padding_mode") == "REFLECTION"
    places = (_reflected if reflects else _places)(n, b, x[1], sizes)
    if n.enum("padding_mode") != "ZEROS":
        places = b.op("Min", b.op("Max", places, b.const(np.zeros(2))), b.const((sizes - 1) * STORED))
    one = b.const(float(STORED))
    low = b.op("Floor", b.op("Div", places, one))
    parts = b.cast(b.op("Div", b.op("Sub", places, b.op("Mul", low, one)), one), np.float32)
    across, down = b.ops("Split", parts, count=2, axis=3, num_outputs=2)
    image = b.reshape(b.transpose(b.cast(x[0], np.float32), (0, 2, 3, 1)), (-1, channels))
    zero = -offset_of(n.x(0))
    first = np.arange(batches).reshape(-1, 1, 1) * (height * width)

    def pixel(right: int, below: int) -> str:
        at = b.op("Add", low, b.const(np.array([right, below], np.float64)))
        inside = b.op("Min", b.op("Max", at, b.const(np.zeros(2))), b.const(sizes - 1))
        rows = b.op("ReduceSum", b.op("Mul", inside, b.const(np.array([1.0, width]))), b.ints(3), keepdims=0)
        index = b.op("Add", b.cast(rows, np.int32), b.const(first, np.int32))
        found = b.op("Gather", image, index)
        if n.enum("padding_mode") != "ZEROS":
            return found
        off = b.op("ReduceMax", b.op("Abs", b.op("Sub", at, inside)), b.ints(3), keepdims=1)
        return b.op("Where", b.cast(off, np.bool_), b.const(zero, np.float32), found)

    above, below = (_between(b, pixel(0, row), pixel(1, row), across) for row in (0, 1))
    found = b.op("Sub", _between(b, above, below, down), b.const(zero, np.float32))
    found = b.transpose(found, (0, 3, 1, 2))
    return rounded(b, found, n.out, float(single(scale_of(n.out)) / single(scale_of(n.x(0)))))


def _places(n: Node, b: Body, grid: str, sizes: Array) -> str:
    """Coordinates in 65536ths of a pixel: a factor and a constant per axis, both rounded."""
    step = float(single(scale_of(n.x(1))))
    per_one = (sizes - 1) / 2 if n.flag("align_corners") else sizes / 2
    middle = np.rint(((HALF + offset_of(n.x(1))) * step * per_one + (sizes - 1) / 2) * STORED)
    return _line(b, grid, _cut(step * per_one * STORED), middle)


def _reflected(n: Node, b: Body, grid: str, sizes: Array) -> str:
    """The same by coordinates of 15 bits, turned back at the first and the last pixel, or at their edges."""
    step, corners = float(single(scale_of(n.x(1)))), n.flag("align_corners")
    moved = np.rint((HALF + offset_of(n.x(1))) * step * HALF)
    ones = _line(b, grid, _cut(np.asarray(step * HALF)), moved)
    last, edge = (sizes - 1) * STORED, 0.0 if corners else STORED / 2
    span = np.maximum(last + 2 * edge, 1.0)
    places = b.op("Mul", ones, b.const((sizes - 1 if corners else sizes) * 1.0))
    size = b.op("Abs", b.op("Add", places, b.const(last / 2 + edge)))
    turned = b.op("Sub", b.op("Mod", size, b.const(2 * span), fmod=1), b.const(span))
    return b.op("Sub", b.const(span - edge), b.op("Abs", turned))


def _cut(factor: Array) -> Array:
    return np.rint(np.ldexp(factor, FACTOR)) / (1 << FACTOR)


def _line(b: Body, grid: str, factor: Array, more: Array) -> str:
    stored = b.op("Sub", b.cast(grid, np.float64), b.const(HALF))
    return b.op("Floor", b.op("Add", b.op("Mul", stored, b.const(factor)), b.const(more + 0.5)))


def _between(b: Body, one: str, other: str, part: str) -> str:
    """A part of the way from one to the other, rounded, and halves up; no pixel counts more than 65535."""
    rest = b.op("Sub", b.const(1.0, np.float32), part)
    rest = b.op("Min", rest, b.const(1 - 1 / STORED, np.float32))
    total = b.op("Add", b.op("Mul", one, rest), b.op("Mul", other, part))
    return b.op("Floor", b.op("Add", total, b.const(0.5, np.float32)))
