"""Pooling, resizing, sampling, transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import numpy as np

from openqnn.ir import Array, Node, Value
from openqnn.ops import Builder
from openqnn.targets.htp.ranks import view
from openqnn.targets.htp.rules import Instead, again, rule

# -- pooling -------------------------------------------------------------------------------------------------


def _pads(node: Node) -> list[tuple[int, int]]:
    """Trailing pads that make rounding down give the windows that the output has."""
    sizes, kernel, stride = node.x(0).shape[1:-1], node.ints("filter_size"), node.ints("stride")
    needed = [(c - 1) * stride[i] + kernel[i] - sizes[i] for i, c in enumerate(node.out.shape[1:-1])]
    return [(row[0], max(row[1], needed[i] - row[0])) for i, row in enumerate(node.rows("pad_amount"))]


@rule("PoolAvg2d", "PoolAvg3d")
def average_by_convolution(node: Node, b: Builder) -> Instead:
    # With pads the numbers are wrong (3x3, pads of 1 or 2, few channels) or execution crashes (2x2, trailing
    # pads); a Pad before it is merged into it and changes nothing. A convolution with ones sums the windows.
    if not any(any(row) for row in node.rows("pad_amount")) and node.enum("rounding_mode") == "FLOOR":
        return None
    x, pads = node.x(0), _pads(node)
    kernel, stride = node.ints("filter_size"), node.ints("stride")
    if x.rank == 4:
        total = _window_sums(b, x, kernel, stride, pads)
    else:
        batch, depth, height, width, channels = x.shape
        planes = view(b, x, (batch * depth, height, width, channels))
        flat = _window_sums(b, planes, kernel[1:], stride[1:], pads[1:])
        rows, columns = flat.shape[1:3]
        deep = view(b, flat, (batch, depth, rows * columns, channels))
        none = (0, 0)
        total = _window_sums(b, deep, (kernel[0], 1), (stride[0], 1), [pads[0], none])
        total = view(b, total, (batch, total.shape[1], rows, columns, channels))
    return b.mul(_front(b, total, node.out.shape), b.const(1 / _window_counts(node, pads), x.dtype.numpy))


def _window_sums(
    b: Builder, x: Value, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[tuple[int, int]]
) -> Value:
    ones = b.const(np.ones((*kernel, 1, x.shape[-1])), x.dtype.numpy)
    return b.depthwise_conv(x, ones, None, stride=stride, pad_amount=pads)


def _window_counts(node: Node, pads: Sequence[tuple[int, int]]) -> Array:
    """What counts in each window: the image alone, or also the pads that were asked for."""
    kernel, stride = node.ints("filter_size"), node.ints("stride")
    grid = np.ones((), np.float64)
    for i, size in enumerate(node.x(0).shape[1:-1]):
        before, after = pads[i][0], node.rows("pad_amount")[i][1]
        start = np.arange(node.out.shape[1 + i]) * stride[i] - before
        low, high = (-before, size + after) if node.flag("count_pad_for_edges") else (0, size)
        inside = np.minimum(start + kernel[i], high) - np.maximum(start, low)
        grid = np.multiply.outer(grid, np.maximum(inside, 1))
    return grid[None, ..., None]


@rule("PoolMax3d")
def maximum_of_volume(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": the planes first, then the depth.
    batch, depth, height, width, channels = node.x(0).shape
    kernel, stride, pads = node.ints("filter_size"), node.ints("stride"), _pads(node)
    planes = view(b, node.x(0), (batch * depth, height, width, channels))
    flat = b.pool_max(planes, kernel[1:], stride[1:], pads[1:])
    rows, columns = flat.shape[1:3]
    deep = view(b, flat, (batch, depth, rows * columns, channels))
    done = b.pool_max(deep, (kernel[0], 1), (stride[0], 1), (pads[0], (0, 0)))
    whole = view(b, done, (batch, done.shape[1], rows, columns, channels))
    return _front(b, whole, node.out.shape)


def _front(b: Builder, x: Value, shape: Sequence[int]) -> Value:
    """The first elements along every axis."""
    return x if x.shape == tuple(shape) else b.strided_slice(x, [(0, d, 1) for d in shape])


@rule("L2Pool2d")
def quadratic_mean(node: Node, b: Builder) -> Instead:
    # "OpValidator not found".
    size, stride, pads = node.ints("filter_size"), node.ints("stride"), node.rows("pad_amount")
    return b.sqrt(b.pool_avg(b.square(node.x(0)), size, stride, pads))


# -- resizing ------------------------------------------------------------------------------------------------


@rule("Resize")
def nearest_by_gather(node: Node, b: Builder) -> Instead:
    # "nearest_mode has incorrect Value 0, expected equal to 2": FLOOR; with ALIGN_CORNERS, ROUND_PREFER_CEIL.
    if node.enum("interpolation_mode") != "NEAREST":
        return None
    corners = node.enum("transformation_mode") == "ALIGN_CORNERS"
    if node.enum("nearest_mode") == ("ROUND_PREFER_CEIL" if corners else "FLOOR") and node.x(0).rank == 4:
        return None
    return _gathered(node, b, node.enum("transformation_mode"), node.enum("nearest_mode"))


def _gathered(node: Node, b: Builder, mode: str, rounding: str) -> Value:
    x = node.x(0)
    for axis in range(1, x.rank - 1):
        old, new = node.x(0).shape[axis], node.out.shape[axis]
        where = [_rounded(_coordinate(i, old, new, mode), rounding) for i in range(new)]
        index = np.clip(where, 0, old - 1)
        if old != new or list(index) != list(range(new)):
            x = b.gather(x, b.const(index, np.int32), axis=axis)
    return x if x is not node.x(0) else b.reshape(x, x.shape)


def _coordinate(i: int, old: int, new: int, mode: str) -> float:
    if mode == "ALIGN_CORNERS":
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    if mode == "ASYMMETRIC":
        return i * old / new
    return 0.0 if mode == "PYTORCH_HALF_PIXEL" and new == 1 else (i + 0.5) * old / new - 0.5


def _rounded(x: float, rounding: str) -> int:
    if rounding == "FLOOR":
        return floor(x)
    if rounding == "CEIL":
        return ceil(x)
    return ceil(x - 0.5) if rounding == "ROUND_PREFER_FLOOR" else floor(x + 0.5)


@rule("Resize")
def single_row_of_pytorch(node: Node, b: Builder) -> Instead:
    # PYTORCH_HALF_PIXEL takes the first row where one is left; HTP takes the middle as HALF_PIXEL does.
    if node.enum("transformation_mode") != "PYTORCH_HALF_PIXEL":
        return None
    x = node.x(0)
    for axis in range(1, x.rank - 1):
        if node.out.shape[axis] == 1 and x.shape[axis] > 1:
            x = b.part(x, axis, 0, 1)
    return again(b, node, x, shape=node.out.shape, transformation_mode="HALF_PIXEL")


# -- sampling ------------------------------------------------------------------------------------------------

_ON_PIXEL = "htp_on_pixel"


@rule("GridSample")
def nearest_even_pixel(node: Node, b: Builder) -> Instead:
    # NEAREST rounds halves up, ONNX to even: the grid is moved to the middle of the right pixel before.
    source = node.x(1).producer
    if node.enum("mode") != "NEAREST" or (source is not None and source.name.startswith(_ON_PIXEL)):
        return None
    grid, corners = node.x(1), node.flag("align_corners")
    height, width = node.x(0).shape[1:3]
    sizes = [width - 1, height - 1] if corners else [width, height]
    scale = b.const(np.maximum(sizes, 1) / 2, grid.dtype.numpy)
    shift = b.const(np.asarray(sizes) / 2 - (0 if corners else 0.5), grid.dtype.numpy)
    pixel = b.round(b.add(b.mul(grid, scale), shift))
    b.stem = f"{_ON_PIXEL}.{b.stem}"
    back = b.div(b.sub(pixel, shift), scale)
    return again(b, node, node.x(0), back)


# -- convolution ---------------------------------------------------------------------------------------------


@rule("TransposeConv2d")
def output_padding_by_pads(node: Node, b: Builder) -> Instead:
    # output_padding beyond the pads gives wrong numbers in what it adds: fewer trailing pads, then zeros.
    extra = node.ints("output_padding")
    if not any(extra):
        return None
    rows = [(first, last - more) for (first, last), more in zip(node.rows("pad_amount"), extra, strict=True)]
    kept = tuple((first, max(last, 0)) for first, last in rows)
    done = again(b, node, *node.inputs, pad_amount=kept, output_padding=(0, 0))
    grow = tuple((0, max(-last, 0)) for _, last in rows)
    if not any(map(any, grow)):
        return done
    return _grown(node, b, done, grow)


def _grown(node: Node, b: Builder, x: Value, grow: Sequence[tuple[int, int]]) -> Value:
    """What lies beyond the last window is the bias alone."""
    padded = b.pad(x, ((0, 0), *grow, (0, 0)))
    if not node.has(2):
        return padded
    mask = np.ones((1, *padded.shape[1:3], 1))
    mask[:, : x.shape[1], : x.shape[2]] = 0
    bias = b.mul(b.const(mask, x.dtype.numpy), node.x(2))
    return b.add(padded, bias)


@rule("Conv1d", "DepthWiseConv1d", "TransposeConv1d")
def convolution_of_a_line(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": an image of one row.
    of_image = {"Conv1d": b.conv, "DepthWiseConv1d": b.depthwise_conv, "TransposeConv1d": b.transpose_conv}[
        node.op
    ]
    x, weight = node.x(0), node.x(1)
    row = view(b, x, (x.shape[0], 1, *x.shape[1:]))
    kernel = view(b, weight, (1, *weight.shape))
    params: dict[str, Any] = {
        k: (1 if k in ("stride", "dilation") else 0, node.int(k))
        for k in ("stride", "dilation", "output_padding")
        if k in node.params
    }
    params["pad_amount"] = ((0, 0), node.ints("pad_amount"))
    if "group" in node.params:
        params["group"] = node.int("group")
    done = of_image(row, kernel, node.inputs[2] if node.has(2) else None, **params)
    return view(b, done, node.out.shape)


@rule("Col2Im")
def fold_by_convolution(node: Node, b: Builder) -> Instead:
    # "OpValidator not found": a transposed convolution whose filter puts every column where it belongs.
    (kh, kw), (dh, dw) = node.ints("kernel_size"), node.ints("dilation")
    (sh, sw), ((top, bottom), (left, right)) = node.ints("stride"), node.rows("pad_amount")
    batch, height, width, channels = node.out.shape
    rows = (height + top + bottom - dh * (kh - 1) - 1) // sh + 1
    columns = (width + left + right - dw * (kw - 1) - 1) // sw + 1
    image = view(b, b.transpose(node.x(0), (0, 2, 1)), (batch, rows, columns, channels * kh * kw))
    weight = np.zeros((dh * (kh - 1) + 1, dw * (kw - 1) + 1, channels * kh * kw, channels))
    for c, i, j in np.ndindex(channels, kh, kw):
        weight[i * dh, j * dw, (c * kh + i) * kw + j, c] = 1
    kernel = b.const(weight, node.x(0).dtype.numpy)
    full = b.transpose_conv(image, kernel, None, stride=(sh, sw), pad_amount=((0, 0), (0, 0)))
    return _cut_to(b, full, (top, left), node.out.shape)


def _cut_to(b: Builder, x: Value, start: tuple[int, int], shape: Sequence[int]) -> Value:
    """The window of an image that begins at `start`; zeros where the image ends before."""
    lacking = [max(0, s + d - have) for s, d, have in zip(start, shape[1:3], x.shape[1:3], strict=True)]
    if any(lacking):
        x = b.pad(x, ((0, 0), (0, lacking[0]), (0, lacking[1]), (0, 0)))
    ranges = ((0, x.shape[0], 1), *((s, s + d, 1) for s, d in zip(start, shape[1:3], strict=True)))
    return b.strided_slice(x, (*ranges, (0, x.shape[3], 1)))
