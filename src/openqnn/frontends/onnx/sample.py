"""Sampling images at free places, regions of interest, and blocks of an image that go into depth."""

from __future__ import annotations

import numpy as np

from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value


@translates("GridSample")
def grid_sample(
    t: Translation, x: Value, grid: Value, *, align_corners: int = 0, mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:  # fmt: skip
    kinds = {"bilinear": "BILINEAR", "linear": "BILINEAR", "nearest": "NEAREST"}
    if x.rank != 4 or mode not in kinds:
        t.refuse(f"mode={mode!r} on data of rank {x.rank}: QNN samples images, linear or nearest")
    if padding_mode not in ("zeros", "border", "reflection"):
        t.refuse(f"padding_mode={padding_mode!r} is not known")
    y = t.grid_sample(t.to_last(x), grid, align_corners=bool(align_corners), mode=kinds[mode],
        padding_mode=padding_mode.upper(),
    )  # fmt: skip
    return t.to_first(y)


@translates("AffineGrid")
def affine_grid(t: Translation, theta: Value, size: Value, *, align_corners: int = 0) -> Value:
    """Homogeneous coordinates of every position, a constant, times the matrices."""
    batch, _, *spatial = t.ints(size, "size") or (0, 0)
    dims = len(spatial)
    if dims not in (2, 3) or theta.shape != (batch, dims, dims + 1) or min(spatial) < 1:
        t.refuse(f"matrices {list(theta.shape)} do not fit size {list(t.ints(size, 'size'))}")
    lines = [_line(n, bool(align_corners)) for n in spatial]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]  # x comes first
    points = np.stack([*(m.ravel() for m in mesh), np.ones(mesh[0].size)], axis=1)
    base = t.constant(points.astype(theta.dtype.numpy))
    y = t.matmul(base, theta, turn_b=True)
    return t.reshape(y, (batch, *spatial, dims))


def _line(count: int, align_corners: bool) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Positions along one axis from -1 to 1: of the corners, or of the middles of the pixels."""
    if align_corners:
        return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)
    return (np.arange(count) * 2 + 1) / count - 1


@translates("RoiAlign")
def first_roi_align(
    t: Translation, x: Value, rois: Value, batch: Value, *, mode: str = "avg", output_height: int = 1,
    output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    return roi_align(
        t, x, rois, batch, coordinate_transformation_mode="output_half_pixel", mode=mode,
        output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
    )  # fmt: skip


@translates("RoiAlign", since=16)
def roi_align(
    t: Translation, x: Value, rois: Value, batch: Value, *,
    coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    if mode != "avg":
        t.refuse(f"mode={mode!r}: QNN's RoiAlign averages")
    if x.rank != 4 or rois.rank != 2 or spatial_scale <= 0 or min(output_height, output_width) < 1:
        t.refuse("needs an image [n, c, h, w], rois [r, 4], a positive scale and a positive output size")
    aligned = coordinate_transformation_mode == "half_pixel"
    if not aligned and coordinate_transformation_mode != "output_half_pixel":
        t.refuse(f"coordinate_transformation_mode={coordinate_transformation_mode!r} is not known")
    y = t(
        "RoiAlign", t.to_last(x), rois, batch, img_size_ratio=(1 / spatial_scale,) * 2, aligned=aligned,
        num_samples_y=sampling_ratio, num_samples_x=sampling_ratio,
        shape=(rois.shape[0], output_height, output_width, x.shape[1]),
    )  # fmt: skip
    return t.to_first(y)


@translates("CenterCropPad")
def center_crop_pad(t: Translation, x: Value, shape: Value, *, axes: list[int] | None = None) -> Value:
    """What is too much is cut off both ends, what is missing is added as zeros; the odd one at the end."""
    over = [t.axis(a, x.rank) for a in axes] if axes is not None else list(range(x.rank))
    wanted = t.ints(shape, "shape")
    if len(wanted) != len(over) or min(wanted, default=0) < 0:
        t.refuse(f"shape={list(wanted)} does not fit {len(over)} axes")
    ranges, pads = [[0, d, 1] for d in x.shape], [[0, 0] for _ in x.shape]
    for a, target in zip(over, wanted, strict=True):
        size = x.shape[a]
        if size > target:
            start = (size - target) // 2
            ranges[a] = [start, start + target, 1]
        else:
            before = (target - size) // 2
            pads[a] = [before, target - size - before]
    y = t.strided_slice(x, ranges=ranges)
    return t.pad(y, pads) if any(map(any, pads)) else y


@translates("DepthToSpace")
def depth_to_space(t: Translation, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    if mode not in ("DCR", "CRD") or blocksize < 1:
        t.refuse(f"mode={mode!r} with blocksize={blocksize}")
    return _in_blocks(t, "DepthToSpace", x, blocksize, mode)


@translates("SpaceToDepth")
def space_to_depth(t: Translation, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    if mode not in ("DCR", "CRD") or blocksize < 1:
        t.refuse(f"mode={mode!r} with blocksize={blocksize}")
    return _in_blocks(t, "SpaceToDepth", x, blocksize, mode)


def _in_blocks(t: Translation, op: str, x: Value, block: int, mode: str) -> Value:
    if x.rank != 4:
        t.refuse(f"data of rank {x.rank} is no image")
    return t.to_first(t(op, t.to_last(x), block_size=(block, block), mode=mode))
