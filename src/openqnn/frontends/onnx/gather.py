"""ONNX ops that address elements by index.

ONNX counts negative indices from the end, QNN has none: known ones are moved, others go through a remainder.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.shape import empty
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import INDICES

_NEVER_NEGATIVE = {"NonZero", "ElementWiseMod"}


def positions(t: Translation, indices: Value, sizes: int | Sequence[int]) -> Value:
    """Indices from 0 up; `sizes` is that of the axis, or one per place of the last axis of the indices."""
    limit = np.asarray(sizes, np.int64)
    if indices.data is not None:
        found = indices.data.astype(np.int64)
        if found.size and ((found < -limit).any() or (found >= limit).any()):
            raise ShapeError(
                f"an index from {found.min()} to {found.max()} is outside an axis of {limit.tolist()}"
            )
        return t.constant(np.where(found < 0, found + limit, found).astype(np.int32), indices.name)
    if not indices.dtype.signed or _counts_from_zero(indices):
        return indices
    return t.mod(indices, t.constant(limit.astype(indices.dtype.numpy)))


def _counts_from_zero(indices: Value) -> bool:
    """Whether they are the result of an op that gives positions."""
    node = indices.producer
    if node is None:
        return False
    return node.op in _NEVER_NEGATIVE or schema_of(node).result(node.outputs.index(indices)).dtype == INDICES


@translates("Gather")
def gather(t: Translation, x: Value, indices: Value, *, axis: int = 0) -> Value:
    axis = t.axis(axis, x.rank)
    if not x.rank:
        t.refuse("a single number has no axis to gather from")
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if not prod(shape):
        return empty(t, shape, x)
    if x.data is not None and indices.data is not None and indices.size == 1:
        place = int(positions(t, indices, x.shape[axis]).data.ravel()[0])  # type: ignore[union-attr]
        return t.constant(x.data[(*(slice(None),) * axis, place)].reshape(shape))
    places = positions(t, indices, x.shape[axis])
    found = t.gather(x, t.reshape(places, places.shape or (1,)), axis=axis)
    return t.reshape(found, shape)


@translates("GatherElements")
def gather_elements(t: Translation, x: Value, indices: Value, *, axis: int = 0) -> Value:
    axis = t.axis(axis, x.rank)
    if not indices.size:
        return empty(t, indices.shape, x)
    return t.gather_elements(x, positions(t, indices, x.shape[axis]), axis=axis)


def _nd_sizes(t: Translation, x: Value, indices: Value, batch: int) -> tuple[int, ...]:
    """The sizes of the axes that the last axis of the indices addresses."""
    if not indices.rank or not 0 <= batch < min(indices.rank, x.rank):
        t.refuse(f"indices {list(indices.shape)} with batch_dims={batch} do not fit data {list(x.shape)}")
    if batch + indices.shape[-1] > x.rank:
        raise ShapeError(f"indices {list(indices.shape)} address more axes than data {list(x.shape)} has")
    return x.shape[batch : batch + indices.shape[-1]]


@translates("GatherND")
def gather_nd(t: Translation, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    sizes = _nd_sizes(t, x, indices, batch_dims)
    shape = (*indices.shape[:-1], *x.shape[batch_dims + len(sizes) :])
    if not prod(shape) or not indices.size:
        t.refuse(f"indices {list(indices.shape)} select nothing of {list(x.shape)}")
    found = t.gather_nd(x, positions(t, indices, sizes), batch_dims=batch_dims)
    return t.reshape(found, shape)


# -- scatters --------------------------------------------------


def _scattered(t: Translation, x: Value, places: Value, updates: Value, axis: int, reduction: str) -> Value:
    """QNN lacks the minimum: it is the maximum of what is negated."""
    if reduction == "min":
        turned = _scattered(
            t, t.neg(x), places, t.neg(updates), axis, "max"
        )  # fmt: skip
        return t.neg(turned)
    if reduction not in ("none", "add", "mul", "max"):
        t.refuse(f"reduction '{reduction}' is not known")
    return t.scatter_elements(x, places, updates, axis=axis, reduction=reduction.upper())


@translates("ScatterElements", "Scatter")
def scatter_elements(
    t: Translation, x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    axis = t.axis(axis, x.rank)
    if not x.rank:
        t.refuse("a single number has no axis to scatter to")
    if not indices.size:
        return x
    return _scattered(t, x, positions(t, indices, x.shape[axis]), updates, axis, reduction)


@translates("ScatterND")
def scatter_nd(t: Translation, x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    sizes = _nd_sizes(t, x, indices, 0)
    if not indices.size:
        return x
    places = positions(t, indices, sizes)
    if reduction in ("none", "add", "mul"):
        return t.scatter_nd(x, places, updates, reduction=reduction.upper())
    row = prod(x.shape[len(sizes) :])
    strides = np.asarray([prod(x.shape[i + 1 :]) for i in range(len(sizes))], np.int32)
    first = t.reduce_sum(t.mul(places, t.constant(strides)), (places.rank - 1,), keep_dims=False)
    flat = t.add(t.reshape(first, (first.size, 1)), t.constant(np.arange(row, dtype=np.int32)[None]))
    changed = _scattered(
        t,
        t.reshape(x, (x.size,)),
        t.reshape(flat, (flat.size,)),
        t.reshape(updates, (updates.size,)),
        0,
        reduction,
    )
    return t.reshape(changed, x.shape)


@translates("TensorScatter")
def tensor_scatter(
    t: Translation,
    past: Value,
    update: Value,
    starts: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """A cache that new rows are written into, for every batch at its own place."""
    axis = t.axis(axis, past.rank)
    if not axis or update.rank != past.rank or mode not in ("linear", "circular"):
        t.refuse(
            f"axis {axis}, mode '{mode}' and an update {list(update.shape)} do not fit {list(past.shape)}"
        )
    batch, length, count = past.shape[0], past.shape[axis], update.shape[axis]
    order = [0, axis, *(i for i in range(1, past.rank) if i != axis)]
    rows = t.constant(np.broadcast_to(np.arange(count, dtype=np.int32), (batch, count)))
    if starts is not None:
        rows = t.add(rows, t.reshape(starts, (batch, 1)))
    if mode == "circular":
        rows = t.mod(rows, t.constant(np.int32(length)))
    each = t.constant(np.broadcast_to(np.arange(batch, dtype=np.int32)[:, None, None], (batch, count, 1)))
    places = t.concat([each, t.reshape(rows, (batch, count, 1))], axis=2)
    written = t.scatter_nd(t.transpose(past, order), places, t.transpose(update, order))
    return t.transpose(written, [order.index(i) for i in range(past.rank)])


@translates("OneHot")
def one_hot(t: Translation, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    rank = indices.rank + 1
    axis = t.axis(axis, rank)
    stated = t.output_shape()
    if depth.data is None and stated is not None and len(stated) == rank:
        count = stated[axis]
    else:
        count = t.ints(depth, "the depth")[0] if depth.size else 0
    if values.size != 2 or count < 1:
        t.refuse(f"a depth of {count} and {values.size} values give no result")
    wide = t.cast(indices, DType.INT_32)
    back = t.add(wide, count)
    places = t.select(t.less(wide, 0), back, wide)
    if values.data is not None and np.abs(values.data.astype(np.float64)).max() <= 1 << 24:
        off, on = (float(v) for v in values.data.ravel())
        kind = t.operand(values)
        assert kind is not None
        return t.one_hot(places, count, axis, kind.dtype, on, off)
    hit = t.one_hot(places, count, axis, DType.BOOL_8)
    off, on = t.split(t.reshape(values, (2,)), 0, (1,))
    return t.select(hit, on, off)
