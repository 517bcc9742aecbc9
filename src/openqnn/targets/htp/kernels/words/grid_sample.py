"""How HTP samples a 16-bit image at free coordinates, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, offset_of, rounded, scale_of, single
from openqnn.targets.htp.kernels.words.curves import STORED, is_wide

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
    parts = b.op("Div", b.op("Sub", places, b.op("Mul", low, one)), one)
    across, down = b.ops("Split", parts, count=2, axis=3, num_outputs=2)
    image = b.reshape(b.transpose(b.cast(x[0], np.float64), (0, 2, 3, 1)), (-1, channels))
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
        return b.op("Where", b.cast(off, np.bool_), b.const(zero, np.float64), found)

    above, below = (_between(b, pixel(0, row), pixel(1, row), across) for row in (0, 1))
    found = b.cast(b.op("Sub", _between(b, above, below, down), b.const(zero, np.float64)), np.float32)
    found = b.transpose(found, (0, 3, 1, 2))
    return rounded(b, found, n.out, float(single(scale_of(n.out)) / single(scale_of(n.x(0)))))


def _places(n: Node, b: Body, grid: str, sizes: Array) -> str:
    """Coordinates in 65536ths of a pixel."""
    per_one = (sizes - 1) / 2 if n.flag("align_corners") else sizes / 2
    return _line(n, b, grid, per_one * STORED, (sizes - 1) / 2 * STORED)


def _reflected(n: Node, b: Body, grid: str, sizes: Array) -> str:
    """Samples by coordinates of 15 bits, turned back at the first and the last pixel, or at their edges.

    HTP has those of edges from the middle of the first pixel on, and adds half a pixel, which it has rounded.
    """
    corners = n.flag("align_corners")
    half = np.zeros(2) if corners else HALF / sizes
    ones = b.op("Add", _line(n, b, grid, np.full(2, HALF), -half), b.const(np.floor(half + 0.5)))
    last, edge = (sizes - 1) * STORED, 0.0 if corners else STORED / 2
    span = np.maximum(last + 2 * edge, 1.0)
    places = b.op("Mul", ones, b.const((sizes - 1 if corners else sizes) * 1.0))
    size = b.op("Abs", b.op("Add", places, b.const(last / 2 + edge)))
    turned = b.op("Sub", b.op("Mod", size, b.const(2 * span), fmod=1), b.const(span))
    return b.op("Sub", b.const(span - edge), b.op("Abs", turned))


def _line(n: Node, b: Body, grid: str, per_one: Array, more: Array) -> str:
    """Coordinates times `per_one`, and `more`: by a factor and a constant that are both rounded.

    The factor is one of float32 before, and so is the constant, which is that of a stored zero.
    """
    step = single(single(scale_of(n.x(1))).astype(np.float64) * per_one).astype(np.float64)
    factor = np.rint(np.ldexp(step, FACTOR)) / (1 << FACTOR)
    constant = np.rint(single(offset_of(n.x(1)) * factor + more).astype(np.float64))
    moved = b.op("Add", b.op("Mul", b.cast(grid, np.float64), b.const(factor)), b.const(constant + 0.5))
    return b.op("Floor", moved)


def _between(b: Body, one: str, other: str, part: str) -> str:
    """A part of the way from one to the other, rounded, and halves up; no pixel counts more than 65535.

    Products have 32 bits: in float32, some would be halves that are less.
    """
    rest = b.op("Sub", b.const(1.0, np.float64), part)
    rest = b.op("Min", rest, b.const(1 - 1 / STORED, np.float64))
    total = b.op("Add", b.op("Mul", one, rest), b.op("Mul", other, part))
    return b.op("Floor", b.op("Add", total, b.const(0.5, np.float64)))
