"""Resizing. What QNN's Resize can say becomes one; everything else is exact too: along each axis the samples
are a constant matrix times the data, or a gather when they are single elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from openqnn.frontends.compositions import as_float
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Array, Value


@dataclass(frozen=True)
class Sampling:
    """How Resize finds its samples; the names are ONNX's."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class Axis:
    """One axis: its sizes, the scale that coordinates are computed with, and the part that is seen."""

    index: int
    size: int
    out: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


# -- coordinates and weights, in numpy -----------------------------------------------------------------------


def places(a: Axis, coordinates: str) -> Array:
    """Where each output element lies on the input axis."""
    i = np.arange(a.out, dtype=np.float64)
    match coordinates:
        case "align_corners":
            return i * (a.size - 1) / (a.out - 1) if a.out > 1 else np.zeros(1)
        case "asymmetric":
            return i / a.scale
        case "pytorch_half_pixel":
            return (i + 0.5) / a.scale - 0.5 if a.out > 1 else np.zeros(1)
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / a.scale
        case "half_pixel_symmetric":
            shift = a.size / 2 * (1 - a.out / (a.scale * a.size))
            return shift + (i + 0.5) / a.scale - 0.5
        case "tf_crop_and_resize":
            start, end = a.roi
            if a.out == 1:
                return np.asarray([0.5 * (start + end) * (a.size - 1)])
            return start * (a.size - 1) + i * (end - start) * (a.size - 1) / (a.out - 1)
        case _:
            return (i + 0.5) / a.scale - 0.5


def nearest(a: Axis, s: Sampling) -> Array:
    x = places(a, s.coordinates)
    match s.nearest:
        case "floor":
            found = np.floor(x)
        case "ceil":
            found = np.ceil(x)
        case "simple":  # before opset 11
            found = np.ceil(x) if a.scale < 1 else np.floor(x)
        case "round_prefer_ceil":
            found = np.floor(x + 0.5)
        case _:
            found = np.ceil(x - 0.5)
    return np.clip(found, 0, a.size - 1).astype(np.int32)


def _linear(distance: Array) -> Array:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic(distance: Array, c: float) -> Array:
    d = np.abs(distance)
    near = ((c + 2) * d - (c + 3)) * d * d + 1
    far = ((c * d - 5 * c) * d + 8 * c) * d - 4 * c
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def matrix(a: Axis, s: Sampling) -> Array:
    """Weights [out, size] by which an axis is interpolated."""
    x = places(a, s.coordinates)
    reach, stretch = (2 if s.mode == "cubic" else 1), 1.0
    if s.antialias and a.scale < 1:
        stretch = a.scale
        reach = int(np.ceil(reach / stretch))
    base = np.floor(x)
    taps = base[:, None] + np.arange(1 - reach, reach + 1)
    distance = (x[:, None] - taps) * stretch
    weights = _cubic(distance, s.cubic) if s.mode == "cubic" else _linear(distance)
    inside = (taps >= 0) & (taps < a.size)
    if s.exclude_outside:
        weights = np.where(inside, weights, 0)
    if s.exclude_outside or stretch != 1:
        weights = weights / weights.sum(1, keepdims=True)
    found = np.zeros((a.out, a.size))
    columns = np.clip(taps, 0, a.size - 1).astype(np.intp)
    np.add.at(found, (np.arange(a.out)[:, None], columns), weights)
    return found


# -- one axis after the other --------------------------------------------------------------------------------


def _along(t: Translation, x: Value, a: Axis, weights: Array) -> Value:
    """Weights [out, size] times one axis."""
    w = t.constant(weights.astype(x.dtype.numpy))
    if a.index == x.rank - 2:
        return t.matmul(w, x)
    swap = [i for i in range(x.rank) if i != a.index] + [a.index]
    moved = t.transpose(x, swap)
    flat = moved if moved.rank > 1 else t.reshape(moved, (1, a.size))
    y = t.matmul(flat, w, turn_b=True)
    y = y if moved.rank > 1 else t.reshape(y, (a.out,))
    return t.transpose(y, [swap.index(i) for i in range(x.rank)])


def _outside(t: Translation, y: Value, axes: Sequence[Axis], s: Sampling) -> Value:
    """The extrapolation value wherever a sample lies outside of the data on any axis."""
    mask = np.ones((1,) * y.rank)
    for a in axes:
        x = places(a, s.coordinates)
        inside = (x >= 0) & (x <= a.size - 1)
        mask = mask * inside.reshape([-1 if i == a.index else 1 for i in range(y.rank)])
    dtype = y.dtype.numpy
    kept = t.mul(y, t.constant(mask.astype(dtype)))
    return t.add(kept, t.constant(((1 - mask) * s.extrapolation).astype(dtype)))


def composed(t: Translation, x: Value, axes: Sequence[Axis], s: Sampling) -> Value:
    if s.mode == "nearest":
        y = x
        for a in axes:
            y = t.gather(y, t.constant(nearest(a, s)), axis=a.index)
    else:
        y = as_float(t, x)
        for a in axes:
            y = _along(t, y, a, matrix(a, s))
    if s.coordinates == "tf_crop_and_resize":
        y = _outside(t, as_float(t, y), axes, s)
    return t.cast(y, x.dtype)


# -- as one QNN op -------------------------------------------------------------------------------------------

_NATIVE = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}


def _is_native(x: Value, axes: Sequence[Axis], s: Sampling) -> bool:
    """QNN's Resize works on spatial axes and takes the scale from the sizes."""
    if x.rank not in (3, 4, 5) or not x.dtype.is_float or s.antialias or s.coordinates not in _NATIVE:
        return False
    if s.nearest == "simple" or any(a.index < 2 for a in axes) or (s.exclude_outside and s.mode == "linear"):
        return False
    return s.coordinates == "align_corners" or all(abs(a.scale * a.size - a.out) < 1e-3 for a in axes)


def _check_sampling(t: Translation, x: Value, axes: Sequence[Axis], s: Sampling) -> None:
    if s.mode not in ("nearest", "linear", "cubic"):
        t.refuse(f"mode={s.mode!r} is not known")
    if x.size == 0 or any(a.out < 1 for a in axes):
        t.refuse(f"{list(x.shape)} cannot be resized to {[a.out for a in axes]}")
    broken = [a for a in axes if a.out > 1 and abs(a.scale * a.size - a.out) > 1e-3]
    if s.coordinates == "align_corners" and broken:
        t.refuse(
            "align_corners with scales that give no whole sizes: ONNX and its runtimes disagree about it",
            hint="export with sizes instead of scales",
        )


def _changes(axis: Axis, s: Sampling) -> bool:
    """Whether sampling makes other numbers along an axis than those that are there."""
    if s.coordinates == "tf_crop_and_resize":
        return True
    if s.mode == "nearest":
        return not np.array_equal(nearest(axis, s), np.arange(axis.size))
    return axis.out != axis.size or axis.scale != 1


def resized(t: Translation, x: Value, axes: Sequence[Axis], s: Sampling) -> Value:
    _check_sampling(t, x, axes, s)
    axes = [axis for axis in axes if _changes(axis, s)]
    if not axes:
        return t.reshape(x, x.shape)
    if s.nearest == "simple" and all(a.scale >= 1 for a in axes):
        s = replace(s, nearest="floor")
    if not _is_native(x, axes, s):
        return composed(t, x, axes, s)
    sizes = {a.index: a.out for a in axes}
    spatial = [sizes.get(i, x.shape[i]) for i in range(2, x.rank)]
    y = t(
        "Resize", t.to_last(x), shape=(x.shape[0], *spatial, x.shape[1]), exclude_outside=s.exclude_outside,
        transformation_mode=s.coordinates.upper(), interpolation_mode=s.mode.upper(),
        nearest_mode=s.nearest.upper(), cubic_coeff=s.cubic,
    )  # fmt: skip
    return t.to_first(y)


# -- the ops -------------------------------------------------------------------------------------------------


def _axes(
    t: Translation, x: Value, scales: Sequence[float], axes: Sequence[int], roi: Sequence[float]
) -> list[Axis]:
    if len(scales) != len(axes) or min(scales, default=1.0) <= 0:
        t.refuse(f"scales={list(scales)} should be {len(axes)} positive numbers")
    count = len(axes)
    rois = [(roi[i], roi[i + count]) for i in range(count)] if len(roi) == 2 * count else [(0.0, 1.0)] * count
    return [
        Axis(a, x.shape[a], int(np.floor(x.shape[a] * s + 1e-9)), s, r)
        for a, s, r in zip(axes, scales, rois, strict=True)
    ]


def _by_sizes(
    t: Translation, x: Value, sizes: Sequence[int], axes: Sequence[int], roi: Sequence[float], policy: str
) -> list[Axis]:
    if len(sizes) != len(axes) or any(x.shape[a] == 0 for a in axes):
        t.refuse(f"sizes={list(sizes)} do not fit {len(axes)} axes of {list(x.shape)}")
    scales = [size / x.shape[a] for size, a in zip(sizes, axes, strict=True)]
    if policy != "stretch":
        if policy not in ("not_larger", "not_smaller"):
            t.refuse(f"keep_aspect_ratio_policy={policy!r} is not known")
        scale = min(scales) if policy == "not_larger" else max(scales)
        scales = [scale] * len(axes)
        sizes = [int(np.floor(scale * x.shape[a] + 0.5)) for a in axes]
    found = _axes(t, x, scales, axes, roi)
    return [replace(a, out=size) for a, size in zip(found, sizes, strict=True)]


def _floats(t: Translation, v: Value | None, what: str) -> list[float]:
    return [] if v is None else [float(f) for f in t.static(v, what).ravel()]


@translates("Upsample")
def upsample_by_attribute(t: Translation, x: Value, *, scales: list[float], mode: str = "nearest") -> Value:
    return _old_resize(t, x, scales, mode)


@translates("Upsample", since=9)
def upsample(t: Translation, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    return _old_resize(t, x, _floats(t, scales, "scales"), mode)


@translates("Resize", since=10)
def first_resize(t: Translation, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    return _old_resize(t, x, _floats(t, scales, "scales"), mode)


def _old_resize(t: Translation, x: Value, scales: Sequence[float], mode: str) -> Value:
    sampling = Sampling("linear" if mode == "bilinear" else mode, "asymmetric", "simple")
    return resized(t, x, _axes(t, x, scales, range(x.rank), ()), sampling)


@translates("Resize", since=11)
def resize(
    t: Translation, x: Value, roi: Value | None = None, scales: Value | None = None,
    sizes: Value | None = None, *, antialias: int = 0, axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
) -> Value:  # fmt: skip
    over = [t.axis(a, x.rank) for a in axes] if axes is not None else list(range(x.rank))
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    part = _floats(t, roi, "roi") if crops else []
    if sizes is not None and sizes.size:
        found = _by_sizes(t, x, t.ints(sizes, "sizes"), over, part, keep_aspect_ratio_policy)
    else:
        found = _axes(t, x, _floats(t, scales, "scales"), over, part)
    sampling = Sampling(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside),
        bool(antialias), extrapolation_value,
    )  # fmt: skip
    return resized(t, x, found, sampling)
