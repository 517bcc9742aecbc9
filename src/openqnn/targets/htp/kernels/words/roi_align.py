"""How HTP samples regions of a 16-bit image, as measured on libQnnHtp: what a pixel counts has 10 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, dequantized, offset_of, rounded, scale_of
from openqnn.targets.htp.kernels.words.curves import is_wide

SHARES = 1024  # what a pixel counts in a sample is a multiple of 1 / this
LARGEST = 1 << 26  # pixels that are looked up at once


@dataclass(frozen=True, slots=True)
class Samples:
    """Along one axis, [regions, bins, samples]: where they are, and how much each counts, if not the same."""

    places: str
    weights: Array
    most: int


def roi_align(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """What each of the four pixels around a sample counts is rounded, halves up.

    With as many samples as a region needs, it has to be a constant.
    """
    adaptive = not n.int("num_samples_y")
    if not all(is_wide(v) for v in (n.x(0), n.x(1), n.out)) or (adaptive and x[1] not in b.constants):
        return None
    down, across = (_samples(n, b, x, axis) for axis in (1, 0))
    count, height, width, channels = n.out.shape
    batches, rows, columns, _ = n.x(0).shape
    corners = 4 * down.most * across.most
    if count * height * width * corners * channels > LARGEST:
        return None
    row, share = _pixels(b, down, rows, (count, height, 1, down.most, 1, 2, 1))
    column, other = _pixels(b, across, columns, (count, 1, width, 1, across.most, 1, 2))
    one = b.const(SHARES, np.float32)
    shares = b.op("Mul", b.op("Mul", share, other), one)
    shares = b.op("Div", b.op("Floor", b.op("Add", shares, b.const(0.5, np.float32))), one)
    weights = down.weights[:, :, None, :, None] * across.weights[:, None, :, None, :]
    shares = b.op("Mul", shares, b.const(weights[..., None, None], np.float32))
    first = b.op("Mul", b.reshape(b.cast(x[2], np.int32), (count, *[1] * 6)), b.const(rows, np.int32))
    index = b.op("Mul", b.op("Add", first, row), b.const(columns, np.int32))
    index = b.op("Add", index, column)
    image = b.transpose(dequantized(b, x[0], n.x(0)), (0, 2, 3, 1))
    pixels = b.op("Gather", b.reshape(image, (batches * rows * columns, channels)), index)
    bins = count * height * width
    found = b.op(
        "MatMul", b.reshape(shares, (bins, 1, corners)), b.reshape(pixels, (bins, corners, channels))
    )
    found = b.transpose(b.reshape(found, (count, height, width, channels)), (0, 3, 1, 2))
    return rounded(b, found, n.out, scale_of(n.out))


def _samples(n: Node, b: Body, x: Sequence[str], axis: int) -> Samples:
    """Sampling points of each bin along x (0) or y (1)."""
    bins, samples = n.out.shape[2 - axis], n.int(("num_samples_x", "num_samples_y")[axis])
    ratio, aligned = n.floats("img_size_ratio")[1 - axis], n.flag("aligned")
    corners = b.op("Mul", dequantized(b, x[1], n.x(1)), b.const(1 / ratio, np.float32))
    start, end = (b.op("Slice", corners, b.ints(i), b.ints(i + 1), b.ints(1)) for i in (axis, axis + 2))
    size = b.op("Sub", end, start)
    if aligned:
        start = b.op("Sub", start, b.const(0.5, np.float32))
    else:
        size = b.op("Max", size, b.const(1.0, np.float32))
    counts = np.full((1, 1, 1), samples) if samples else _needed(n, b.constants[x[1]], axis, bins)
    most = int(counts.max())
    index = np.arange(most)
    # In the usual order, in float32: next to a half of what a pixel counts the last bit decides.
    width = b.op("Unsqueeze", b.op("Div", size, b.const(bins, np.float32)), b.ints(2))
    first = b.op("Mul", width, b.const(np.arange(bins)[:, None], np.float32))
    first = b.op("Add", b.op("Unsqueeze", start, b.ints(2)), first)
    inner = b.op("Mul", width, b.const(index + 0.5, np.float32))
    inner = b.op("Div", inner, b.const(counts, np.float32))
    weights = np.broadcast_to(np.where(index < counts, 1 / counts, 0.0), (len(counts), bins, most))
    return Samples(b.op("Add", first, inner), weights, most)


def _needed(n: Node, stored: Array, axis: int, bins: int) -> Array:
    """How many samples a bin of each region has along an axis: one for each pixel that it begins."""
    real = (stored.astype(np.float64) + offset_of(n.x(1))) * scale_of(n.x(1))
    size = (real[:, axis + 2] - real[:, axis]) / n.floats("img_size_ratio")[1 - axis]
    least = 0.0 if n.flag("aligned") else 1.0
    return np.maximum(np.ceil(np.maximum(size, least) / bins), 1).astype(np.int64)[:, None, None]


def _pixels(b: Body, along: Samples, size: int, shape: tuple[int, ...]) -> tuple[str, str]:
    """The two pixels next to each sample along an axis, and what they count; nothing off the image.

    Beside the last pixel both are that one, and what each of them counts is rounded as elsewhere. `shape` has
    a 2 where the pixels are.
    """
    single = [1 if i >= 5 else d for i, d in enumerate(shape)]
    axis = shape.index(2, 5)
    places = b.reshape(along.places, single)
    inside = b.op("Max", places, b.const(0.0, np.float32))
    low = b.op("Floor", inside)
    part = b.op("Sub", inside, low)
    middle, reach = b.const((size - 1) / 2, np.float32), b.const((size + 1) / 2, np.float32)
    near = b.cast(b.op("LessOrEqual", b.op("Abs", b.op("Sub", places, middle)), reach), np.float32)
    both = b.op("Concat", b.op("Sub", b.const(1.0, np.float32), part), part, axis=axis)
    pixels = b.op("Concat", low, b.op("Add", low, b.const(1.0, np.float32)), axis=axis)
    pixels = b.op("Min", pixels, b.const(size - 1.0, np.float32))
    return b.cast(pixels, np.int32), b.op("Mul", both, near)
