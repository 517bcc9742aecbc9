"""ONNX reductions, positions of extremes, running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, nan, prod
from typing import Final

import numpy as np

from openqnn.frontends.onnx.shape import axes_of, empty, filled, sliced
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Shape, Value

Step = Callable[[Translation, Value], Value]
_LOWEST: Final = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Reduction:
    """An ONNX reduction: something before, a QNN op, something after; and the value for no elements."""

    fold: Callable[[Translation, Value, Sequence[int], bool], Value]
    nothing: float
    before: Step | None = None
    after: Step | None = None


_TABLE = {
    "ReduceSum": Reduction(Translation.reduce_sum, 0),
    "ReduceMean": Reduction(Translation.reduce_mean, nan),
    "ReduceMax": Reduction(Translation.reduce_max, -inf),
    "ReduceMin": Reduction(Translation.reduce_min, inf),
    "ReduceProd": Reduction(Translation.reduce_prod, 1),
    "ReduceSumSquare": Reduction(Translation.reduce_sum, 0, before=Translation.square),
    "ReduceL1": Reduction(Translation.reduce_sum, 0, before=Translation.abs),
    "ReduceL2": Reduction(Translation.reduce_sum, 0, before=Translation.square, after=Translation.sqrt),
    "ReduceLogSum": Reduction(Translation.reduce_sum, -inf, after=Translation.log),
}


def _axes(
    t: Translation, x: Value, axes: Sequence[int] | Value | None, keepdims: bool, noop: bool
) -> tuple[int, ...]:
    """The axes to fold; all when none are named, unless that means to do nothing."""
    if isinstance(axes, Value):
        axes = _stated_axes(t, x, keepdims) if axes.data is None and axes.size else t.ints(axes, "axes")
    if not axes:
        return () if noop else tuple(range(x.rank))
    return tuple(sorted(axes_of(t, axes, x.rank)))


def _stated_axes(t: Translation, x: Value, keepdims: bool) -> tuple[int, ...]:
    """Axes that are only known at run time, when the shape that the model states leaves no doubt about them.

    Whether an axis of size 1 is folded with others makes no difference to the numbers."""
    large = [i for i, d in enumerate(x.shape) if d != 1]
    found = [
        axes
        for count in range(1, len(large) + 1)
        for axes in combinations(large, count)
        if _is_shape_of(t.output_shape(), x, axes, keepdims)
    ]
    if len(found) != 1:
        t.refuse("axes are computed at run time; QNN needs them when the graph is built")
    return found[0]


def _is_shape_of(shape: Shape | None, x: Value, axes: Sequence[int], keepdims: bool) -> bool:
    if shape is None or not keepdims:
        return shape == tuple(d for i, d in enumerate(x.shape) if i not in axes)
    return shape == tuple(1 if i in axes else d for i, d in enumerate(x.shape))


def _reduce(
    t: Translation, x: Value, axes: Sequence[int] | Value | None, keepdims: int, noop: int = 0
) -> Value:
    kind = t.op
    where = _axes(t, x, axes, bool(keepdims), bool(noop))
    if where and not prod(x.shape[a] for a in where):
        shape = [1 if i in where else d for i, d in enumerate(x.shape) if keepdims or i not in where]
        return _of_nothing(t, kind, shape, x)
    if kind == "ReduceLogSumExp":
        return _log_sum_exp(t, x, where, bool(keepdims))
    row = _TABLE[kind]
    narrow = x.dtype is DType.BOOL_8
    data = t.cast(x, DType.INT_32) if narrow else x
    data = row.before(t, data) if row.before else data
    y = row.fold(t, data, where, bool(keepdims))
    y = row.after(t, y) if row.after else y
    return t.cast(y, x.dtype) if narrow else y


def _of_nothing(t: Translation, kind: str, shape: Sequence[int], x: Value) -> Value:
    value = _TABLE[kind].nothing if kind in _TABLE else -inf
    if not np.isfinite(value) and not x.dtype.is_float:
        if np.isnan(value):
            t.refuse("the mean of no integers is not defined")
        bound = (
            (0, 1) if x.dtype is DType.BOOL_8 else (np.iinfo(x.dtype.numpy).min, np.iinfo(x.dtype.numpy).max)
        )
        value = bound[0] if value < 0 else bound[1]
    return filled(t, shape, value, x.dtype)


def _log_sum_exp(t: Translation, x: Value, axes: Sequence[int], keep: bool) -> Value:
    """With the maximum taken out, so that nothing overflows; kept finite, for all could be minus infinity."""
    if not axes:
        return x
    top = t.maximum(t.reduce_max(x, axes, keep_dims=True), _LOWEST)
    if x.dtype is DType.FLOAT_16:
        top = t.reduce_max(x, axes, keep_dims=True)
    total = t.reduce_sum(t.exp(t.sub(x, top)), axes, keep_dims=True)
    y = t.add(t.log(total), top)
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
    return t.reshape(y, shape)


_NAMES = (*_TABLE, "ReduceLogSumExp")


@translates(*_NAMES)
def reduce_1(t: Translation, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
    return _reduce(t, x, axes, keepdims)


def reduce_13(
    t: Translation, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Value:
    return _reduce(t, x, axes, keepdims, noop_with_empty_axes)


translates("ReduceSum", since=13)(reduce_13)
translates(*(n for n in _NAMES if n != "ReduceSum"), since=18)(reduce_13)


# -- positions --------------------------------------------------


@translates("ArgMax", "ArgMin")
def arg(t: Translation, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    """QNN finds the first; the last is the first from the other end."""
    axis = t.axis(axis, x.rank)
    if not x.size or not x.rank:
        t.refuse(f"{list(x.shape)} has no axis with elements")
    data = sliced(t, x, {axis: slice(None, None, -1)}) if select_last_index else x
    largest = t.op == "ArgMax"
    found = t.argmax(data, axis, bool(keepdims)) if largest else t.argmin(data, axis, bool(keepdims))
    if select_last_index:
        found = t.sub(x.shape[axis] - 1, found)
    return t.reshape(found, [1 if i == axis else d for i, d in enumerate(x.shape) if keepdims or i != axis])


def _top_k(t: Translation, x: Value, k: int, axis: int, largest: bool) -> list[Value]:
    axis = t.axis(axis, x.rank)
    if not x.rank or not 0 <= k <= x.shape[axis]:
        t.refuse(f"k={k} does not fit axis {axis} of {list(x.shape)}")
    if not k or not x.size:
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [empty(t, shape, x), filled(t, shape, 0, DType.INT_64)]
    order = [i for i in range(x.rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(x.rank)]
    results = t.many("TopK", t.transpose(x, order), k=k, largest=largest)
    return [t.transpose(r, back) for r in results]


@translates("TopK")
def top_k_1(t: Translation, x: Value, *, k: int, axis: int = -1) -> list[Value]:
    return _top_k(t, x, k, axis, True)


@translates("TopK", since=10)
def top_k(
    t: Translation, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> list[Value]:
    """Sorted or not: QNN's are sorted."""
    stated = t.output_shape()
    if k.data is None and stated is not None and len(stated) == x.rank:
        count = stated[t.axis(axis, x.rank)]
    else:
        count = t.ints(k, "k")[0] if k.size else 0
    return _top_k(t, x, count, axis, bool(largest))


# -- running --------------------------------------------------


def _one_axis(t: Translation, x: Value, axis: Value) -> int:
    if x.rank == 1:
        return 0
    return t.axis(t.ints(axis, "the axis")[0] if axis.size else 0, x.rank)


@translates("CumSum")
def cum_sum(t: Translation, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    where = _one_axis(t, x, axis)
    return (
        t("CumulativeSum", x, axis=where, exclusive=bool(exclusive), reverse=bool(reverse)) if x.size else x
    )


@translates("CumProd")
def cum_prod(t: Translation, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    """By doubling: after each step an element has the product of twice as many before it."""
    where, reach = _one_axis(t, x, axis), 1
    if not x.size or not x.rank:
        return x
    y = _shifted(t, x, where, 1, bool(reverse)) if exclusive else x
    while reach < x.shape[where]:
        y = t.mul(y, _shifted(t, y, where, reach, bool(reverse)))
        reach *= 2
    return y


def _shifted(t: Translation, x: Value, axis: int, by: int, reverse: bool) -> Value:
    """Moved along an axis, with ones where nothing comes in."""
    size = x.shape[axis]
    ones = filled(t, (*x.shape[:axis], min(by, size), *x.shape[axis + 1 :]), 1, x.dtype)
    if by >= size:
        return ones
    kept = sliced(t, x, {axis: slice(by, None) if reverse else slice(0, size - by)})
    return t.concat([kept, ones] if reverse else [ones, kept], axis)
