"""Ops that sample images elsewhere than at their pixels: resizing, warping, regions, windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Array, DType, Node, Shape
from openqnn.ops.gather import wide
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import INDEX, enum, f32, flag, i32, op, result, tensor, u32
from openqnn.ops.shape_rules import declared, window

# -- resizing ------------------------------------------------------------------------------------------------


def resized(n: Node) -> list[Shape]:
    """The declared output: batch and channels of the input, spatial sizes of its own."""
    (shape, *_), x = declared(n), n.x(0).shape
    if len(shape) != len(x) or (shape[0], shape[-1]) != (x[0], x[-1]) or min(shape) < 1:
        raise ShapeError(f"{n.where}: {list(x)} cannot be resized to {list(shape)}")
    return [shape]


def resized_one_way(n: Node) -> list[Shape]:
    if n.flag("align_corners") and n.flag("half_pixel_centers"):
        raise ShapeError(f"{n.where}: align_corners and half_pixel_centers exclude each other")
    return resized(n)


def _resize(n: Node, b: Body, x: str, mode: str, coordinates: str, **attrs: Any) -> str:
    shape = n.out.shape
    sizes = b.ints(shape[0], shape[-1], *shape[1:-1])
    return b.op("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode=coordinates, **attrs)


def resize(n: Node, b: Body, x: Sequence[str]) -> str:
    mode, coordinates = n.enum("interpolation_mode").lower(), n.enum("transformation_mode").lower()
    if mode == "nearest":
        return _resize(n, b, x[0], mode, coordinates, nearest_mode=n.enum("nearest_mode").lower())
    if mode == "linear":
        return _resize(n, b, x[0], mode, coordinates)
    return _resize_cubic(n, b, x[0], coordinates)


def _resize_cubic(n: Node, b: Body, x: str, coordinates: str) -> str:
    """Resizes as images of one channel: ONNX Runtime moves transpositions past Resize, and then has no
    kernel."""
    (batch, *old, channels), (_, *new, _) = n.x(0).shape, n.out.shape
    planes = b.reshape(x, (batch * channels, 1, *old))
    found = b.op(
        "Resize", planes, "", "", b.ints(batch * channels, 1, *new), mode="cubic",
        coordinate_transformation_mode=coordinates, cubic_coeff_a=n.float("cubic_coeff"),
        exclude_outside=int(n.flag("exclude_outside")),
    )  # fmt: skip
    return b.reshape(found, (batch, channels, *new))


def _coordinates(n: Node) -> str:
    if n.flag("align_corners"):
        return "align_corners"
    return "half_pixel" if n.flag("half_pixel_centers") else "asymmetric"


def resize_bilinear(n: Node, b: Body, x: Sequence[str]) -> str:
    return _resize(n, b, x[0], "linear", _coordinates(n), antialias=int(n.flag("antialias")))


def resize_nearest(n: Node, b: Body, x: Sequence[str]) -> str:
    """The pixel whose area holds the sample; rounding half up of a half-pixel coordinate is exactly that."""
    coordinates = _coordinates(n)
    rounding = "floor" if coordinates == "asymmetric" else "round_prefer_ceil"
    dtype = n.x(0).dtype.numpy
    if dtype.kind == "f" or dtype.itemsize == 1:
        return _resize(n, b, x[0], "nearest", coordinates, nearest_mode=rounding)
    # ONNX Runtime resizes no 16-bit integers; float32 holds them.
    real = _resize(n, b, b.cast(x[0], np.float32), "nearest", coordinates, nearest_mode=rounding)
    return b.cast(real, dtype)


@op
class Resize:
    """Resizes every spatial axis of channel-last data to the declared output size, as ONNX Resize does."""

    in0 = tensor((3, 4, 5), layout="N*C", onnx="NC*")
    out0 = result(layout="N*C", onnx="NC*")
    exclude_outside = flag(False)
    transformation_mode = enum(
        "HALF_PIXEL", HALF_PIXEL=0, PYTORCH_HALF_PIXEL=1, ALIGN_CORNERS=2, ASYMMETRIC=3
    )
    interpolation_mode = enum("NEAREST", NEAREST=0, LINEAR=1, CUBIC=2)
    nearest_mode = replace(
        enum("ROUND_PREFER_FLOOR", ROUND_PREFER_FLOOR=0, ROUND_PREFER_CEIL=1, FLOOR=2, CEIL=3),
        when=("interpolation_mode", "NEAREST"),
    )
    cubic_coeff = replace(f32(default=-0.75), when=("interpolation_mode", "CUBIC"))
    infer = resized
    lower = resize
    keeps_when = "interpolation_mode", "NEAREST"


@op
class ResizeBilinear:
    """Resizes an image to the declared output size by linear interpolation."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    align_corners = flag(False)
    half_pixel_centers = flag(False)
    antialias = flag(False)
    infer = resized_one_way
    lower = resize_bilinear


@op
class ResizeNearestNeighbor:
    """Resizes an image to the declared output size, taking the nearest pixel."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    align_corners = flag(False)
    half_pixel_centers = flag(False)
    infer = resized_one_way
    lower = resize_nearest
    keeps_values = True


# -- free sampling -------------------------------------------------------------------------------------------


def grid_sample_shape(n: Node) -> list[Shape]:
    x, grid = n.x(0).shape, n.x(1).shape
    if grid[-1] != 2 or grid[0] != x[0]:
        raise ShapeError(f"{n.where}: the grid {list(grid)} should be [{x[0]}, height, width, 2]")
    return [(x[0], *grid[1:3], x[-1])]


def grid_sample(n: Node, b: Body, x: Sequence[str]) -> str:
    mode = {"BILINEAR": "linear", "NEAREST": "nearest"}[n.enum("mode")]
    corners, padding = int(n.flag("align_corners")), n.enum("padding_mode").lower()
    return b.op("GridSample", *x, mode=mode, padding_mode=padding, align_corners=corners)


def _pixels(image: Array, batch: Array, y: Array, x: Array) -> Array:
    """Pixels at integral coordinates that broadcast; zero outside of the image."""
    height, width = image.shape[1:3]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    row, column = (np.clip(v, 0, size - 1).astype(np.intp) for v, size in ((y, height), (x, width)))
    return np.where(inside[..., None], image[batch, row, column], 0)


def _sample(image: Array, batch: Array, y: Array, x: Array, mode: str) -> Array:
    """Samples of an NHWC image at coordinates that broadcast; zero outside of the image."""
    if mode == "NEAREST_NEIGHBOR":
        y, x = (np.trunc(v + np.copysign(0.5, v)) for v in (y, x))
        return _pixels(image, batch, y, x)
    top, left = np.floor(y), np.floor(x)
    down, right = (y - top)[..., None], (x - left)[..., None]
    upper = _pixels(image, batch, top, left) * (1 - right) + _pixels(image, batch, top, left + 1) * right
    lower = (
        _pixels(image, batch, top + 1, left) * (1 - right) + _pixels(image, batch, top + 1, left + 1) * right
    )
    return upper * (1 - down) + lower * down


def crop_shape(n: Node) -> list[Shape]:
    return [(_boxes(n), *n.ints("resize_dims"), n.x(0).shape[-1])]


def _boxes(n: Node) -> int:
    """The number of boxes, each with an index into the batch."""
    boxes, batch = n.x(1).shape, n.x(2).shape
    if boxes[-1] != 4 or batch != boxes[:1]:
        raise ShapeError(f"{n.where}: boxes {list(boxes)} and indices {list(batch)}; [r, 4] and [r] expected")
    return boxes[0]


def _crop_axis(low: Array, high: Array, size: int, count: int) -> Array:
    """Sample positions along one axis, [boxes, count]; a single sample lies in the middle."""
    if count == 1:
        return ((low + high) / 2 * (size - 1))[:, None]
    steps = np.arange(count, dtype=np.float32)
    return low[:, None] * (size - 1) + steps * ((high - low) * (size - 1) / (count - 1))[:, None]


def crop_and_resize(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    image, boxes, batch = (np.asarray(a) for a in arrays)
    (height, width), (rows, columns) = image.shape[1:3], n.ints("resize_dims")
    y1, x1, y2, x2 = boxes.astype(np.float32).T
    y = _crop_axis(y1, y2, height, rows)[:, :, None]
    x = _crop_axis(x1, x2, width, columns)[:, None, :]
    y, x = np.broadcast_arrays(y, x)
    found = _sample(image, batch.astype(np.intp)[:, None, None], y, x, n.enum("interpolation_mode"))
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    return [np.where(inside[..., None], found, n.float("extrapolation_value"))]


def projection_shape(n: Node) -> list[Shape]:
    x, transform = n.x(0).shape, n.x(1).shape
    if transform != (x[0], 8):
        raise ShapeError(f"{n.where}: the transform {list(transform)} should be [{x[0]}, 8]")
    return [x]


def project_image(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    image, transform = (np.asarray(a) for a in arrays)
    count, height, width = image.shape[:3]
    a0, a1, a2, b0, b1, b2, c0, c1 = transform.astype(np.float32).T[:, :, None, None]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    depth = c0 * x + c1 * y + 1
    scale = np.divide(1, depth, out=np.full_like(depth, np.inf), where=depth != 0)
    with np.errstate(invalid="ignore"):
        sources = [(b0 * x + b1 * y + b2) * scale, (a0 * x + a1 * y + a2) * scale]
    # A point at infinity, like any other far away, samples zero.
    rows, columns = (
        np.clip(np.nan_to_num(s, nan=-9.0), -9.0, float(max(height, width) + 9)) for s in sources
    )
    batch = np.indices((count, 1, 1))[0]
    return [_sample(image, batch, rows, columns, n.enum("interpolation_mode"))]


@op
class GridSample:
    """Samples an image at coordinates in [-1, 1], given as (x, y) pairs."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    grid = tensor(4)
    out0 = result(layout="NHWC", onnx="NCHW")
    align_corners = flag(False)
    mode = enum("BILINEAR", BILINEAR=0, NEAREST=1)
    padding_mode = enum("ZEROS", ZEROS=0, BORDER=1, REFLECTION=2)
    infer = grid_sample_shape
    lower = grid_sample


@op
class CropAndResize:
    """Cuts boxes (y1, x1, y2, x2 relative to the image) out of a batch and resizes them to one size."""

    in0 = tensor(4)
    boxes = tensor(2)
    batch_indices = tensor(1, role=INDEX)
    out0 = result()
    resize_dims = u32(2)
    interpolation_mode = enum("BILINEAR", BILINEAR=0, NEAREST_NEIGHBOR=1)
    extrapolation_value = f32(default=0.0)
    infer = crop_shape
    compute = crop_and_resize


@op
class ImageProjectionTransform:
    """Warps an image by a projective transform that maps output to input coordinates; zero outside."""

    in0 = tensor(4)
    transform = tensor(2)
    out0 = result()
    interpolation_mode = enum("BILINEAR", BILINEAR=0, NEAREST_NEIGHBOR=1)
    infer = projection_shape
    compute = project_image


# -- regions of interest -------------------------------------------------------------------------------------


def roi_shape(n: Node) -> list[Shape]:
    """The declared output; only its spatial size is free."""
    (shape, *_), count, channels = declared(n), _boxes(n), n.x(0).shape[-1]
    if len(shape) != 4 or (shape[0], shape[3]) != (count, channels):
        raise ShapeError(
            f"{n.where}: the output {list(shape)} should be [{count}, height, width, {channels}]"
        )
    return [shape]


def roi_align_shape(n: Node) -> list[Shape]:
    y, x = n.int("num_samples_y"), n.int("num_samples_x")
    if min(y, x) < 0 or (y == 0) != (x == 0):
        raise ShapeError(f"{n.where}: num_samples_y={y}, num_samples_x={x}: both must be 0 or both positive")
    return roi_shape(n)


def _feature_rois(n: Node, b: Body, rois: str) -> str:
    """Corners in pixels of the feature map: ratios may differ by axis, ONNX has only one scale."""
    height, width = n.floats("img_size_ratio")
    return b.op("Div", rois, b.const([width, height, width, height], n.x(1).dtype.numpy))


def roi_align(n: Node, b: Body, x: Sequence[str]) -> str:
    """Different sample counts per axis are one sample per bin of a finer grid, averaged."""
    _, height, width, _ = n.out.shape
    y, across = n.int("num_samples_y"), n.int("num_samples_x")
    fine = y != across
    mode = "half_pixel" if n.flag("aligned") else "output_half_pixel"
    found = b.op(
        "RoiAlign", x[0], _feature_rois(n, b, x[1]), wide(n, b, x, 2), coordinate_transformation_mode=mode,
        output_height=height * y if fine else height, output_width=width * across if fine else width,
        sampling_ratio=1 if fine else y,
    )  # fmt: skip
    return b.op("AveragePool", found, kernel_shape=[y, across], strides=[y, across]) if fine else found


def roi_pooling(n: Node, b: Body, x: Sequence[str]) -> str:
    batch = b.op("Unsqueeze", b.cast(x[2], n.x(1).dtype.numpy), b.ints(1))
    rois = b.op("Concat", batch, _feature_rois(n, b, x[1]), axis=1)
    return b.op("MaxRoiPool", x[0], rois, pooled_shape=list(n.out.shape[1:3]))


@op
class RoiAlign:
    """Averages samples in every bin of regions x1, y1, x2, y2; 0 samples means as many as are needed."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    rois = tensor(2)
    batch_indices = tensor(1, role=INDEX)
    out0 = result(layout="NHWC", onnx="NCHW")
    img_size_ratio = f32(2)
    num_samples_y = i32(default=0)
    num_samples_x = i32(default=0)
    aligned = flag(False)
    allow_invalid_roi = flag(False)
    infer = roi_align_shape
    lower = roi_align


@op
class RoiPooling:
    """The largest value in every bin of regions x1, y1, x2, y2."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    rois = tensor(2)
    batch_indices = tensor(1, role=INDEX)
    out0 = result(layout="NHWC", onnx="NCHW")
    img_size_ratio = f32(2)
    infer = roi_shape
    lower = roi_pooling


# -- windows -------------------------------------------------------------------------------------------------


def glimpse_shape(n: Node) -> list[Shape]:
    x, offsets, size = n.x(0).shape, n.x(1).shape, n.ints("size")
    if offsets != (x[0], 2) or min(size) < 1:
        raise ShapeError(f"{n.where}: offsets {list(offsets)} and size {list(size)} do not fit {list(x)}")
    return [(x[0], *size, x[-1])]


def _glimpse_start(n: Node, offset: Array, image: Shape) -> tuple[int, int]:
    """First row and column of a window around `offset`, cut towards zero."""
    size, whole = np.asarray(n.ints("size")), np.asarray(image[1:3])
    centre = offset.astype(np.float32) * (whole if n.flag("normalized") else 1)
    if n.flag("centered"):  # from the middle, in units of half an image
        centre = (centre + whole) / 2
    row, column = np.trunc(centre - size / 2).astype(int)
    return row, column


def _noise(n: Node, image: Array, shape: Shape) -> Array:
    """What surrounds the image; seeded, so that a run can be repeated."""
    kind, generator = n.enum("noise"), np.random.default_rng(0)
    if kind == "ZEROES":
        return np.zeros(shape, image.dtype)
    if kind == "GAUSSIAN":
        return generator.normal(size=shape).astype(image.dtype)
    return generator.uniform(image.min(), image.max(), shape).astype(image.dtype)


def extract_glimpse(n: Node, arrays: Sequence[Array | None]) -> list[Array]:
    image, offsets = (np.asarray(a) for a in arrays)
    out = _noise(n, image, n.out.shape)
    (height, width), (rows, columns) = image.shape[1:3], n.ints("size")
    for i, offset in enumerate(offsets):
        row, column = _glimpse_start(n, offset, image.shape)
        top, left = np.clip([row, column], 0, [height, width])
        bottom, right = np.clip([row + rows, column + columns], 0, [height, width])
        out[i, top - row : bottom - row, left - column : right - column] = image[i, top:bottom, left:right]
    return [out]


def _patch_pads(n: Node) -> list[tuple[int, int]]:
    """Rows and columns of zeros around the image: SAME keeps ceil(size / stride) windows."""
    pads: list[tuple[int, int]] = []
    windows = zip(n.x(0).shape[1:3], n.ints("size"), n.ints("stride"), n.ints("rate"), strict=True)
    for size, kernel, stride, rate in windows:
        reach = (kernel - 1) * rate + 1
        total = max(0, (-(-size // stride) - 1) * stride + reach - size) if n.enum("padding") == "SAME" else 0
        pads.append((total // 2, total - total // 2))
    return pads


def patches_shape(n: Node) -> list[Shape]:
    x, size, stride, rate = n.x(0).shape, n.ints("size"), n.ints("stride"), n.ints("rate")
    if min(*size, *stride, *rate) < 1:
        raise ShapeError(f"{n.where}: size {size}, stride {stride} and rate {rate} must be positive")
    pads = _patch_pads(n)
    counts = [window(x[i + 1], size[i], stride[i], pads[i], rate[i]) for i in range(2)]
    if min(counts) < 1:
        raise ShapeError(f"{n.where}: the window {list(size)} is larger than the image {list(x[1:3])}")
    return [(x[0], *counts, size[0] * size[1] * x[-1])]


def extract_patches(n: Node, b: Body, x: Sequence[str]) -> str:
    """One strided slice per element of the window, side by side in depth: (row, column, channel)."""
    (top, bottom), (left, right) = _patch_pads(n)
    image = b.op("Pad", x[0], b.ints(0, top, left, 0, 0, bottom, right, 0))
    (rows, columns), stride, rate = n.ints("size"), n.ints("stride"), n.ints("rate")
    _, high, wide_, _ = n.out.shape
    taps: list[str] = []
    for row, column in np.ndindex(rows, columns):
        start = (row * rate[0], column * rate[1])
        stop = (start[0] + (high - 1) * stride[0] + 1, start[1] + (wide_ - 1) * stride[1] + 1)
        taps.append(b.op("Slice", image, b.ints(*start), b.ints(*stop), b.ints(1, 2), b.ints(*stride)))
    return b.op("Concat", *taps, axis=3)


def correlation_shape(n: Node) -> list[Shape]:
    a, other = n.x(0).shape, n.x(1).shape
    if a != other:
        raise ShapeError(f"{n.where}: images {list(a)} and {list(other)} differ")
    return [(*a[:3], 2 * n.int("displacement") + 1)]


def correlation(n: Node, b: Body, x: Sequence[str]) -> str:
    reach, shift, width = n.int("displacement"), n.int("shift"), n.x(0).shape[2]
    border = reach + abs(shift)
    other = b.op("Pad", x[1], b.ints(0, 0, border, 0, 0, 0, border, 0))
    columns: list[str] = []
    for start in range(border + shift - reach, border + shift + reach + 1):
        moved = b.op("Slice", other, b.ints(start), b.ints(start + width), b.ints(2))
        columns.append(b.op("ReduceMean", b.op("Mul", x[0], moved), b.ints(3), keepdims=1))
    return b.op("Concat", *columns, axis=3)


@op
class ExtractGlimpse:
    """A window of each image around an offset (row, column); noise where it leaves the image."""

    in0 = tensor(4)
    offsets = tensor(2)
    out0 = result()
    size = i32(2)
    centered = flag(True)
    normalized = flag(True)
    noise = enum("UNIFORM", DType.INT_32, UNIFORM=0, GAUSSIAN=1, ZEROES=2)
    infer = glimpse_shape
    compute = extract_glimpse


@op
class ExtractPatches:
    """Sliding windows of an image, each laid out in depth as (row, column, channel)."""

    in0 = tensor(4)
    out0 = result()
    size = u32(2)
    stride = u32(2)
    rate = u32(2)
    padding = enum(VALID=0, SAME=1)
    infer = patches_shape
    lower = extract_patches


@op
class Correlation1D:
    """Mean over channels of an image times another moved sideways, for every displacement; zero outside."""

    in0 = tensor(4)
    in1 = tensor(4)
    out0 = result()
    displacement = u32()
    shift = i32()
    infer = correlation_shape
    lower = correlation
