"""ONNX ops that move data about: reshaping, cutting, joining, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from onnx import numpy_helper

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation, broadcast_shape
from openqnn.ir import Array, DType, Shape, Value


def filled(t: Translation, shape: Sequence[int], number: float, dtype: DType) -> Value:
    """A constant that takes the memory of one element."""
    return t.constant(np.broadcast_to(np.asarray(number).astype(dtype.numpy), shape))


def empty(t: Translation, shape: Sequence[int], like: Value) -> Value:
    """QNN has no empty tensors; what has no elements is a constant, whatever it is computed from."""
    return filled(t, shape, 0, like.dtype)


def wanted_shape(t: Translation, value: Value | None, what: str) -> tuple[int, ...]:
    """A shape that an input holds, or else the one that the model states for the result."""
    stated = t.output_shape()
    return stated if value is not None and value.data is None and stated is not None else t.ints(value, what)


def axes_of(t: Translation, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    if len(axes) > rank:
        t.refuse(f"axes {list(axes)[:8]} are more than a tensor of rank {rank} has")
    found = tuple(t.axis(int(a), rank) for a in axes)
    if len(set(found)) != len(found):
        t.refuse(f"axes {list(axes)} name an axis twice")
    return found


# -- constants --------------------------------------------------


@translates("Constant")
def constant(
    t: Translation, *, value: Array | None = None, sparse_value: Any = None,
    value_float: float | None = None, value_floats: list[float] | None = None,
    value_int: int | None = None, value_ints: list[int] | None = None,
    value_string: str | None = None, value_strings: Any = None,
) -> Value:  # fmt: skip
    if value_string is not None or value_strings is not None:
        t.refuse("strings have no QNN type")
    dense = None if sparse_value is None else _dense(t, sparse_value)
    floats = [np.asarray(v, np.float32) for v in (value_float, value_floats) if v is not None]
    integers = [np.asarray(v, np.int64) for v in (value_int, value_ints) if v is not None]
    found = [*(v for v in (value, dense) if v is not None), *floats, *integers]
    if len(found) != 1:
        t.refuse(f"a Constant has one value, this one has {len(found)}")
    return t.constant(found[0], t.builder.stem)


def _dense(t: Translation, sparse: Any) -> Array:
    try:
        values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        places = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)
        dense[places] = values
    except (ValueError, IndexError, TypeError, OverflowError, AttributeError) as e:
        t.refuse(f"the sparse tensor does not fit its shape: {e}")
    return dense


MAX_ELEMENTS = 1 << 26  # of a constant that the model only describes


@translates("ConstantOfShape")
def constant_of_shape(t: Translation, shape: Value, *, value: Array | None = None) -> Value:
    fill = np.zeros(1, np.float32) if value is None else value
    dims = wanted_shape(t, shape, "the shape")
    if fill.size != 1 or min(dims, default=0) < 0:
        t.refuse(f"{fill.size} values cannot fill the shape {list(dims)}")
    if prod(max(d, 1) for d in dims) > MAX_ELEMENTS:
        t.refuse(f"the shape {list(dims)} is too large for a constant")
    return t.constant(np.broadcast_to(fill.reshape(()), dims))


@translates("Shape")
def shape_of(t: Translation, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    return t.constant(np.asarray(x.shape[start:end], np.int64))


@translates("Size")
def size_of(t: Translation, x: Value) -> Value:
    return t.constant(np.asarray(x.size, np.int64))


_AT_RUN_TIME = "the length of the result is computed at run time; QNN needs it when the graph is built"


@translates("Range")
def range_of(t: Translation, start: Value, limit: Value, delta: Value) -> Value:
    """Known ends are folded before; others need a length that the model states."""
    stated = t.output_shape()
    if stated is None or len(stated) != 1:
        ends = [v.data.item() for v in (start, limit, delta) if v.data is not None and v.data.size == 1]
        known = len(ends) == 3
        reason = f"the range from {ends[0]} to {ends[1]} by {ends[2]} is too long" if known else _AT_RUN_TIME
        t.refuse(reason)
    if stated[0] > MAX_ELEMENTS:
        t.refuse(f"a range of {stated[0]} numbers is too long")
    steps = t.constant(np.arange(stated[0]).astype(delta.dtype.numpy))
    return t.add(start, t.mul(steps, delta))


@translates("EyeLike")
def eye_like(t: Translation, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    from openqnn.frontends.onnx.element_types import onnx_dtype

    if x.rank != 2:
        t.refuse(f"the input has rank {x.rank}, a matrix is expected")
    kind = x.dtype if dtype is None else onnx_dtype(dtype, "the result")
    return t.constant(np.eye(*x.shape, k=k).astype(kind.numpy))


# -- the same numbers in another shape --------------------------------------------------


@translates("Identity")
def identity(t: Translation, x: Any) -> list[Any]:
    return [x]


def _with_copied(t: Translation, x: Value, dims: list[int]) -> list[int]:
    """The shape with the data's own dimension wherever a 0 stands."""
    if 0 in dims[x.rank :]:
        t.refuse(f"shape {dims} copies dimensions that {list(x.shape)} does not have")
    return [x.shape[i] if d == 0 else d for i, d in enumerate(dims)]


@translates("Reshape")
def reshape(t: Translation, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    dims = list(wanted_shape(t, shape, "the shape"))
    if shape.data is not None and not allowzero:
        dims = _with_copied(t, x, dims)
    if dims.count(-1) == 1:
        known = prod(d for d in dims if d != -1)
        dims[dims.index(-1)] = x.size // known if known else 0
    if min(dims, default=0) < 0 or prod(dims) != x.size:
        raise ShapeError(f"{list(x.shape)} cannot be reshaped to {list(dims)}")
    return t.reshape(x, dims)


@translates("Flatten")
def flatten(t: Translation, x: Value, *, axis: int = 1) -> Value:
    if not -x.rank <= axis <= x.rank:
        t.refuse(f"axis {axis} is outside a tensor of rank {x.rank}")
    axis = axis + x.rank if axis < 0 else axis
    return t.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def squeezed(t: Translation, x: Value, axes: Sequence[int] | None) -> Value:
    ones = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else axes_of(t, axes, x.rank)
    if any(x.shape[a] != 1 for a in ones):
        raise ShapeError(f"axes {list(ones)} of {list(x.shape)} are not all 1")
    if not ones:
        return x
    rest = [d for i, d in enumerate(x.shape) if i not in ones]
    return t.reshape(x, rest) if x.data is not None or not rest else t("Squeeze", x, axes=sorted(ones))


@translates("Squeeze")
def squeeze_1(t: Translation, x: Value, *, axes: list[int] | None = None) -> Value:
    return squeezed(t, x, axes)


@translates("Squeeze", since=13)
def squeeze(t: Translation, x: Value, axes: Value | None = None) -> Value:
    if axes is not None and axes.data is None and t.output_shape() is not None:
        return t.reshape(x, t.output_shape() or ())
    return squeezed(t, x, None if axes is None else t.ints(axes, "axes"))


def unsqueezed(t: Translation, x: Value, axes: Sequence[int]) -> Value:
    rank = x.rank + len(axes)
    places = axes_of(t, axes, rank)
    old = iter(x.shape)
    return t.reshape(x, [1 if i in places else next(old) for i in range(rank)])


@translates("Unsqueeze")
def unsqueeze_1(t: Translation, x: Value, *, axes: list[int]) -> Value:
    return unsqueezed(t, x, axes)


@translates("Unsqueeze", since=13)
def unsqueeze(t: Translation, x: Value, axes: Value) -> Value:
    if axes.data is None and t.output_shape() is not None:
        return t.reshape(x, t.output_shape() or ())
    return unsqueezed(t, x, t.ints(axes, "axes"))


@translates("Transpose")
def transpose(t: Translation, x: Value, *, perm: list[int] | None = None) -> Value:
    order = list(reversed(range(x.rank))) if perm is None else perm
    if sorted(order) != list(range(x.rank)):
        raise ShapeError(f"perm {order} does not permute the axes of {list(x.shape)}")
    return t.transpose(x, order)


# -- joining and cutting --------------------------------------------------


def concatenated(t: Translation, values: Sequence[Value], axis: int) -> Value:
    """Parts without elements are left out: QNN has none."""
    if not values:
        t.refuse("nothing to join")
    axis = t.axis(axis, values[0].rank)
    shapes = {(*v.shape[:axis], *v.shape[axis + 1 :]) for v in values}
    if len(shapes) > 1 or len({v.rank for v in values}) > 1 or not values[0].rank:
        listed = ", ".join(str(list(v.shape)) for v in values)
        raise ShapeError(f"shapes {listed} cannot be joined on axis {axis}")
    parts = [v for v in values if v.size]
    if not parts:
        total = sum(v.shape[axis] for v in values)
        return empty(t, (*values[0].shape[:axis], total, *values[0].shape[axis + 1 :]), values[0])
    return t.concat(parts, axis)


@translates("Concat")
def concat(t: Translation, *values: Value, axis: int = 1) -> Value:
    return concatenated(t, values, axis)


def parts_of(t: Translation, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Consecutive parts of an axis; those without elements are constants."""
    axis = t.axis(axis, x.rank)
    if not x.rank or min(sizes, default=0) < 0 or sum(sizes) != x.shape[axis]:
        raise ShapeError(f"sizes {list(sizes)} do not cut axis {axis} of {list(x.shape)}")
    starts = np.cumsum([0, *sizes]).tolist()
    if x.data is not None:
        before = (slice(None),) * axis
        return [t.constant(x.data[(*before, slice(a, b))]) for a, b in pairwise(starts)]
    cuts = [a for a, size in zip(starts, sizes, strict=False) if size][1:]
    real = iter(t.split(x, axis, cuts) if cuts else [x])
    return [next(real) if size else empty(t, (*x.shape[:axis], 0, *x.shape[axis + 1 :]), x) for size in sizes]


MOST_PARTS = 65536  # more outputs than that are a damaged model, and would take for ever to list


def equal_sizes(t: Translation, size: int, count: int) -> list[int]:
    """Sizes of parts as equal as they can be: only the last may be smaller."""
    if not 1 <= count <= MOST_PARTS:
        t.refuse(f"it has {count} outputs")
    each = -(-size // count)
    return [max(0, min(each, size - i * each)) for i in range(count)]


@translates("Split")
def split_1(t: Translation, x: Value, *, axis: int = 0, split: list[int] | None = None) -> list[Value]:
    size = x.shape[t.axis(axis, x.rank)] if x.rank else 0
    return parts_of(t, x, axis, split or equal_sizes(t, size, len(t.outputs)))


@translates("Split", since=13)
def split(
    t: Translation, x: Value, sizes: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> list[Value]:
    axis, outputs = t.axis(axis, x.rank), len(t.outputs)
    stated = [t.output_shape(i) for i in range(outputs)]
    if sizes is None:
        return parts_of(t, x, axis, equal_sizes(t, x.shape[axis] if x.rank else 0, num_outputs or outputs))
    if sizes.data is None and all(s is not None and len(s) == x.rank for s in stated):
        return parts_of(t, x, axis, [s[axis] for s in stated if s is not None])
    return parts_of(t, x, axis, t.ints(sizes, "the sizes of the parts"))


def sliced(t: Translation, x: Value, cuts: dict[int, slice]) -> Value:
    """Numpy's rules, which are ONNX's; constants become views."""
    taken = [range(d)[cuts[i]] if i in cuts else range(d) for i, d in enumerate(x.shape)]
    shape = tuple(map(len, taken))
    if not prod(shape):
        return empty(t, shape, x)
    if x.data is not None:
        return t.constant(x.data[tuple(cuts.get(i, slice(None)) for i in range(x.rank))])
    if all(r == range(d) for r, d in zip(taken, x.shape, strict=True)):
        return x
    # A stop of -1 would count from the end: what lies before the first element is -(size + 1).
    rows = [[r.start, r.stop if r.stop >= 0 else -d - 1, r.step] for r, d in zip(taken, x.shape, strict=True)]
    return t.strided_slice(x, ranges=rows)


def _slice(
    t: Translation, x: Value, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Value:  # fmt: skip
    where = axes_of(t, range(len(starts)) if axes is None else axes, x.rank)
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(where) == len(steps):
        t.refuse(
            f"{len(starts)} starts, {len(ends)} ends, {len(where)} axes and {len(steps)} steps do not match"
        )
    if 0 in steps:
        t.refuse("a step is 0")
    cuts: dict[int, slice] = {}
    for start, end, axis, step in zip(starts, ends, where, steps, strict=True):
        begin, stop, step = slice(start, end, step).indices(x.shape[axis])
        cuts[axis] = slice(begin, None if stop < 0 else stop, step)
    return sliced(t, x, cuts)


@translates("Slice")
def slice_1(
    t: Translation, x: Value, *, starts: list[int], ends: list[int], axes: list[int] | None = None
) -> Value:
    return _slice(t, x, starts, ends, axes, None)


@translates("Slice", since=10)
def slice_10(
    t: Translation,
    x: Value,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Value:
    more = [None if v is None else t.ints(v, what) for v, what in ((axes, "axes"), (steps, "steps"))]
    return _slice(t, x, t.ints(starts, "starts"), t.ints(ends, "ends"), *more)


# -- repeating --------------------------------------------------


@translates("Tile", since=6)
def tile(t: Translation, x: Value, repeats: Value) -> Value:
    stated = t.output_shape()
    if repeats.data is None and stated is not None and len(stated) == x.rank and all(x.shape):
        counts = tuple(n // d for n, d in zip(stated, x.shape, strict=True))
    else:
        counts = t.ints(repeats, "the repeats")
    if len(counts) != x.rank or min(counts, default=0) < 0:
        raise ShapeError(f"repeats {list(counts)} do not fit {list(x.shape)}")
    return tiled(t, x, counts)


def tiled(t: Translation, x: Value, counts: Sequence[int]) -> Value:
    shape: Shape = tuple(d * n for d, n in zip(x.shape, counts, strict=True))
    if shape == x.shape:
        return x
    return t.tile(x, counts) if prod(shape) else empty(t, shape, x)


@translates("Expand")
def expand(t: Translation, x: Value, shape: Value) -> Value:
    return expanded(t, x, wanted_shape(t, shape, "the shape"))


def expanded(t: Translation, x: Value, dims: Sequence[int]) -> Value:
    """Broadcast both ways, as ONNX does."""
    try:
        target = broadcast_shape(x.shape, tuple(dims))
    except ValueError:
        raise ShapeError(f"{list(x.shape)} cannot be expanded to {list(dims)}") from None
    if x.data is not None:
        return t.constant(np.broadcast_to(x.data, target), x.name)
    full = t.reshape(x, (1,) * (len(target) - x.rank) + x.shape)
    return tiled(t, full, [n // d if d else 1 for n, d in zip(target, full.shape, strict=True)])
