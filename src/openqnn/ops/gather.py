"""Ops that address elements by index: gathers, scatters, and the search for what is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import DType, Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import INDEX, Lower, Moves, axis, enum, op, result, tensor, u32


def axis_of(n: Node, name: str = "axis") -> int:
    """An axis parameter that must lie within the rank of input 0."""
    found, rank = n.int(name), n.x(0).rank
    if not 0 <= found < rank:
        raise ShapeError(f"{n.where}: {name}={found} is outside of rank {rank}")
    return found


def wide(n: Node, b: Body, x: Sequence[str], index: int) -> str:
    """Indices as int64, which every ONNX op takes."""
    return x[index] if n.x(index).dtype is DType.INT_64 else b.cast(x[index], np.int64)


def first_rows(b: Body, rows: str, count: int, width: int, fill: int) -> str:
    """Exactly `count` rows out of an unknown number: cut, or filled up."""
    full = b.op("Concat", rows, b.const(np.full((count, width), fill, np.int64)), axis=0)
    return b.op("Slice", full, b.ints(0), b.ints(count), b.ints(0))


# -- gathers -------------------------------------------------------------------------------------------------


def gather_shape(n: Node) -> list[Shape]:
    at, x = axis_of(n), n.x(0).shape
    return [(*x[:at], *n.x(1).shape, *x[at + 1 :])]


def gather_elements_shape(n: Node) -> list[Shape]:
    _check_elements(n)
    return [n.x(1).shape]


def _check_elements(n: Node) -> None:
    """Element-wise indices: the rank of the data, and no larger than it but along the axis."""
    at, x, indices = axis_of(n), n.x(0).shape, n.x(1).shape
    if len(x) != len(indices) or any(
        i > d for k, (i, d) in enumerate(zip(indices, x, strict=True)) if k != at
    ):
        raise ShapeError(f"{n.where}: indices {list(indices)} do not fit data {list(x)} along axis {at}")


def gather_nd_shape(n: Node) -> list[Shape]:
    x, indices, batch = n.x(0).shape, n.x(1).shape, n.int("batch_dims")
    if not indices or batch >= len(indices) or x[:batch] != indices[:batch] or batch + indices[-1] > len(x):
        raise ShapeError(
            f"{n.where}: indices {list(indices)} do not fit data {list(x)} with batch_dims={batch}"
        )
    return [(*indices[:-1], *x[batch + indices[-1] :])]


@op
class Gather:
    """Slices of the data at the given positions of one axis."""

    in0 = tensor()
    indices = tensor(role=INDEX)
    out0 = result()
    axis = axis(dtype=DType.INT_32)
    infer = gather_shape
    lower: Lower = lambda n, b, x: b.op("Gather", x[0], wide(n, b, x, 1), axis=n.int("axis"))
    moves = Moves.AXES
    keeps_values = True


@op
class GatherElements:
    """Single elements: each index replaces the coordinate along one axis."""

    in0 = tensor()
    indices = tensor(role=INDEX)
    out0 = result()
    axis = axis(0)
    infer = gather_elements_shape
    lower: Lower = lambda n, b, x: b.op("GatherElements", x[0], wide(n, b, x, 1), axis=n.int("axis"))
    keeps_values = True


@op
class GatherNd:
    """Slices at coordinates that the last axis of the indices holds; leading batch_dims axes are shared."""

    in0 = tensor()
    indices = tensor(role=INDEX)
    out0 = result()
    batch_dims = u32(default=0)
    infer = gather_nd_shape
    lower: Lower = lambda n, b, x: b.op("GatherND", x[0], wide(n, b, x, 1), batch_dims=n.int("batch_dims"))
    keeps_values = True


# -- scatters ------------------------------------------------------------------------------------------------


def scatter_elements_shape(n: Node) -> list[Shape]:
    _check_elements(n)
    if n.x(2).shape != n.x(1).shape:
        raise ShapeError(f"{n.where}: updates {list(n.x(2).shape)} differ from indices {list(n.x(1).shape)}")
    return [n.x(0).shape]


def scatter_nd_shape(n: Node) -> list[Shape]:
    x, indices, updates = n.x(0).shape, n.x(1).shape, n.x(2).shape
    if not indices or indices[-1] > len(x) or updates != (*indices[:-1], *x[indices[-1] :]):
        raise ShapeError(f"{n.where}: updates {list(updates)} at {list(indices)} do not fit data {list(x)}")
    return [x]


def _scatter(kind: str, n: Node, b: Body, x: Sequence[str], **attrs: Any) -> str:
    reduction, half = n.enum("reduction"), n.x(0).dtype is DType.FLOAT_16
    data, updates = x[0], x[2]
    if reduction != "NONE" and half:  # ONNX Runtime reduces no float16 here
        data, updates = b.cast(data, np.float32), b.cast(updates, np.float32)
    done = b.op(kind, data, wide(n, b, x, 1), updates, reduction=reduction.lower(), **attrs)
    return b.cast(done, np.float16) if data != x[0] else done


@op
class ScatterElements:
    """The data with single elements replaced or combined; each index is the coordinate along one axis."""

    in0 = tensor()
    indices = tensor(role=INDEX)
    updates = tensor()
    out0 = result()
    axis = axis(0)
    reduction = enum("NONE", NONE=0, ADD=1, MUL=2, MAX=3)
    infer = scatter_elements_shape
    lower: Lower = lambda n, b, x: _scatter("ScatterElements", n, b, x, axis=n.int("axis"))


@op
class ScatterNd:
    """The data with slices replaced or combined at coordinates that the last axis of the indices holds."""

    in0 = tensor()
    indices = tensor(role=INDEX)
    updates = tensor()
    out0 = result()
    reduction = enum("NONE", NONE=0, ADD=1, MUL=2)
    infer = scatter_nd_shape
    lower: Lower = lambda n, b, x: _scatter("ScatterND", n, b, x)


# -- search --------------------------------------------------------------------------------------------------


def non_zero_shape(n: Node) -> list[Shape]:
    """Has as many rows as declared, else room for every element."""
    x = n.x(0)
    shape = n.outputs[0].shape if n.outputs else (x.size, x.rank)
    if len(shape) != 2 or shape[1] != x.rank:
        raise ShapeError(f"{n.where}: the output {list(shape)} should be rows of {x.rank} coordinates")
    return [shape]


def non_zero(n: Node, b: Body, x: Sequence[str]) -> str:
    """Rows behind the last element are -1, as the vendor's library leaves them."""
    rows = b.transpose(b.op("NonZero", b.cast(x[0], np.bool_)), (1, 0))
    return b.cast(first_rows(b, rows, *n.out.shape, fill=-1), n.out.dtype.numpy)


@op
class NonZero:
    """Coordinates of the elements that are not zero, one row each; unused rows hold -1."""

    in0 = tensor()
    out0 = result(DType.INT_32)
    infer = non_zero_shape
    lower = non_zero
