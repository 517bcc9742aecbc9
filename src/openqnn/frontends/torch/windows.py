"""Pools that also tell where the maxima are, and the way back.

QNN's pools have no positions: every window is gathered, and the place of its largest element looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from openqnn.frontends.onnx import pool as onnx
from openqnn.frontends.onnx.gather import positions
from openqnn.frontends.torch.conv import each
from openqnn.frontends.torch.pool import adaptive_sizes, edges, max_pool, pool_dims
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Array, DType, Value

_MOST = 1 << 24  # elements that are gathered


def _table(axes: Sequence[Sequence[Sequence[int]]], sizes: Sequence[int]) -> Array:
    """Flat places of the elements of all windows, [taps, windows]; short windows repeat their first element.

    `axes` has, for every axis, the places of every window along it.
    """
    strides = np.asarray([prod(sizes[i + 1 :]) for i in range(len(sizes))])
    rows = [(np.asarray(list(product(*window))) @ strides).tolist() for window in product(*axes)]
    longest = max(map(len, rows))
    return np.asarray([row + row[:1] * (longest - len(row)) for row in rows], np.int32).T


def _largest(t: TorchTranslation, x: Value, table: Array, out: Sequence[int]) -> list[Value]:
    """The largest of every window, and its flat place."""
    taps, count = table.shape
    spatial = prod(x.shape[len(x.shape) - len(out) :])
    outer = x.shape[: x.rank - len(out)]
    if prod(outer) * table.size > _MOST:
        t.refuse("the positions of the maxima (second output) of so many windows have no QNN op")
    rows = t.reshape(x, (prod(outer), spatial))
    found = t.reshape(t.gather(rows, t.constant(table.ravel()), axis=1), (prod(outer), taps, count))
    best = t.reduce_max(found, (1,), keep_dims=False)
    tap = t.reshape(t.argmax(found, 1, keep_dims=False, dtype=DType.INT_32), (prod(outer), count))
    flat = t.add(t.mul(tap, count), t.constant(np.arange(count, dtype=np.int32)[None]))
    place = t.gather(t.constant(table.ravel()), flat, axis=0)
    return [t.reshape(v, (*outer, *out)) for v in (best, place)]


@translates("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(
    t: TorchTranslation, x: Value, kernel_size: int | list[int], stride: int | list[int] | None = None,
    padding: int | list[int] = 0, dilation: int | list[int] = 1, ceil_mode: bool = False,
) -> list[Value]:  # fmt: skip
    if not t.is_read(1):
        return [max_pool(t, x, kernel_size, stride, padding, dilation, ceil_mode)]
    dims = pool_dims(t)
    kernel, pads = each(t, kernel_size, dims), each(t, padding, dims)
    image = x if x.rank == dims + 2 else t.reshape(x, (1, *x.shape))
    w = onnx.windows(
        t, image, kernel, each(t, stride, dims) if stride else kernel, [*pads, *pads],
        each(t, dilation, dims), "NOTSET", int(ceil_mode),
    )  # fmt: skip
    axes = [
        [
            [p for p in range(i * s - pads[a], i * s - pads[a] + d * (k - 1) + 1, d) if 0 <= p < size]
            for i in range(count)
        ]
        for a, (s, d, k, size, count) in enumerate(
            zip(w.strides, w.dilations, w.kernel, w.sizes, w.counts, strict=True)
        )
    ]
    return _largest(t, x, _table(axes, w.sizes), w.counts)


@translates("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool_with_indices(t: TorchTranslation, x: Value, output_size: object) -> list[Value]:
    sizes = adaptive_sizes(t, x, output_size)
    spatial = x.shape[x.rank - len(sizes) :]
    axes = [[list(range(a, b)) for a, b in edges(d, n)] for d, n in zip(spatial, sizes, strict=True)]
    return _largest(t, x, _table(axes, spatial), sizes)


@translates("max_unpool2d", "max_unpool3d")
def max_unpool(
    t: TorchTranslation, x: Value, indices: Value, output_size: list[int], stride: list[int] | None = None,
    padding: list[int] | None = None,
) -> Value:  # fmt: skip
    """Every element at its place, zeros elsewhere."""
    dims = len(output_size)
    outer = x.shape[: x.rank - dims]
    rows, size = prod(outer), prod(output_size)
    zeros = t.constant(np.zeros((rows, size), x.dtype.numpy))
    places = positions(t, t.reshape(indices, (rows, indices.size // rows)), size)
    data = t.reshape(x, (rows, x.size // rows))
    return t.reshape(t.scatter_elements(zeros, places, data, axis=1), (*outer, *output_size))
