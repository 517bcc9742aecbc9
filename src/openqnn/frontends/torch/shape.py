"""ATen ops that move elements without looking at them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.pad import trilu
from openqnn.frontends.onnx.shape import (
    concatenated,
    empty,
    expanded,
    parts_of,
    sliced,
    squeezed,
    tiled,
    unsqueezed,
)
from openqnn.frontends.torch.promotion import promoted_type, to_type
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value


def shaped(t: TorchTranslation, x: Value, size: Sequence[int]) -> Value:
    """One -1 stands for what is left."""
    dims = list(size)
    if dims.count(-1) == 1:
        rest = prod(d for d in dims if d != -1)
        if not rest or x.size % rest:
            raise ShapeError(f"{list(x.shape)} cannot become {list(size)}")
        dims[dims.index(-1)] = x.size // rest
    if min(dims, default=0) < 0 or prod(dims) != x.size:
        raise ShapeError(f"{list(x.shape)} cannot become {list(size)}")
    return t.reshape(x, dims) if x.size else empty(t, dims, x)


@translates("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias", "_reshape_copy")
def view(t: TorchTranslation, x: Value, size: list[int], stride: list[int] | None = None) -> Value:
    return shaped(t, x, size)


@translates("view.dtype")
def view_dtype(t: TorchTranslation, x: Value, dtype: DType) -> Value:
    if t.type_of(dtype) is not x.dtype:
        t.refuse("QNN cannot see the bits of a number as another type")
    return x


@translates("reshape_as", "view_as")
def reshape_as(t: TorchTranslation, x: Value, other: Value) -> Value:
    return shaped(t, x, other.shape)


@translates("flatten.using_ints")
def flatten(t: TorchTranslation, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if not x.rank:
        return t.reshape(x, (1,))
    first, last = t.axis(start_dim, x.rank), t.axis(end_dim, x.rank)
    return shaped(t, x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@translates("ravel")
def ravel(t: TorchTranslation, x: Value) -> Value:
    return t.reshape(x, (x.size,))


@translates("unflatten")
def unflatten(t: TorchTranslation, x: Value, dim: int, sizes: list[int]) -> Value:
    axis = t.axis(dim, x.rank)
    known = prod(s for s in sizes if s != -1)
    inner = [x.shape[axis] // known if s == -1 and known else s for s in sizes]
    return shaped(t, x, (*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


@translates("squeeze")
def squeeze(t: TorchTranslation, x: Value, dim: int | list[int] | None = None) -> Value:
    """Axes that are not 1 stay."""
    if not x.rank:
        return x
    listed = None if dim is None else [dim] if isinstance(dim, int) else dim
    axes = None if listed is None else [a for a in (t.axis(d, x.rank) for d in listed) if x.shape[a] == 1]
    return squeezed(t, x, axes)


@translates("unsqueeze", "unsqueeze_copy")
def unsqueeze(t: TorchTranslation, x: Value, dim: int) -> Value:
    return unsqueezed(t, x, [dim])


@translates("permute", "permute_copy")
def permute(t: TorchTranslation, x: Value, dims: list[int]) -> Value:
    order = [t.axis(d, x.rank) for d in dims]
    if sorted(order) != list(range(x.rank)):
        raise ShapeError(f"dims {dims} do not permute the axes of {list(x.shape)}")
    return t.transpose(x, order)


@translates("transpose", "swapaxes", "swapdims", "transpose_copy")
def transpose(t: TorchTranslation, x: Value, dim0: int, dim1: int) -> Value:
    a, b = t.axis(dim0, x.rank), t.axis(dim1, x.rank)
    order = list(range(x.rank))
    if order:
        order[a], order[b] = order[b], order[a]
    return t.transpose(x, order)


@translates("t", "numpy_T", "t_copy")
def turned(t: TorchTranslation, x: Value) -> Value:
    return t.transpose(x, list(reversed(range(x.rank))))


@translates("mT", "mH", "adjoint", "matrix_H")
def matrix_turned(t: TorchTranslation, x: Value) -> Value:
    return transpose(t, x, -1, -2) if x.rank > 1 else x


@translates("movedim", "moveaxis")
def movedim(t: TorchTranslation, x: Value, source: int | list[int], destination: int | list[int]) -> Value:
    listed = lambda d: [t.axis(a, x.rank) for a in ([d] if isinstance(d, int) else d)]
    origin, goal = listed(source), listed(destination)
    return t.transpose(x, _moved(x.rank, origin, goal))


def _moved(rank: int, source: list[int], destination: list[int]) -> list[int]:
    order = [i for i in range(rank) if i not in source]
    for goal, origin in sorted(zip(destination, source, strict=True)):
        order.insert(goal, origin)
    return order


@translates("expand", "expand_copy")
def expand(t: TorchTranslation, x: Value, size: list[int], *, implicit: bool = False) -> Value:
    behind = len(size) - x.rank
    dims = [x.shape[i - behind] if d == -1 and i >= behind else d for i, d in enumerate(size)]
    return expanded(t, x, dims) if prod(dims) else empty(t, dims, x)


@translates("expand_as")
def expand_as(t: TorchTranslation, x: Value, other: Value) -> Value:
    return expanded(t, x, other.shape)


@translates("broadcast_to")
def broadcast_to(t: TorchTranslation, x: Value, size: list[int]) -> Value:
    return expand(t, x, size)


@translates("broadcast_tensors")
def broadcast_tensors(t: TorchTranslation, tensors: list[Value]) -> list[Value]:
    shape = np.broadcast_shapes(*(v.shape for v in tensors))
    return [expanded(t, v, shape) for v in tensors]


@translates("meshgrid")
def meshgrid(t: TorchTranslation, tensors: list[Value], *, indexing: str = "ij") -> list[Value]:
    flat = [t.reshape(v, (v.size,)) for v in tensors]
    swapped = indexing == "xy" and len(flat) > 1
    order = [1, 0, *range(2, len(flat))] if swapped else list(range(len(flat)))
    shape = [flat[i].size for i in order]
    rows = [[flat[i].size if order[a] == i else 1 for a in range(len(flat))] for i in range(len(flat))]
    return [expanded(t, t.reshape(v, row), shape) for v, row in zip(flat, rows, strict=True)]


@translates("repeat", "tile")
def repeat(t: TorchTranslation, x: Value, repeats: list[int]) -> Value:
    counts = [1] * (x.rank - len(repeats)) + repeats
    if min(counts, default=0) < 0:
        t.refuse(f"repeats={repeats}")
    return tiled(t, t.reshape(x, (1,) * (len(counts) - x.rank) + x.shape), counts)


@translates("repeat_interleave.self_int")
def repeat_interleave(
    t: TorchTranslation, x: Value, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> Value:
    flat = x if dim is not None else t.reshape(x, (x.size,))
    axis = t.axis(dim or 0, flat.rank)
    shape = flat.shape
    apart = t.reshape(flat, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    many = tiled(t, apart, [repeats if i == axis + 1 else 1 for i in range(apart.rank)])
    return shaped(t, many, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


# -- joining and cutting -------------------------------------------------------------------------------------


@translates("cat", "concat", "concatenate")
def cat(t: TorchTranslation, tensors: list[Value], dim: int = 0) -> Value:
    """Vectors without elements are left out whatever the others look like."""
    parts = [v for v in tensors if v.shape != (0,)] or tensors
    dtype = parts[0].dtype
    for v in tensors:
        dtype = promoted_type(dtype, v.dtype)
    return concatenated(t, [to_type(t, v, dtype) for v in parts], dim)


@translates("stack")
def stack(t: TorchTranslation, tensors: list[Value], dim: int = 0) -> Value:
    axis = t.axis(dim, tensors[0].rank + 1)
    return cat(t, [unsqueezed(t, v, [axis]) for v in tensors], axis)


@translates("hstack", "vstack", "dstack", "row_stack")
def stacked(t: TorchTranslation, tensors: list[Value]) -> Value:
    least = {"h": 1, "v": 2, "r": 2, "d": 3}[t.op[0]]
    wide = [_at_least(t, v, least) for v in tensors]
    return cat(t, wide, (1 if wide[0].rank > 1 else 0) if least == 1 else least - 2 if least == 2 else 2)


def _at_least(t: TorchTranslation, x: Value, rank: int) -> Value:
    if x.rank >= rank:
        return x
    shape = {0: (1,) * rank, 1: (1, *x.shape, 1)[:rank] if rank > 1 else x.shape, 2: (*x.shape, 1)}[x.rank]
    return t.reshape(x, shape)


@translates("split.Tensor", "split_copy.Tensor")
def split(t: TorchTranslation, x: Value, split_size: int, dim: int = 0) -> list[Value]:
    axis = t.axis(dim, x.rank)
    size = x.shape[axis]
    if split_size < 1:
        t.refuse(f"split_size={split_size}")
    return parts_of(t, x, axis, [min(split_size, size - i) for i in range(0, max(size, 1), split_size)])


@translates("split_with_sizes", "split.sizes", "split_with_sizes_copy")
def split_with_sizes(t: TorchTranslation, x: Value, split_sizes: list[int], dim: int = 0) -> list[Value]:
    return parts_of(t, x, dim, split_sizes)


@translates("chunk", "unsafe_chunk")
def chunk(t: TorchTranslation, x: Value, chunks: int, dim: int = 0) -> list[Value]:
    size = x.shape[t.axis(dim, x.rank)]
    return split(t, x, max(1, -(-size // max(chunks, 1))), dim)


@translates("tensor_split")
def tensor_split(
    t: TorchTranslation, x: Value, sections: int | list[int] | Value, dim: int = 0
) -> list[Value]:
    size = x.shape[t.axis(dim, x.rank)]
    if isinstance(sections, Value):
        known = (
            t.ints(sections, "where to split")
            if sections.data is not None
            else t.static(sections, "the places").ravel().tolist()
        )
        sections = list(known) if sections.rank else int(known[0])
    if isinstance(sections, int):
        sizes = [size // sections + (i < size % sections) for i in range(sections)]
        return parts_of(t, x, dim, sizes)
    places = [0, *sections, size]
    ranges = [range(size)[a:b] for a, b in pairwise(places)]
    axis = t.axis(dim, x.rank)
    return [sliced(t, x, {axis: slice(r.start, max(r.start, r.stop))}) for r in ranges]


@translates("unbind", "unbind_copy")
def unbind(t: TorchTranslation, x: Value, dim: int = 0) -> list[Value]:
    axis = t.axis(dim, x.rank)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [
        t.reshape(p, rest) if p.size else empty(t, rest, p) for p in parts_of(t, x, axis, [1] * x.shape[axis])
    ]


@translates("slice.Tensor", "slice_copy.Tensor")
def slice_(
    t: TorchTranslation,
    x: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    return sliced(t, x, {t.axis(dim, x.rank): slice(start, end, step)})


@translates("select.int", "select_copy.int")
def select(t: TorchTranslation, x: Value, dim: int, index: Term) -> Value:
    axis, rest = t.axis(dim, x.rank), list(x.shape)
    size = rest.pop(axis)
    if isinstance(index, Value):
        from openqnn.frontends.onnx.gather import gather

        return t.reshape(gather(t, x, t.reshape(index, (1,)), axis=axis), rest)
    place = range(size)[int(index)]
    found = sliced(t, x, {axis: slice(place, place + 1)})
    return t.reshape(found, rest) if found.size else empty(t, rest, x)


@translates("narrow", "narrow_copy")
def narrow(t: TorchTranslation, x: Value, dim: int, start: Term, length: int) -> Value:
    axis, first = t.axis(dim, x.rank), int(t.number(start, "start"))
    first = first + x.shape[axis] if first < 0 else first
    return sliced(t, x, {axis: slice(first, first + length)})


@translates("slice_scatter")
def slice_scatter(
    t: TorchTranslation, x: Value, src: Value, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Value:  # fmt: skip
    axis = t.axis(dim, x.rank)
    taken = range(x.shape[axis])[slice(start, end, step)]
    return put(t, x, axis, taken, expanded(t, to_type(t, src, x.dtype), _with(x, axis, len(taken))))


def _with(x: Value, axis: int, size: int) -> tuple[int, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])


def put(t: TorchTranslation, x: Value, axis: int, taken: range, src: Value) -> Value:
    """Other data in some places of an axis."""
    if not len(taken):
        return x
    if taken.step == 1:
        parts = [
            sliced(t, x, {axis: slice(0, taken.start)}), src,
            sliced(t, x, {axis: slice(taken.stop, x.shape[axis])}),
        ]  # fmt: skip
        return concatenated(t, parts, axis)
    order = np.arange(x.shape[axis], dtype=np.int32)
    order[list(taken)] = x.shape[axis] + np.arange(len(taken))
    return t.gather(t.concat([x, src], axis), t.constant(order), axis=axis)


@translates("select_scatter")
def select_scatter(t: TorchTranslation, x: Value, src: Value, dim: int, index: int) -> Value:
    axis = t.axis(dim, x.rank)
    place = range(x.shape[axis])[index]
    row = t.reshape(
        expanded(t, to_type(t, src, x.dtype), (*x.shape[:axis], *x.shape[axis + 1 :])), _with(x, axis, 1)
    )
    return put(t, x, axis, range(place, place + 1), row)


# -- turning around ------------------------------------------------------------------------------------------


@translates("flip", "fliplr", "flipud")
def flip(t: TorchTranslation, x: Value, dims: list[int] | None = None) -> Value:
    over = {"fliplr": [1], "flipud": [0]}.get(t.op, dims or [])
    return sliced(t, x, {t.axis(d, x.rank): slice(None, None, -1) for d in over}) if x.rank else x


@translates("roll")
def roll(
    t: TorchTranslation, x: Value, shifts: int | list[int], dims: int | list[int] | None = None
) -> Value:
    moves = [shifts] if isinstance(shifts, int) else shifts
    axes = [] if dims is None else [dims] if isinstance(dims, int) else dims
    if not axes:
        flat = t.reshape(x, (x.size,))
        return t.reshape(_rolled(t, flat, 0, moves[0]), x.shape)
    for move, axis in zip(moves, axes, strict=True):
        x = _rolled(t, x, t.axis(axis, x.rank), move)
    return x


def _rolled(t: TorchTranslation, x: Value, axis: int, by: int) -> Value:
    size = x.shape[axis] if x.rank else 0
    if not size or not by % size:
        return x
    cut = size - by % size
    parts = [sliced(t, x, {axis: slice(cut, size)}), sliced(t, x, {axis: slice(0, cut)})]
    return concatenated(t, parts, axis)


@translates("tril", "triu")
def tril(t: TorchTranslation, x: Value, diagonal: int = 0) -> Value:
    return trilu(t, x, t.constant(np.asarray(diagonal)), upper=int(t.op.startswith("triu")))


@translates("diagonal", "diagonal_copy", "linalg_diagonal")
def diagonal(t: TorchTranslation, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """The axes come last, flat; the places on the diagonal are gathered."""
    a, b = t.axis(dim1, x.rank), t.axis(dim2, x.rank)
    rest = [i for i in range(x.rank) if i not in (a, b)]
    rows, columns = x.shape[a], x.shape[b]
    flat = t.reshape(t.transpose(x, [*rest, a, b]), (*(x.shape[i] for i in rest), rows * columns))
    places = np.diagonal(np.arange(rows * columns, dtype=np.int32).reshape(rows, columns), offset)
    if not places.size:
        return empty(t, (*flat.shape[:-1], 0), x)
    return t.gather(flat, t.constant(np.ascontiguousarray(places)), axis=flat.rank - 1)


@translates("diagonal_scatter")
def diagonal_scatter(
    t: TorchTranslation, x: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    a, b = t.axis(dim1, x.rank), t.axis(dim2, x.rank)
    order = [*(i for i in range(x.rank) if i not in (a, b)), a, b]
    data = t.transpose(x, order)
    rows, columns = data.shape[-2:]
    grid = np.full((rows, columns), -1)
    places = np.nonzero(np.eye(rows, columns, offset))
    grid[places] = np.arange(places[0].size)
    wide = t.gather(
        to_type(t, src, x.dtype), t.constant(np.maximum(grid, 0).astype(np.int32).ravel()), axis=src.rank - 1
    )
    wide = t.reshape(wide, data.shape)
    changed = t.select(t.constant(grid >= 0), wide, data)
    return t.transpose(changed, [order.index(i) for i in range(x.rank)])


@translates("unfold")
def unfold(t: TorchTranslation, x: Value, dimension: int, size: int, step: int) -> Value:
    if not x.rank:
        return t.reshape(x, (1,)) if size else empty(t, (0,), x)
    axis = t.axis(dimension, x.rank)
    count = (x.shape[axis] - size) // step + 1
    places = (np.arange(count)[:, None] * step + np.arange(size)).astype(np.int32)
    if not places.size:
        return empty(t, (*_with(x, axis, count), size), x)
    found = t.gather(x, t.constant(places.ravel()), axis=axis)
    apart = t.reshape(found, (*x.shape[:axis], count, size, *x.shape[axis + 1 :]))
    return t.transpose(apart, [i for i in range(apart.rank) if i != axis + 1] + [axis + 1])


@translates("as_strided", "as_strided_copy")
def as_strided(
    t: TorchTranslation, x: Value, size: list[int], stride: list[int], storage_offset: int | None = None
) -> Value:
    """Read as if the data lay row by row, which is how exported programs number it."""
    places = np.asarray(storage_offset or 0, np.int64)
    for d, s in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(d) * s
    if not places.size:
        return empty(t, size, x)
    if places.max() >= x.size:
        t.refuse("strides that reach beyond the data: the tensor is a part of a larger one")
    flat = t.reshape(x, (x.size,))
    return t.reshape(t.gather(flat, t.constant(places.astype(np.int32).ravel()), axis=0), size)
