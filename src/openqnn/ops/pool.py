"""Pooling over windows of images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import DType, Node, Shape
from openqnn.ops.conv import onnx_pads
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import enum, flag, op, result, tensor, u32
from openqnn.ops.shape_rules import positive, window

Pads = list[tuple[int, int]]
LARGEST_WINDOW = 1 << 16  # along one axis; padding could make room for any, and it would never be computed


def _pads(n: Node) -> Pads:
    return [(row[0], row[1]) for row in n.rows("pad_amount")]


def _counts(n: Node) -> list[int]:
    """Windows along each spatial axis."""
    kernel, stride, sizes = n.ints("filter_size"), n.ints("stride"), n.x(0).shape[1:-1]
    ceil = n.params.get("rounding_mode") == "CEIL"
    return [window(s, kernel[i], stride[i], _pads(n)[i], 1, ceil) for i, s in enumerate(sizes)]


def pool_shape(n: Node) -> list[Shape]:
    positive(n, "filter_size", "stride")
    if max(n.ints("filter_size")) > LARGEST_WINDOW:
        raise ShapeError(f"{n.where}: the window {list(n.ints('filter_size'))} is beyond all bounds")
    counts = _counts(n)
    if min(counts) <= 0:
        shape, kernel = list(n.x(0).shape), list(n.ints("filter_size"))
        raise ShapeError(f"{n.where}: the window {kernel} is larger than the padded input {shape}")
    return [(n.x(0).shape[0], *counts, n.x(0).shape[-1])]


def _exact_pads(n: Node) -> Pads:
    """Trailing pads that make rounding down give the number of windows that rounding up asks for."""
    kernel, stride, sizes = n.ints("filter_size"), n.ints("stride"), n.x(0).shape[1:-1]
    needed = [(c - 1) * stride[i] + kernel[i] - sizes[i] for i, c in enumerate(_counts(n))]
    return [(before, max(after, needed[i] - before)) for i, (before, after) in enumerate(_pads(n))]


def _padded(b: Body, x: str, pads: Pads, value: float, dtype: DType) -> str:
    rows = onnx_pads([(0, 0), (0, 0), *pads])
    return b.op("Pad", x, b.ints(*rows), b.const(value, dtype.numpy))


def _fits(n: Node, pads: Pads) -> bool:
    """ONNX Runtime wants pads that are smaller than the window."""
    return all(max(row) < k for row, k in zip(pads, n.ints("filter_size"), strict=True))


def _pool(n: Node, b: Body, kind: str, x: str, pads: Pads, **attrs: int) -> str:
    more: dict[str, Any] = {"pads": onnx_pads(pads), **attrs}
    return b.op(kind, x, kernel_shape=n.ints("filter_size"), strides=n.ints("stride"), **more)


def max_pool_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """ONNX has no maximum of integers wider than 8 bits, and a slow one of those: float32 holds up to 16."""
    dtype = n.x(0).dtype
    if dtype.is_float:
        return _max_pool(n, b, x[0], dtype)
    return b.cast(_max_pool(n, b, b.cast(x[0], np.float32), DType.FLOAT_32), dtype.numpy)


def _max_pool(n: Node, b: Body, x: str, dtype: DType) -> str:
    pads = _exact_pads(n)
    if _fits(n, pads):
        return _pool(n, b, "MaxPool", x, pads)
    return _pool(n, b, "MaxPool", _padded(b, x, pads, -inf, dtype), [(0, 0)] * len(pads))


def _average(n: Node, b: Body, x: str, count_pads: bool) -> str:
    """Declared pads count when asked for; what rounding up adds behind them never does."""
    pads = _exact_pads(n)
    if count_pads:
        extra = [(0, after - given[1]) for (_, after), given in zip(pads, _pads(n), strict=True)]
        if not any(e for _, e in extra) and _fits(n, pads):
            return _pool(n, b, "AveragePool", x, pads, count_include_pad=1)
        padded = _padded(b, x, _pads(n), 0, n.x(0).dtype)
        return _pool(n, b, "AveragePool", padded, extra, count_include_pad=0)
    if _fits(n, pads):
        return _pool(n, b, "AveragePool", x, pads, count_include_pad=0)
    return b.op("Div", *(_sum(n, b, t, pads) for t in (x, _ones(n, b))))


def _ones(n: Node, b: Body) -> str:
    return b.const(np.ones((1, 1, *n.x(0).shape[1:-1]), n.x(0).dtype.numpy))


def _sum(n: Node, b: Body, x: str, pads: Pads) -> str:
    return _pool(n, b, "AveragePool", _padded(b, x, pads, 0, n.x(0).dtype), [(0, 0)] * len(pads))


def avg_pool_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    return _average(n, b, x[0], n.flag("count_pad_for_edges"))


def l2_pool_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    return b.op("Sqrt", _average(n, b, b.op("Mul", x[0], x[0]), count_pads=False))


@op
class PoolMax2d:
    """The largest value of each window of an NHWC image."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    filter_size = u32(2)
    stride = u32(2)
    pad_amount = u32(2, 2)
    rounding_mode = enum("FLOOR", FLOOR=0, CEIL=1)
    infer = pool_shape
    lower = max_pool_onnx
    keeps_values = True


@op
class PoolMax3d:
    """The largest value of each window of an NDHWC volume."""

    in0 = tensor(5, layout="NDHWC", onnx="NCDHW")
    out0 = result(layout="NDHWC", onnx="NCDHW")
    filter_size = u32(3)
    stride = u32(3)
    pad_amount = u32(3, 2)
    rounding_mode = enum("FLOOR", FLOOR=0, CEIL=1)
    infer = pool_shape
    lower = max_pool_onnx
    keeps_values = True


@op
class PoolAvg2d:
    """The mean of each window of an NHWC image; padding counts when count_pad_for_edges is set."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    filter_size = u32(2)
    stride = u32(2)
    pad_amount = u32(2, 2)
    count_pad_for_edges = flag(False)
    rounding_mode = enum("FLOOR", FLOOR=0, CEIL=1)
    infer = pool_shape
    lower = avg_pool_onnx


@op
class PoolAvg3d:
    """The mean of each window of an NDHWC volume; padding counts when count_pad_for_edges is set."""

    in0 = tensor(5, layout="NDHWC", onnx="NCDHW")
    out0 = result(layout="NDHWC", onnx="NCDHW")
    filter_size = u32(3)
    stride = u32(3)
    pad_amount = u32(3, 2)
    count_pad_for_edges = flag(False)
    rounding_mode = enum("FLOOR", FLOOR=0, CEIL=1)
    infer = pool_shape
    lower = avg_pool_onnx


@op
class L2Pool2d:
    """The root of the mean square of each window of an NHWC image."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    filter_size = u32(2)
    stride = u32(2)
    pad_amount = u32(2, 2)
    infer = pool_shape
    lower = l2_pool_onnx
