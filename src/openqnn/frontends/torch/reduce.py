"""Reductions, positions of extremes, sorting and running sums of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy as np

from openqnn.frontends.compositions import power
from openqnn.frontends.onnx import reduce as onnx
from openqnn.frontends.onnx.gather import gather_elements
from openqnn.frontends.onnx.shape import expanded, filled, sliced
from openqnn.frontends.torch.elementwise import logaddexp
from openqnn.frontends.torch.promotion import real, result_type, to_type, typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value

Dims = int | list[int] | None
_INT, _BOOL, _FLOAT = DType.INT_32, DType.BOOL_8, DType.FLOAT_32


def _shape(x: Value, axes: Sequence[int], keep: bool) -> list[int]:
    return [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]


def _nothing(t: TorchTranslation, x: Value, axes: Sequence[int], keep: bool, number: float) -> Value | None:
    """The result over axes without elements."""
    if not axes or prod(x.shape[a] for a in axes):
        return None
    return filled(t, _shape(x, axes, keep), number, x.dtype)


@translates("sum")
def sum_(
    t: TorchTranslation, x: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Value:
    """Integers and bools add up to int64."""
    kind = t.type_of(dtype) if dtype is not None else x.dtype if x.dtype.is_float else _INT
    data, axes = to_type(t, x, kind), t.axes(dim, x.rank)
    found = _nothing(t, data, axes, keepdim, 0)
    return t.reduce_sum(data, axes, keepdim) if found is None else found


@translates("mean")
def mean(
    t: TorchTranslation, x: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Value:
    data = real(t, x) if dtype is None else to_type(t, x, t.type_of(dtype))
    axes = t.axes(dim, x.rank)
    found = _nothing(t, data, axes, keepdim, np.nan)
    return t.reduce_mean(data, axes, keepdim) if found is None else found


@translates("nansum")
def nansum(
    t: TorchTranslation, x: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Value:
    y = t.select(t.is_nan(x), t.scalar(0, x), x) if x.dtype.is_float else x
    return sum_(t, y, dim, keepdim, dtype=dtype)


@translates("amax", "amin")
def amax(t: TorchTranslation, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    data = t.cast(x, _INT) if x.dtype is _BOOL else x
    reduce = t.reduce_max if t.op.startswith("amax") else t.reduce_min
    return to_type(t, reduce(data, t.axes(dim, x.rank), keepdim), x.dtype)


@translates("max", "min")
def max_all(t: TorchTranslation, x: Value) -> Value:
    data = t.cast(x, _INT) if x.dtype is _BOOL else x
    reduce = t.reduce_max if t.op.startswith("max") else t.reduce_min
    return to_type(t, reduce(data, list(range(x.rank)), False), x.dtype)


@translates("max.dim", "min.dim")
def max_dim(t: TorchTranslation, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """The value and its place."""
    data = t.cast(x, _INT) if x.dtype is _BOOL else x
    if not x.rank:
        return [x, t.constant(np.zeros((), np.int64))]
    axis, largest = t.axis(dim, x.rank), t.op.startswith("max")
    found = (t.reduce_max if largest else t.reduce_min)(data, [axis], keepdim)
    results = [to_type(t, found, x.dtype)]
    if t.is_read(1):
        results.append(t.reshape((t.argmax if largest else t.argmin)(data, axis, keepdim), found.shape))
    return results


@translates("aminmax")
def aminmax(t: TorchTranslation, x: Value, *, dim: int | None = None, keepdim: bool = False) -> list[Value]:
    axes = t.axes(dim, x.rank)
    return [t.reduce_min(x, axes, keepdim), t.reduce_max(x, axes, keepdim)]


@translates("argmax", "argmin")
def argmax(t: TorchTranslation, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    if not x.rank:
        return t.constant(np.zeros((), np.int64))
    data = t.reshape(x, (x.size,)) if dim is None else x
    axis = t.axis(dim or 0, data.rank)
    found = (t.argmax if t.op.startswith("argmax") else t.argmin)(data, axis, keepdim)
    shape = [1] * x.rank if dim is None and keepdim else [] if dim is None else _shape(x, [axis], keepdim)
    return t.reshape(found, shape)


@translates("prod")
def prod_(
    t: TorchTranslation,
    x: Value,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Value:
    kind = t.type_of(dtype) if dtype is not None else x.dtype if x.dtype.is_float else _INT
    data, axes = to_type(t, x, kind), t.axes(dim, x.rank)
    found = _nothing(t, data, axes, keepdim, 1)
    return t.reduce_prod(data, axes, keepdim) if found is None else found


@translates("all", "any")
def all_(t: TorchTranslation, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    every = t.op.startswith("all")
    truth = t.cast(to_type(t, x, _BOOL), _INT)
    axes = t.axes(dim, x.rank)
    found = _nothing(t, truth, axes, keepdim, every)
    if found is None:
        found = (t.reduce_min if every else t.reduce_max)(truth, axes, keepdim)
    return to_type(t, found, x.dtype if x.dtype is DType.UINT_8 else _BOOL)


@translates("count_nonzero")
def count_nonzero(t: TorchTranslation, x: Value, dim: Dims = None) -> Value:
    return t.reduce_sum(t.cast(to_type(t, x, _BOOL), _INT), t.axes(dim, x.rank), False)


# -- spread --------------------------------------------------------------------------------------------------


def _variance(
    t: TorchTranslation, x: Value, dim: object, correction: Term | None, keepdim: bool, unbiased: bool
) -> tuple[Value, Value]:
    """Variance and mean."""
    axes = t.axes(dim, x.rank)  # type: ignore[arg-type]
    count = prod(x.shape[a] for a in axes)
    less = float(unbiased) if correction is None else t.number(correction, "correction")
    centre = t.reduce_mean(x, axes, keep_dims=True)
    squares = t.square(t.sub(x, centre))
    rest = max(0.0, count - less)
    middle = t.reshape(centre, _shape(x, axes, keepdim))
    total = t.reduce_sum(squares, axes, keepdim)
    return (t.div(total, rest) if rest else t.div(total, t.scalar(0, total))), middle


@translates("var", "std", "var_mean", "std_mean")
def var(
    t: TorchTranslation, x: Value, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: Term | None = None,
) -> list[Value]:  # fmt: skip
    """The overload without axes has `unbiased` in their place."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    spread, middle = _variance(t, real(t, x), dim, correction, keepdim, unbiased)
    spread = t.sqrt(spread) if t.op.startswith("std") else spread
    return [spread, middle] if "mean" in t.op else [spread]


@translates("logsumexp")
def logsumexp(t: TorchTranslation, x: Value, dim: Dims, keepdim: bool = False) -> Value:
    """Less the largest, so that nothing overflows."""
    data, axes = real(t, x), t.axes(dim, x.rank)
    top = t.reduce_max(data, axes, keep_dims=True) if axes else data
    safe = t.select(t.is_inf(top), t.scalar(0, top), top)
    total = t.reduce_sum(t.exp(t.sub(data, safe)), axes, keep_dims=True)
    return t.reshape(t.add(t.log(total), safe), _shape(x, axes, keepdim))


@translates("linalg_vector_norm", "norm")
def vector_norm(
    t: TorchTranslation, x: Value, ord: Term | None = 2, dim: Dims = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Value:  # fmt: skip
    data = real(t, x) if dtype is None else to_type(t, x, t.type_of(dtype))
    axes, order = t.axes(dim, x.rank), 2.0 if ord is None else float(t.number(ord, "the order"))
    size = t.abs(data)
    if order in (inf, -inf):
        return (t.reduce_max if order > 0 else t.reduce_min)(size, axes, keepdim)
    if order == 0:
        return t.reduce_sum(t.cast(t.not_equal(data, 0), data.dtype), axes, keepdim)
    if order == 1:
        return t.reduce_sum(size, axes, keepdim)
    if order == 2:
        return t.sqrt(t.reduce_sum(t.square(data), axes, keepdim))
    return t.pow(t.reduce_sum(power(t, size, order), axes, keepdim), 1 / order)


# -- order ---------------------------------------------------------------------------------------------------


@translates("topk")
def topk(
    t: TorchTranslation, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Value]:
    if not x.rank:
        return [x, t.constant(np.zeros((), np.int64))]
    return onnx._top_k(t, x, k, dim, bool(largest))  # pyright: ignore[reportPrivateUsage]


@translates("sort", "sort.stable", "msort")
def sort(
    t: TorchTranslation, x: Value, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> list[Value]:
    if not x.rank:
        return [x, t.constant(np.zeros((), np.int64))]
    axis = 0 if t.op == "msort" else t.axis(dim, x.rank)
    return topk(t, x, x.shape[axis], axis, bool(descending))[: 1 if t.op == "msort" else 2]


@translates("argsort", "argsort.stable")
def argsort(
    t: TorchTranslation, x: Value, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Value:
    return sort(t, x, dim, descending)[1]


@translates("kthvalue")
def kthvalue(t: TorchTranslation, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> list[Value]:
    if not x.rank:
        return [x, t.constant(np.zeros((), np.int64))]
    axis = t.axis(dim, x.rank)
    values, places = topk(t, x, k, axis, largest=False)

    last = [sliced(t, v, {axis: slice(k - 1, k)}) for v in (values, places)]
    return [t.reshape(v, _shape(x, [axis], keepdim)) for v in last]


@translates("median", "median.dim")
def median(t: TorchTranslation, x: Value, dim: int | None = None, keepdim: bool = False) -> list[Value]:
    """The lower of the two in the middle."""
    data = t.reshape(x, (x.size,)) if dim is None else x
    axis = 0 if dim is None or not x.rank else t.axis(dim, x.rank)
    found = kthvalue(t, data, (data.shape[axis] + 1) // 2 if data.rank else 1, axis, keepdim)
    return found if dim is not None else [t.reshape(found[0], ())]


# -- running -------------------------------------------------------------------------------------------------


@translates("cumsum")
def cumsum(t: TorchTranslation, x: Value, dim: int, *, dtype: DType | None = None) -> Value:
    kind = t.type_of(dtype) if dtype is not None else x.dtype if x.dtype.is_float else _INT
    data = to_type(t, x, kind)
    return onnx.cum_sum(t, data, t.constant(np.asarray(dim))) if x.rank else data


@translates("cumprod")
def cumprod(t: TorchTranslation, x: Value, dim: int, *, dtype: DType | None = None) -> Value:
    kind = t.type_of(dtype) if dtype is not None else x.dtype if x.dtype.is_float else _INT
    data = to_type(t, x, kind)
    return onnx.cum_prod(t, data, t.constant(np.asarray(dim))) if x.rank else data


@translates("cummax", "cummin")
def cummax(t: TorchTranslation, x: Value, dim: int) -> list[Value]:
    """By doubling: after each step an element is the extreme of twice as many before it, and knows its place.

    Of equal ones the last counts.
    """
    if not x.rank:
        return [x, t.constant(np.zeros((), np.int64))]
    axis, reach, size = t.axis(dim, x.rank), 1, x.shape[t.axis(dim, x.rank)]
    better = t.greater_equal if t.op.startswith("cummax") else t.less_equal
    line = np.arange(size, dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(x.rank)])
    y, place = x, t.constant(np.broadcast_to(line, x.shape))
    part = lambda v, a, b: sliced(t, v, {axis: slice(a, b)})
    while reach < size:
        late, early = part(y, reach, size), part(y, 0, size - reach)
        keep = better(late, early)
        if x.dtype.is_float:
            keep = t.logical_or(keep, t.is_nan(late))
        places = t.select(keep, part(place, reach, size), part(place, 0, size - reach))
        y = t.concat([part(y, 0, reach), t.select(keep, late, early)], axis)
        place = t.concat([part(place, 0, reach), places], axis)
        reach *= 2
    return [y, place]


@translates("logcumsumexp")
def logcumsumexp(t: TorchTranslation, x: Value, dim: int) -> Value:
    """By doubling, with the larger of two taken out of their sum."""
    if not x.rank:
        return x
    axis, reach, y = t.axis(dim, x.rank), 1, x
    part = lambda v, a, b: sliced(t, v, {axis: slice(a, b)})
    while reach < x.shape[axis]:
        late, early = part(y, reach, x.shape[axis]), part(y, 0, x.shape[axis] - reach)
        y = t.concat([part(y, 0, reach), logaddexp(t, late, early)], axis)
        reach *= 2
    return y


# -- search --------------------------------------------------------------------------------------------------


@translates("searchsorted", "bucketize")
def searchsorted(
    t: TorchTranslation, x: Value, other: Term, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Value | None = None,
) -> Value:  # fmt: skip
    """How many boundaries lie below each number."""
    if sorter is not None:
        t.refuse("searchsorted with a sorter")
    first, second = typed(t, x, result_type(x, other)), typed(t, other, result_type(x, other))
    bounds, numbers = (second, first) if t.op.startswith("bucketize") else (first, second)
    shape = numbers.shape
    if bounds.rank == 1 or not numbers.rank:
        wide = t.reshape(numbers, (*shape, 1))
        lined = bounds
    else:
        wide, lined = (
            t.reshape(numbers, (*shape, 1)),
            t.reshape(bounds, (*bounds.shape[:-1], 1, bounds.shape[-1])),
        )
    below = (t.less_equal if right or side == "right" else t.less)(lined, wide)
    return t.reshape(t.reduce_sum(t.cast(below, _INT), (below.rank - 1,), keep_dims=False), shape)


@translates("isin")
def isin(
    t: TorchTranslation, x: Term, other: Term, *, assume_unique: bool = False, invert: bool = False
) -> Value:
    dtype = result_type(x, other)
    a, b = typed(t, x, dtype), typed(t, other, dtype)
    hit = t.equal(t.reshape(a, (*a.shape, 1)), t.reshape(b, (b.size,)))
    found = t.reduce_max(t.cast(hit, _INT), (a.rank,), keep_dims=False)
    return t.equal(found, 0) if invert else t.not_equal(found, 0)


@translates("_cdist_forward", "cdist")
def cdist(t: TorchTranslation, x: Value, x2: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    apart = t.sub(
        t.reshape(x, (*x.shape[:-1], 1, x.shape[-1])), t.reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    )
    return vector_norm(t, apart, p, apart.rank - 1)


@translates("take_along_dim")
def take_along_dim(t: TorchTranslation, x: Value, indices: Value, dim: int | None = None) -> Value:
    if dim is None:
        return gather_elements(t, t.reshape(x, (x.size,)), t.reshape(indices, (indices.size,)), axis=0)

    axis = t.axis(dim, x.rank)
    shape = np.broadcast_shapes(_shape(x, [axis], True), _shape(indices, [axis], True))  # type: ignore[arg-type]
    data = expanded(t, x, [x.shape[axis] if i == axis else d for i, d in enumerate(shape)])
    places = expanded(t, indices, [indices.shape[axis] if i == axis else d for i, d in enumerate(shape)])
    return gather_elements(t, data, places, axis=axis)
