"""Pooling of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openqnn.frontends.onnx import pool as onnx
from openqnn.frontends.onnx.shape import sliced
from openqnn.frontends.torch.conv import batched, each
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value


def pool_dims(t: TorchTranslation) -> int:
    return int(t.op.split("pool")[1][0])


@translates("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    t: TorchTranslation, x: Value, kernel_size: int | list[int], stride: Any = (),
    padding: int | list[int] = 0, dilation: int | list[int] = 1, ceil_mode: bool = False,
) -> Value:  # fmt: skip
    dims = pool_dims(t)
    kernel = each(t, kernel_size, dims)
    pads = each(t, padding, dims)
    more = {
        "kernel_shape": kernel, "strides": each(t, stride, dims) if stride else kernel,
        "pads": [*pads, *pads], "dilations": each(t, dilation, dims), "ceil_mode": int(ceil_mode),
    }  # fmt: skip
    return batched(t, x, dims + 2, lambda data: onnx.max_pool(t, data, **more))


@translates("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    t: TorchTranslation, x: Value, kernel_size: int | list[int], stride: Any = (),
    padding: int | list[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:  # fmt: skip
    dims = pool_dims(t)
    kernel = each(t, kernel_size, dims)
    pads = each(t, padding, dims)
    strides = each(t, stride, dims) if stride else kernel

    def pooled(data: Value) -> Value:
        if divisor_override:
            return _sums(t, data, kernel, strides, pads, ceil_mode, divisor_override)
        return onnx.average_pool(
            t, data, kernel_shape=kernel, strides=strides, pads=[*pads, *pads], ceil_mode=int(ceil_mode),
            count_include_pad=int(count_include_pad),
        )  # fmt: skip

    return batched(t, x, dims + 2, pooled)


def _sums(
    t: TorchTranslation, x: Value, kernel: list[int], strides: list[int], pads: list[int], ceil_mode: bool,
    divisor: int,
) -> Value:  # fmt: skip
    """Sums over windows, by a number of the user's: the root of the mean power of one, times its size."""
    w = onnx.windows(t, x, kernel, strides, [*pads, *pads], None, "NOTSET", int(ceil_mode))
    rows = [[0, 0], [0, 0], *w.needed]
    data = t.pad(x, rows) if any(map(any, rows)) else x
    mean = onnx.average_pool(t, data, kernel_shape=kernel, strides=strides)
    return t.mul(mean, float(np.prod(kernel)) / divisor)


# -- adaptive ------------------------------------------------------------------------------------------------


def edges(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive(t: TorchTranslation, x: Value, sizes: Sequence[int], largest: bool) -> Value:
    """By one pool where the windows are alike; else window by window, axis after axis."""
    reduce = t.reduce_max if largest else t.reduce_mean
    if all(n == 1 for n in sizes):
        return reduce(x, list(range(2, x.rank)), keep_dims=True)
    if all(d % n == 0 for d, n in zip(x.shape[2:], sizes, strict=True)):
        kernel = [d // n for d, n in zip(x.shape[2:], sizes, strict=True)]
        pool = onnx.max_pool if largest else onnx.average_pool
        return pool(t, x, kernel_shape=kernel, strides=kernel)
    for axis, count in enumerate(sizes, start=2):
        cuts = [sliced(t, x, {axis: slice(a, b)}) for a, b in edges(x.shape[axis], count)]
        x = t.concat([reduce(part, [axis], keep_dims=True) for part in cuts], axis)
    return x


def adaptive_sizes(t: TorchTranslation, x: Value, output_size: Any) -> list[int]:
    dims = pool_dims(t)
    listed = [output_size] * dims if isinstance(output_size, int) else list(output_size)
    listed = listed * dims if len(listed) == 1 else listed
    sizes = [x.shape[x.rank - dims + i] if n is None else n for i, n in enumerate(listed)]
    if min(sizes, default=0) < 1 or x.rank not in (dims + 1, dims + 2):
        t.refuse(f"{list(x.shape)} to a size of {sizes}")
    return sizes


@translates("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
            "_adaptive_avg_pool3d")  # fmt: skip
def adaptive_avg_pool(t: TorchTranslation, x: Value, output_size: object) -> Value:
    sizes = adaptive_sizes(t, x, output_size)
    return batched(t, x, len(sizes) + 2, lambda data: _adaptive(t, data, sizes, largest=False))
