"""TFLite operators that address elements by index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import Array, DType, Value

MOST_SEGMENTS = 256  # each is nodes of its own


@translates("GATHER")
def gather(t: Translation, x: Value, indices: Value, *, axis: int = 0, batch_dims: int = 0) -> Value:
    where = t.axis(axis, x.rank)
    if x.data is not None and indices.data is not None and not batch_dims:
        found = indices.data
        if found.size and (found.min() < 0 or found.max() >= x.shape[where]):
            t.refuse(f"an index is outside of axis {where} of {list(x.shape)}")
        return t.constant(np.take(x.data, found, axis=where), x.name)
    if not batch_dims:
        return _gathered(t, x, indices, where)
    if not 0 < batch_dims <= min(where, indices.rank):
        t.refuse(f"batch_dims={batch_dims} does not fit axis {where}")
    order = [*range(batch_dims), where, *(i for i in range(batch_dims, x.rank) if i != where)]
    y = t.gather_nd(t.transpose(x, order), t.reshape(indices, (*indices.shape, 1)), batch_dims)
    inner = indices.rank - batch_dims  # axes of indices, which belong behind those between batch and axis
    between = where - batch_dims
    begin = batch_dims + inner
    back = [*range(batch_dims), *range(begin, begin + between), *range(batch_dims, begin)]
    return t.transpose(y, [*back, *range(begin + between, y.rank)])


def _gathered(t: Translation, x: Value, indices: Value, axis: int) -> Value:
    """A single index leaves the axis out."""
    if indices.rank:
        return t.gather(x, indices, axis)
    y = t.gather(x, t.reshape(indices, (1,)), axis)
    return t.reshape(y, [d for i, d in enumerate(y.shape) if i != axis])


@translates("EMBEDDING_LOOKUP")
def embedding_lookup(t: Translation, indices: Value, table: Value) -> Value:
    return _gathered(t, table, indices, 0)


@translates("GATHER_ND")
def gather_nd(t: Translation, x: Value, indices: Value) -> Value:
    return t.gather_nd(x, indices)


@translates("SCATTER_ND")
def scatter_nd(t: Translation, indices: Value, updates: Value, shape: Value) -> Value:
    """Into zeros; what meets at one place is added up."""
    full = t.ints(shape, "the shape")
    return t.scatter_nd(t.constant(np.zeros(full, updates.dtype.numpy)), indices, updates, "ADD")


@translates("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(t: Translation, x: Value, update: Value, starts: Value) -> Value:
    """Where an update would stand over the end, it is moved inside."""
    if (
        update.rank != x.rank
        or starts.size != x.rank
        or any(u > d for u, d in zip(update.shape, x.shape, strict=True))
    ):
        t.refuse(f"an update {list(update.shape)} at {starts.size} places does not fit {list(x.shape)}")
    grids = np.meshgrid(*(np.arange(u) for u in update.shape), indexing="ij")
    places = np.stack(grids, axis=-1).astype(np.int32)
    last = np.subtract(x.shape, update.shape).astype(np.int32)
    if starts.data is not None:
        moved = t.constant(places + np.clip(starts.data.reshape(-1), 0, last).astype(np.int32))
    else:
        moved = t.add(t.constant(places), inside(t, t.reshape(starts, (x.rank,)), last))
    return t.scatter_nd(x, moved, update)


def inside(t: Translation, starts: Value, last: Array) -> Value:
    """Places that are only known at run time, none before the first or behind the last."""
    starts = t.cast(starts, DType.INT_32)
    zeros, ends = np.zeros(last.shape, np.int32), last.astype(np.int32)
    return t.minimum(t.maximum(starts, t.constant(zeros)), t.constant(ends))


@translates("BUCKETIZE")
def bucketize(t: Translation, x: Value, *, boundaries: Sequence[float] = ()) -> Value:
    """How many of the boundaries, which are in order, a number reaches."""
    if not boundaries:
        return t.constant(np.zeros(x.shape, np.int32))
    flat = t.reshape(x if x.dtype.is_float else t.cast(x, DType.FLOAT_32), (x.size, 1))
    reached = t.greater_equal(flat, t.constant(np.asarray(boundaries, np.float32).reshape(1, -1)))
    return t.reshape(t.reduce_sum(t.cast(reached, DType.INT_32), [1], keep_dims=False), x.shape)


@translates("ONE_HOT")
def one_hot(t: Translation, indices: Value, depth: Value, on: Value, off: Value, *, axis: int = -1) -> Value:
    count = t.ints(depth, "the depth")[0]
    where = t.axis(axis, indices.rank + 1)
    high, low = (float(t.static(v, "the value").reshape(-1)[0]) for v in (on, off))
    return t.one_hot(indices, count, where, on.dtype, high, low)


@translates("TOPK_V2")
def topk_v2(t: Translation, x: Value, k: Value) -> list[Value]:
    return t.many("TopK", x, k=t.ints(k, "k")[0], largest=True)


def _axis(t: Translation, x: Value, axis: Value) -> int:
    return t.axis(t.ints(axis, "the axis")[0], x.rank)


@translates("ARG_MAX")
def arg_max(t: Translation, x: Value, axis: Value) -> Value:
    return t.argmax(x, _axis(t, x, axis), keep_dims=False)


@translates("ARG_MIN")
def arg_min(t: Translation, x: Value, axis: Value) -> Value:
    return t.argmin(x, _axis(t, x, axis), keep_dims=False)


@translates("CUMSUM")
def cumsum(t: Translation, x: Value, axis: Value, *, exclusive: bool = False, reverse: bool = False) -> Value:
    return t("CumulativeSum", x, axis=_axis(t, x, axis), exclusive=exclusive, reverse=reverse)


@translates("SPARSE_TO_DENSE")
def sparse_to_dense(t: Translation, indices: Value, shape: Value, values: Value, default: Value) -> Value:
    full = t.ints(shape, "the shape")
    number = t.static(default, "the value elsewhere").reshape(-1)[0]
    base = t.constant(np.full(full, number, values.dtype.numpy))
    places = t.reshape(indices, (indices.size // len(full), len(full)))
    rows = places.shape[0]
    if values.size == 1 and rows > 1:
        values = t.constant(np.repeat(t.static(values, "the value").reshape(-1), rows))
    return t.scatter_nd(base, places, t.reshape(values, (rows,)))


# -- segments ------------------------------------------------------------------------------------------------

_REDUCTIONS = {"UNSORTED_SEGMENT_SUM": ("ADD", 0.0), "UNSORTED_SEGMENT_PROD": ("MUL", 1.0)}


@translates(*_REDUCTIONS)
def unsorted_segment(t: Translation, x: Value, segments: Value, count: Value) -> Value:
    """Rows of one number are put together; a segment without rows has the number that changes nothing."""
    total = t.ints(count, "how many segments there are")[0]
    return _scattered(t, x, segments, total, *_REDUCTIONS[t.op])


@translates("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN")
def unsorted_segment_extreme(t: Translation, x: Value, segments: Value, count: Value) -> Value:
    """Segment by segment: QNN scatters sums and products only."""
    found, total = t.ints(segments, "the segments"), t.ints(count, "how many segments there are")[0]
    if segments.rank != 1 or len(found) != x.shape[0] or not 0 < total <= MOST_SEGMENTS:
        t.refuse(f"{total} segments of {list(segments.shape)} rows do not fit {list(x.shape)}")
    info = np.finfo(np.float32) if x.dtype.is_float else np.iinfo(x.dtype.numpy)
    largest = t.op == "UNSORTED_SEGMENT_MAX"
    nothing = np.full((1, *x.shape[1:]), info.min if largest else info.max, x.dtype.numpy)
    rows: list[Value] = []
    for segment in range(total):
        places = np.asarray([i for i, s in enumerate(found) if s == segment], np.int32)
        part = t.gather(x, t.constant(places), 0) if places.size else None
        reduced = t.reduce_max if largest else t.reduce_min
        rows.append(t.constant(nothing) if part is None else reduced(part, [0], keep_dims=True))
    return t.concat(rows, 0)


def _scattered(t: Translation, x: Value, segments: Value, total: int, reduction: str, start: float) -> Value:
    base = t.constant(np.full((total, *x.shape[segments.rank :]), start, x.dtype.numpy))
    return t.scatter_nd(base, t.reshape(segments, (*segments.shape, 1)), x, reduction)


@translates("SEGMENT_SUM")
def segment_sum(t: Translation, x: Value, segments: Value) -> Value:
    found = t.ints(segments, "the segments")
    return _scattered(t, x, segments, max(found, default=-1) + 1, "ADD", 0.0)
