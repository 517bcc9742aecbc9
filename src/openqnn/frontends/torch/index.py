"""ATen ops that address elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx import gather as onnx
from openqnn.frontends.onnx.gather import positions
from openqnn.frontends.onnx.reduce import cum_sum
from openqnn.frontends.onnx.shape import empty, expanded, sliced
from openqnn.frontends.torch.promotion import to_type, typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value

_COUNT = "how many elements there are depends on the data; QNN tensors have a fixed size"


@translates("gather")
def gather(t: TorchTranslation, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    if not x.rank:
        return t.reshape(x, index.shape)
    axis = t.axis(dim, x.rank)
    places = index if index.rank else t.reshape(index, (1,))
    cuts = {i: slice(0, d) for i, d in enumerate(places.shape) if i != axis and d < x.shape[i]}
    data = sliced(t, x, cuts) if cuts else x
    return t.reshape(onnx.gather_elements(t, data, places, axis=axis), index.shape)


@translates("index_select")
def index_select(t: TorchTranslation, x: Value, dim: int, index: Value) -> Value:
    if not x.rank:
        return x
    places = index if index.rank else t.reshape(index, (1,))
    return onnx.gather(t, x, places, axis=t.axis(dim, x.rank))


@translates("take")
def take(t: TorchTranslation, x: Value, index: Value) -> Value:
    return onnx.gather(t, t.reshape(x, (x.size,)), index, axis=0)


@translates("embedding")
def embedding(
    t: TorchTranslation, weight: Value, indices: Value, padding_idx: int = -1,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Value:  # fmt: skip
    return onnx.gather(t, weight, indices, axis=0)


@translates("one_hot")
def one_hot(t: TorchTranslation, x: Value, num_classes: int = -1) -> Value:
    if num_classes < 1:
        t.refuse("one_hot without the number of classes: " + _COUNT, hint="name num_classes")
    return t.one_hot(x, num_classes, x.rank, DType.INT_32)


# -- several indices at once ---------------------------------------------------------------------------------


def _known_masks(t: TorchTranslation, x: Value, indices: Sequence[Value | None]) -> list[Value | None]:
    """Masks that are known as the indices of what they select; a mask of several axes is as many indices."""
    found: list[Value | None] = []
    for index in indices:
        if index is None or index.dtype is not DType.BOOL_8:
            found.append(index)
            continue
        if not t.is_static(index):
            t.refuse("a mask that is computed at run time: " + _COUNT, hint="use torch.where")
        places = np.nonzero(t.static(index, "the mask"))
        found += [t.constant(p.astype(np.int64)) for p in places]
    return found


def _indexed(t: TorchTranslation, x: Value, indices: Sequence[Value | None]) -> tuple[list[int], Value, int]:
    """The axes that are addressed, their places [..., axes], and where the result has them."""
    given = [(axis, t.settled(v)) for axis, v in enumerate(indices) if v is not None]
    if not given or len(indices) > x.rank:
        t.refuse(f"{len(indices)} indices for {list(x.shape)}")
    axes = [axis for axis, _ in given]
    shape = np.broadcast_shapes(*(v.shape for _, v in given))
    if not prod(shape):
        raise ShapeError("indices without elements")
    columns = [
        t.reshape(expanded(t, t.cast(positions(t, v, x.shape[a]), DType.INT_32), shape), (*shape, 1))
        for a, v in given
    ]
    together = axes == list(range(axes[0], axes[-1] + 1))
    return axes, _joined(t, columns, len(shape)), axes[0] if together else 0


def _joined(t: TorchTranslation, columns: Sequence[Value], axis: int) -> Value:
    if all(c.data is not None for c in columns):
        return t.constant(np.concatenate([c.data for c in columns if c.data is not None], axis))
    return t.concat(columns, axis)


@translates("index.Tensor", "_unsafe_index.Tensor")
def index(t: TorchTranslation, x: Value, indices: list[Any]) -> Value:
    listed = _known_masks(t, x, indices)
    given = [(axis, v) for axis, v in enumerate(listed) if v is not None]
    if not given:
        return x
    shape = np.broadcast_shapes(*(v.shape for _, v in given))
    if not prod(shape) or not x.size:
        axes = [a for a, _ in given]
        place = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
        rest = [d for i, d in enumerate(x.shape) if i not in axes]
        return empty(t, (*rest[:place], *shape, *rest[place:]), x)
    if len(given) == 1:
        axis, places = given[0]
        return onnx.gather(t, x, places, axis=axis)
    axes, places, where = _indexed(t, x, listed)
    rest = [i for i in range(x.rank) if i not in axes]
    found = t.gather_nd(t.transpose(x, [*axes, *rest]), places)
    count = places.rank - 1
    order = [*range(count, count + where), *range(count), *range(count + where, found.rank)]
    return t.transpose(found, order)


@translates("index_put", "_unsafe_index_put", "index_put_impl")
def index_put(
    t: TorchTranslation, x: Value, indices: list[Any], values: Value, accumulate: bool = False,
    unsafe: bool = False,
) -> Value:  # fmt: skip
    """Scattered to the places; one number goes where a mask says."""
    fill = to_type(t, values, x.dtype)
    mask = indices[0] if len(indices) == 1 else None
    if isinstance(mask, Value) and mask.dtype is DType.BOOL_8 and fill.size == 1 and not accumulate:
        whole = t.reshape(mask, (*mask.shape, *(1,) * (x.rank - mask.rank)))
        return t.select(whole, t.reshape(fill, ()), x)
    listed = _known_masks(t, x, indices)
    shape = np.broadcast_shapes(*(v.shape for v in listed if v is not None))
    return _put(t, x, listed, shape, fill, "add" if accumulate else "none") if prod(shape) else x


def _put(
    t: TorchTranslation, x: Value, indices: Sequence[Value | None], shape: tuple[int, ...], fill: Value,
    reduction: str,
) -> Value:  # fmt: skip
    axes, places, where = _indexed(t, x, indices)
    rest = [i for i in range(x.rank) if i not in axes]
    order = [*axes, *rest]
    count, others = places.rank - 1, [x.shape[i] for i in rest]
    wanted = [*others[:where], *shape, *others[where:]]
    back = [*range(where, where + count), *range(where), *range(where + count, len(wanted))]
    rows = t.transpose(expanded(t, fill, wanted), back)
    changed = onnx.scatter_nd(t, t.transpose(x, order), places, rows, reduction=reduction)
    return t.transpose(changed, [order.index(i) for i in range(x.rank)])


# -- scatters ------------------------------------------------------------------------------------------------

_LARGE = float(np.finfo(np.float32).max)
_REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}


@translates("scatter", "scatter_add", "scatter_reduce.two")
def scatter(
    t: TorchTranslation, x: Value, dim: int, index: Value, src: Term, reduce: str = "", *,
    include_self: bool = True,
) -> Value:  # fmt: skip
    kind = "add" if t.op.startswith("scatter_add") else _REDUCTIONS.get(reduce, reduce or "none")
    if not x.rank or not index.rank:
        flat = [t.reshape(v, (v.size,)) if isinstance(v, Value) else v for v in (x, index, src)]
        return t.reshape(_reduced(t, *flat, 0, kind, include_self), x.shape)  # type: ignore[arg-type]
    return _reduced(t, x, index, src, t.axis(dim, x.rank), kind, include_self)


_NEUTRAL = {"add": 0.0, "mean": 0.0, "mul": 1.0, "max": -_LARGE, "min": _LARGE}


def _reduced(
    t: TorchTranslation, x: Value, index: Value, src: Term, axis: int, kind: str, include_self: bool
) -> Value:
    """Without what was there, places that are hit begin with what changes nothing; a mean counts the hits."""
    if kind not in _NEUTRAL or (include_self and kind != "mean") or not index.size:
        return _scattered(t, x, index, src, axis, kind)
    if not x.dtype.is_float:
        t.refuse(f"a scatter by {kind} of integers")
    begin = t.constant(np.zeros(x.shape, x.dtype.numpy))
    hits = _scattered(t, begin, index, 1.0, axis, "add")
    hit = t.greater(hits, 0)
    start = x if include_self else t.select(hit, t.scalar(_NEUTRAL[kind], x), x)
    total = _scattered(t, start, index, src, axis, "add" if kind == "mean" else kind)
    if kind != "mean":
        return total
    count = t.add(hits, 1.0) if include_self else t.maximum(hits, 1.0)
    return t.div(total, count)


def _scattered(t: TorchTranslation, x: Value, index: Value, src: Term, axis: int, kind: str) -> Value:
    if not index.size:
        return x
    data = typed(t, src, x.dtype)
    if data.size == 1 and data.shape != index.shape:
        data = expanded(t, t.reshape(data, (1,) * index.rank), index.shape)
    cuts = {i: slice(0, d) for i, d in enumerate(index.shape) if d < data.shape[i]}
    data = sliced(t, data, cuts) if cuts else data
    return onnx.scatter_elements(t, x, index, data, axis=axis, reduction=kind)


@translates("scatter.value", "scatter.value_reduce", "scatter.reduce")
def scatter_value(
    t: TorchTranslation, x: Value, dim: int, index: Value, value: Term, *, reduce: str = ""
) -> Value:
    return scatter(t, x, dim, index, value, reduce)


def _spread(t: TorchTranslation, x: Value, index: Value, axis: int) -> Value:
    """A vector of places as one index per element of the rows."""
    shape = [index.size if i == axis else 1 for i in range(x.rank)]
    full = [index.size if i == axis else d for i, d in enumerate(x.shape)]
    return expanded(t, t.reshape(index, shape), full)


@translates("index_add", "index_copy", "index_reduce")
def index_add(
    t: TorchTranslation, x: Value, dim: int, index: Value, source: Value, reduce: str = "", *,
    alpha: Term = 1, include_self: bool = True,
) -> Value:  # fmt: skip
    if not x.rank:
        row = t.reshape(x, (1,))
        flat = index_add(
            t, row, 0, index, t.reshape(source, (1,)), reduce, alpha=alpha, include_self=include_self
        )
        return t.reshape(flat, ())
    axis = t.axis(dim, x.rank)
    op = t.op.split(".")[0].rstrip("_")
    kind = {"index_add": "add", "index_copy": "none"}.get(op, _REDUCTIONS.get(reduce, reduce))
    data = to_type(t, source, x.dtype)
    data = data if alpha == 1 else t.mul(data, typed(t, alpha, x.dtype))
    data = t.reshape(data, [index.size if i == axis else d for i, d in enumerate(x.shape)])
    return _reduced(t, x, _spread(t, x, index, axis), data, axis, kind, include_self)


@translates("index_fill")
def index_fill(t: TorchTranslation, x: Value, dim: int, index: Value, value: Term) -> Value:
    if not x.rank:
        return typed(t, value, x.dtype)
    axis = t.axis(dim, x.rank)
    if not index.size:
        return x
    return _scattered(t, x, _spread(t, x, index, axis), typed(t, value, x.dtype), axis, "none")


@translates("masked_scatter")
def masked_scatter(t: TorchTranslation, x: Value, mask: Value, source: Value) -> Value:
    """The n-th place of the mask takes the n-th number."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    data, hit = expanded(t, x, shape), expanded(t, to_type(t, mask, DType.BOOL_8), shape)
    flat = t.reshape(t.cast(hit, DType.INT_32), (prod(shape),))
    order = t.maximum(t.sub(cum_sum(t, flat, t.constant(np.asarray(0))), 1), 0)
    order = t.minimum(order, source.size - 1)
    rows = t.gather(t.reshape(to_type(t, source, x.dtype), (source.size,)), order, axis=0)
    return t.select(hit, t.reshape(rows, shape), data)


@translates("put")
def put_(t: TorchTranslation, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    flat, places = t.reshape(x, (x.size,)), t.reshape(index, (index.size,))
    kind = "add" if accumulate else "none"
    return t.reshape(_scattered(t, flat, places, t.reshape(source, (source.size,)), 0, kind), x.shape)


@translates("masked_select", "nonzero", "unique_dim", "_unique2", "argwhere",
            "unique_consecutive", "nonzero_numpy")  # fmt: skip
def masked_select(t: TorchTranslation, x: Value, **others: object) -> Value:
    if not t.op.startswith("nonzero") or not t.is_static(x):
        t.refuse(_COUNT)
    return t.constant(np.stack(np.nonzero(t.static(x, "the data")), axis=1).astype(np.int64))
