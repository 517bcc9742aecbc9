"""Pooling over windows. ONNX is channel-first; a pool over one axis is one over an image with one row.

Windows with holes (dilations) are put together from strided slices, one axis after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from openqnn.frontends.compositions import cut, power
from openqnn.frontends.onnx.conv import spatial_pads
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value
from openqnn.ops.shape_rules import window


@dataclass(frozen=True)
class Windows:
    """Where the windows of a pool lie, one entry per spatial axis."""

    sizes: tuple[int, ...]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[list[int]]  # as the model declares them
    counts: list[int]  # number of windows

    @property
    def needed(self) -> list[list[int]]:
        """Pads with which rounding down gives that many windows: rounding up may ask for more."""
        rows: list[list[int]] = []
        for i, (before, after) in enumerate(self.pads):
            reach = (self.counts[i] - 1) * self.strides[i] + self.dilations[i] * (self.kernel[i] - 1) + 1
            most = reach - self.sizes[i] - before
            # Rounding up may also give one window less, where the last one would lie in the padding alone.
            rows.append([before, max(most, min(after, most + self.strides[i] - 1), 0)])
        return rows

    @property
    def dilated(self) -> bool:
        return any(d != 1 for d in self.dilations)

    def taps(self, count_pads: bool) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
        """For every axis, how many elements of each window count."""
        found = []
        for i, (before, after) in enumerate(self.pads):
            starts = np.arange(self.counts[i]) * self.strides[i] - before
            places = starts[:, None] + np.arange(self.kernel[i]) * self.dilations[i]
            low, high = (-before, self.sizes[i] + after) if count_pads else (0, self.sizes[i])
            found.append(((places >= low) & (places < high)).sum(1).astype(np.float64))
        return found


def windows(
    t: Translation, x: Value, kernel: Sequence[int], strides: Sequence[int] | None,
    pads: Sequence[int] | None, dilations: Sequence[int] | None, auto_pad: str, ceil_mode: int,
) -> Windows:  # fmt: skip
    dims = x.rank - 2
    if dims not in (1, 2, 3):
        t.refuse(f"a pool over {dims} spatial axes has no QNN op")
    strides, dilations = list(strides or [1] * dims), list(dilations or [1] * dims)
    if {len(kernel), len(strides), len(dilations)} != {dims} or min(*kernel, *strides, *dilations) < 1:
        t.refuse(f"kernel_shape, strides and dilations need {dims} positive entries each")
    rows = spatial_pads(t, auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    rounded_up = bool(ceil_mode) and auto_pad in ("NOTSET", "", "VALID")
    counts = [
        window(x.shape[i + 2], kernel[i], strides[i], rows[i], dilations[i], rounded_up) for i in range(dims)
    ]
    if min(counts) < 1:
        t.refuse(f"the window {list(kernel)} is larger than the padded data {list(x.shape)}")
    return Windows(x.shape[2:], list(kernel), strides, dilations, rows, counts)


Pool = Callable[[Value, list[int], list[int], list[list[int]]], Value]


def _pool(t: Translation, pool: Pool, x: Value, w: Windows, pads: list[list[int]]) -> Value:
    """One QNN pool; a single spatial axis becomes the columns of an image with one row."""
    kernel, strides = w.kernel, w.strides
    flat = x.rank == 3
    if flat:
        kernel, strides, pads = [1, *kernel], [1, *strides], [[0, 0], *pads]
        x = t.reshape(x, (*x.shape[:2], 1, x.shape[2]))
    y = t.to_first(pool(t.to_last(x), kernel, strides, pads))
    return t.reshape(y, (*y.shape[:2], y.shape[3])) if flat else y


def _padded(t: Translation, x: Value, pads: list[list[int]], value: float) -> Value:
    if not any(map(any, pads)):
        return x
    return t.pad(x, [[0, 0], [0, 0], *pads], value)


def _by_slices(t: Translation, x: Value, w: Windows, fill: float, largest: bool) -> Value:
    """Maximum or sum over windows with holes: one strided slice per element of the window, axis by axis."""
    y = _padded(t, x, w.needed, fill)
    for i, count in enumerate(w.counts):
        span = (count - 1) * w.strides[i] + 1
        taps = [
            cut(t, y, i + 2, j * w.dilations[i], j * w.dilations[i] + span, w.strides[i])
            for j in range(w.kernel[i])
        ]
        y = taps[0]
        for tap in taps[1:]:
            y = t.maximum(y, tap) if largest else t.add(y, tap)
    return y


@translates("MaxPool")
def max_pool(
    t: Translation, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, kernel_shape: list[int], pads: list[int] | None = None,
    storage_order: int = 0, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    if t.is_read(1):
        t.refuse("the positions of the maxima (second output) have no QNN op")
    w = windows(t, x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    if not w.dilated:
        return _pool(t, t.pool_max, x, w, w.needed)
    lowest = float(np.finfo(np.float32).min) if x.dtype.is_float else float(np.iinfo(x.dtype.numpy).min)
    return _by_slices(t, x, w, lowest, largest=True)


@translates("AveragePool")
def average_pool(
    t: Translation, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
    dilations: list[int] | None = None, kernel_shape: list[int], pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    w = windows(t, x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    return _average(t, x, w, bool(count_include_pad))


def _average(t: Translation, x: Value, w: Windows, count_pads: bool) -> Value:
    if w.dilated:
        shares = [1 / np.maximum(n, 1) for n in w.taps(count_pads)]
        each = shares[0]
        for share in shares[1:]:
            each = np.multiply.outer(each, share)
        return t.mul(_by_slices(t, x, w, 0.0, largest=False), t.constant(each.astype(x.dtype.numpy)))
    if not count_pads or w.needed == w.pads:
        return _pool(t, partial(t.pool_avg, count_pads=count_pads), x, w, w.needed)
    # What rounding up adds behind the declared padding never counts: the declared one becomes data.
    extra = [[0, max(0, n[1] - p[1])] for n, p in zip(w.needed, w.pads, strict=True)]
    return _pool(t, t.pool_avg, _padded(t, x, w.pads, 0.0), w, extra)


@translates("LpPool")
def lp_pool(
    t: Translation, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, kernel_shape: list[int], p: int = 2, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The sum of powers is their average, padding included, times the size of the window."""
    w = windows(t, x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    powers = _powers(t, x, p)
    if w.dilated:
        total = _by_slices(t, powers, w, 0.0, largest=False)
    else:
        average = _pool(t, t.pool_avg, _padded(t, powers, w.needed, 0.0), w, [[0, 0]] * len(w.pads))
        total = t.mul(average, float(prod(w.kernel)))
    return power(t, total, 1 / p)


def _powers(t: Translation, x: Value, p: int) -> Value:
    if p < 1:
        t.refuse(f"p={p} is not positive")
    return t.square(x) if p == 2 else power(t, t.abs(x), p)


# -- over all of the image -----------------------------------------------------------------------------------


def _spatial(t: Translation, x: Value) -> list[int]:
    if x.rank < 3:
        t.refuse(f"data of rank {x.rank} has no spatial axes")
    return list(range(2, x.rank))


@translates("GlobalAveragePool")
def global_average_pool(t: Translation, x: Value) -> Value:
    return t.reduce_mean(x, _spatial(t, x), keep_dims=True)


@translates("GlobalMaxPool")
def global_max_pool(t: Translation, x: Value) -> Value:
    return t.reduce_max(x, _spatial(t, x), keep_dims=True)


@translates("GlobalLpPool")
def global_lp_pool(t: Translation, x: Value, *, p: int = 2) -> Value:
    total = t.reduce_sum(_powers(t, x, p), _spatial(t, x), keep_dims=True)
    return power(t, total, 1 / p)


# -- the rest ------------------------------------------------------------------------------------------------


@translates("MaxRoiPool")
def max_roi_pool(
    t: Translation, x: Value, rois: Value, *, pooled_shape: list[int], spatial_scale: float = 1.0
) -> Value:
    """A row of rois is the image in the batch, then the corners."""
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 5 or len(pooled_shape) != 2 or spatial_scale <= 0:
        t.refuse("needs an image [n, c, h, w], rois [r, 5], pooled_shape of two and a positive spatial_scale")
    batch = t.cast(t.reshape(cut(t, rois, 1, 0, 1), rois.shape[:1]), DType.INT_32)
    shape = (rois.shape[0], *pooled_shape, x.shape[1])
    ratio = (1 / spatial_scale,) * 2
    return t.to_first(
        t("RoiPooling", t.to_last(x), cut(t, rois, 1, 1, 5), batch, img_size_ratio=ratio, shape=shape)
    )


@translates("MaxUnpool")
def max_unpool(
    t: Translation, x: Value, indices: Value, output_shape: Value | None = None, *, kernel_shape: list[int],
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The maxima go back to their positions in the flattened output."""
    dims = x.rank - 2
    strides, flat = strides or [1] * dims, pads or [0] * (2 * dims)
    if dims < 1 or len(kernel_shape) != dims or len(strides) != dims or len(flat) != 2 * dims:
        t.refuse(f"kernel_shape, strides and pads do not fit data of rank {x.rank}")
    sizes = [
        (x.shape[i + 2] - 1) * strides[i] - flat[i] - flat[i + dims] + kernel_shape[i] for i in range(dims)
    ]
    shape = (*x.shape[:2], *sizes)
    if output_shape is not None and t.ints(output_shape, "output_shape") != shape:
        t.refuse(
            "an output_shape other than the inferred one: ONNX does not say what the positions then mean"
        )
    if min(shape) < 0 or indices.shape != x.shape:
        t.refuse(f"positions {list(indices.shape)} do not fit data {list(x.shape)}")
    zeros = t.constant(np.zeros(prod(shape), x.dtype.numpy))
    places = t.reshape(indices, (x.size,))
    return t.reshape(t.scatter_elements(zeros, places, t.reshape(x, (x.size,)), axis=0), shape)
