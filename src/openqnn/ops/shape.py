"""Ops that move data about: reshaping, cutting, joining, padding, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import DType, Node
from openqnn.ir import Shape as Dims  # the op below has the name
from openqnn.ops.conv import onnx_pads
from openqnn.ops.elementwise import as_onnx
from openqnn.ops.identities import always, when
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import (
    ABSENT,
    FREE,
    INDEX,
    RANK,
    CanMove,
    Infer,
    Kind,
    Lower,
    Moves,
    axes,
    axis,
    element,
    enum,
    f32,
    op,
    per_axis,
    result,
    tensor,
    u32,
)  # fmt: skip
from openqnn.ops.shape_rules import declared, positive, reduced

# -- the same numbers in another shape -----------------------------------------------------------------------


def _reshape_shape(n: Node) -> list[Dims]:
    target = declared(n)[0]
    if prod(target) != n.x(0).size:
        raise ShapeError(f"{n.where}: {list(n.x(0).shape)} cannot be reshaped to {list(target)}")
    return [target]


@op
class Reshape:
    """Keeps the elements, in row-major order, under the declared shape."""

    in0 = tensor()
    shape = tensor(1, role=INDEX, optional=True)
    out0 = result()
    infer = _reshape_shape
    lower: Lower = lambda n, b, x: b.reshape(x[0], n.out.shape)
    moves = Moves.VIEW
    same_as = always
    keeps_values = True


def _transpose_shape(n: Node) -> list[Dims]:
    shape, perm = n.x(0).shape, n.ints("perm")
    if sorted(perm) != list(range(len(shape))):
        raise ShapeError(f"{n.where}: perm={perm} does not permute the axes of {list(shape)}")
    return [tuple(shape[i] for i in perm)]


@op
class Transpose:
    """Axes in another order: output axis i is input axis perm[i]."""

    in0 = tensor()
    out0 = result()
    perm = u32(-1)
    infer = _transpose_shape
    lower: Lower = lambda n, b, x: b.transpose(x[0], n.ints("perm"))
    same_as = when(lambda n: n.ints("perm") == tuple(range(n.x(0).rank)))
    keeps_values = True


def _squeezed(n: Node) -> Dims:
    shape = n.x(0).shape
    dropped = n.ints("axes") if "axes" in n.params else [i for i, d in enumerate(shape) if d == 1]
    if any(shape[a] != 1 for a in dropped):
        raise ShapeError(f"{n.where}: axes={dropped} of {list(shape)} are not all 1")
    return reduced(shape, dropped, keep=False)


@op
class Squeeze:
    """Drops axes of size 1: those named, or all."""

    in0 = tensor()
    out0 = result()
    axes = axes(ABSENT)
    infer: Infer = lambda n: [_squeezed(n)]
    lower: Lower = lambda n, b, x: b.reshape(x[0], n.out.shape)
    moves = Moves.VIEW
    same_as = always
    keeps_values = True


def _expanded(n: Node) -> list[Dims]:
    if "axis" not in n.params and "axes" not in n.params:
        raise ShapeError(f"{n.where}: neither axis nor axes is given")
    places = n.ints("axes") if "axes" in n.params else (n.int("axis"),)
    rank = n.x(0).rank + len(places)
    if len(set(places)) != len(places) or any(p >= rank for p in places):
        raise ShapeError(f"{n.where}: {list(n.x(0).shape)} cannot get new axes at {list(places)}")
    old = iter(n.x(0).shape)
    return [tuple(1 if i in places else next(old) for i in range(rank))]


@op
class ExpandDims:
    """New axes of size 1 at positions of the output: one `axis`, or several `axes`."""

    in0 = tensor()
    out0 = result()
    axis = u32(default=ABSENT)
    axes = u32(-1, default=ABSENT)
    infer = _expanded
    lower: Lower = lambda n, b, x: b.reshape(x[0], n.out.shape)
    moves = Moves.VIEW
    keeps_values = True


# -- joining and cutting -------------------------------------------------------------------------------------


def _inputs(n: Node) -> list[Dims]:
    return [n.x(i).shape for i in range(len(n.inputs))]


def _listed(shapes: list[Dims]) -> str:
    return ", ".join(str(list(s)) for s in shapes)


def _concat_shape(n: Node) -> list[Dims]:
    shapes, a = _inputs(n), n.int("axis")
    if len({(*s[:a], *s[a + 1 :]) for s in shapes}) > 1 or len({len(s) for s in shapes}) > 1:
        raise ShapeError(f"{n.where}: shapes {_listed(shapes)} cannot be joined on axis {a}")
    return [(*shapes[0][:a], sum(s[a] for s in shapes), *shapes[0][a + 1 :])]


@op
class Concat:
    """Inputs one after the other along an axis."""

    in0 = tensor(variadic=True)
    out0 = result()
    axis = axis()
    infer = _concat_shape
    lower: Lower = lambda n, b, x: b.op("Concat", *x[: len(n.inputs)], axis=n.int("axis"))
    moves = Moves.AXES
    same_as = when(lambda n: len(n.inputs) == 1)
    keeps_values = True
    kind = Kind.JOIN


def _pack_shape(n: Node) -> list[Dims]:
    shapes, a = _inputs(n), n.int("axis")
    if len(set(shapes)) > 1 or a > len(shapes[0]):
        raise ShapeError(f"{n.where}: shapes {_listed(shapes)} cannot be stacked on axis {a}")
    return [(*shapes[0][:a], len(shapes), *shapes[0][a:])]


def _pack_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    a = n.int("axis")
    return b.op("Concat", *(b.op("Unsqueeze", name, b.ints(a)) for name in x[: len(n.inputs)]), axis=a)


@op
class Pack:
    """Inputs stacked along a new axis."""

    in0 = tensor(variadic=True)
    out0 = result()
    axis = u32()
    infer = _pack_shape
    lower = _pack_onnx
    keeps_values = True


def _unpack_shape(n: Node) -> list[Dims]:
    shape, a = n.x(0).shape, n.int("axis")
    return [reduced(shape, (a,), keep=False)] * shape[a]


def _unpack_onnx(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    a = n.int("axis")
    shape = reduced(n.x(0).shape, (a,), keep=False)
    parts = b.ops("Split", x[0], count=n.x(0).shape[a], axis=a, num_outputs=n.x(0).shape[a])
    return [b.reshape(part, shape) for part in parts]


@op
class UnPack:
    """One output per slice of an axis, which disappears."""

    in0 = tensor()
    out0 = result(variadic=True)
    axis = axis()
    infer = _unpack_shape
    lower = _unpack_onnx
    moves = Moves.AXES
    keeps_values = True


def _split_sizes(n: Node) -> list[int]:
    size = n.x(0).shape[n.int("axis")]
    cuts = [0, *n.ints("split_index"), size]
    sizes = [after - before for before, after in pairwise(cuts)]
    if min(sizes) <= 0:
        raise ShapeError(f"{n.where}: split_index={n.ints('split_index')} does not cut an axis of {size}")
    return sizes


def _split_shape(n: Node) -> list[Dims]:
    shape, a = n.x(0).shape, n.int("axis")
    return [(*shape[:a], size, *shape[a + 1 :]) for size in _split_sizes(n)]


def _split_onnx(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    sizes = _split_sizes(n)
    return b.ops("Split", x[0], b.ints(*sizes), count=len(sizes), axis=n.int("axis"))


@op
class Split:
    """Cuts an axis; split_index holds where every part but the first begins."""

    in0 = tensor()
    out0 = result(variadic=True)
    axis = axis()
    split_index = u32(-1)
    infer = _split_shape
    lower = _split_onnx
    moves = Moves.AXES
    same_as = when(lambda n: len(n.outputs) == 1)
    keeps_values = True


@dataclass(frozen=True, slots=True)
class _Cut:
    """A slice worked out: what is taken of every input axis, and the shape that comes out."""

    taken: list[range]
    shape: Dims


_MASKS = ("begin_mask", "end_mask", "shrink_axes", "new_axes_mask")


def _cut(n: Node) -> _Cut:
    """Row by row as TensorFlow does it: a new axis uses up a row but no axis of the data."""
    data, taken, out = n.x(0).shape, list[range](), list[int]()
    new_axes = n.int("new_axes_mask").bit_count()
    if len(n.rows("ranges")) != len(data) + new_axes:
        rows = f"{len(n.rows('ranges'))} rows of ranges"
        raise ShapeError(f"{n.where}: {rows} for {list(data)} and {new_axes} new axes")
    for i, row in enumerate(n.rows("ranges")):
        begin_open, end_open, shrink, new = (bool(n.int(m) >> i & 1) for m in _MASKS)
        if new:
            out.append(1)
            continue
        taken.append(_taken(n, data[len(taken)], row, begin_open, end_open, shrink))
        if not shrink:
            out.append(len(taken[-1]))
    return _Cut(taken, tuple(out) or (1,))


def _taken(n: Node, size: int, row: Sequence[int], begin_open: bool, end_open: bool, shrink: bool) -> range:
    """The positions that one row (begin, end, stride) selects."""
    begin, end, stride = row
    if stride == 0:
        raise ShapeError(f"{n.where}: the stride of {list(row)} is 0")
    if shrink:
        end, stride, end_open = begin + 1, 1, begin == -1
    found = range(*slice(None if begin_open else begin, None if end_open else end, stride).indices(size))
    if not found:
        raise ShapeError(f"{n.where}: {list(row)} selects nothing of an axis of {size}")
    return found


def _slice_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    cut, shape = _cut(n), n.x(0).shape
    parts = [(i, r) for i, r in enumerate(cut.taken) if r != range(shape[i])]
    starts = b.ints(*(r.start for _, r in parts))
    # A stop of -1 would count from the end: what lies before the first element is -(size + 1).
    ends = b.ints(*(r.stop if r.stop >= 0 else -shape[i] - 1 for i, r in parts))
    where, steps = b.ints(*(i for i, _ in parts)), b.ints(*(r.step for _, r in parts))
    sliced = b.op("Slice", x[0], starts, ends, where, steps) if parts else b.op("Identity", x[0])
    return sliced if cut.shape == tuple(map(len, cut.taken)) else b.reshape(sliced, cut.shape)


def _takes_all(n: Node) -> bool:
    rows = n.rows("ranges")
    return all(row == (0, size, 1) for row, size in zip(rows, n.x(0).shape, strict=False))


@op
class StridedSlice:
    """Begin, end and stride for every axis; bit i of a mask is about row i, with TensorFlow's meaning."""

    in0 = tensor()
    out0 = result()
    ranges = per_axis(3, dtype=DType.INT_32, more=True)
    begin_mask = u32(default=0)
    end_mask = u32(default=0)
    shrink_axes = u32(default=0)
    new_axes_mask = u32(default=0)
    infer: Infer = lambda n: [_cut(n).shape]
    lower = _slice_onnx
    moves = Moves.AXES
    can_move: CanMove = lambda n, perm: not any(n.int(m) for m in _MASKS)
    same_as = when(_takes_all)
    keeps_values = True


@op
class BatchPermutation:
    """Rows of the first axis in the order of the indices."""

    in0 = tensor()
    indices = tensor(1, role=INDEX)
    out0 = result()
    infer: Infer = lambda n: [(n.x(1).shape[0], *n.x(0).shape[1:])]
    lower = as_onnx("Gather", axis=0)
    keeps_values = True


# -- padding and repeating -----------------------------------------------------------------------------------


def _pad_shape(n: Node) -> list[Dims]:
    """Mirrors reach no further than the data; a reflection leaves the edge itself out."""
    shape, rows, scheme = n.x(0).shape, n.rows("pad_amount"), n.enum("scheme")
    reach = {"MIRROR_REFLECT": -1, "MIRROR_SYMMETRIC": 0}.get(scheme)
    if reach is not None and any(max(row) > d + reach for row, d in zip(rows, shape, strict=True)):
        raise ShapeError(f"{n.where}: {scheme} cannot pad {list(shape)} by {[list(r) for r in rows]}")
    return [tuple(before + d + after for (before, after), d in zip(rows, shape, strict=True))]


def _stored(n: Node, value: float) -> int | float:
    """A number as the data stores it."""
    data = n.x(0)
    if data.encoding is None or not data.dtype.is_fixed:
        return value if data.dtype.is_float else int(value)
    if data.encoding.axis is not None and value:
        raise ShapeError(f"{n.where}: '{data.name}' has an encoding per channel, it can only be padded by 0")
    return int(data.encoding.quantize(np.asarray([value] * len(data.encoding.scale)), data.dtype.signed)[0])


def _pad_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    scheme = n.enum("scheme")
    if scheme == "MIRROR_SYMMETRIC" or (scheme != "CONSTANT" and not n.x(0).dtype.is_float):
        return _gathered_pad(n, b, x[0])
    if scheme == "CONSTANT":
        return constant_pad(n, b, x[0], n.rows("pad_amount"), n.float("pad_constant_value"))
    mode = {"EDGE": "edge", "MIRROR_REFLECT": "reflect"}[scheme]
    return b.op("Pad", x[0], b.ints(*onnx_pads(n.rows("pad_amount"))), mode=mode)


def constant_pad(n: Node, b: Body, x: str, rows: Sequence[Sequence[int]], value: float) -> str:
    return b.op("Pad", x, b.ints(*onnx_pads(rows)), b.const(_stored(n, value), n.x(0).dtype.numpy))


def _gathered_pad(n: Node, b: Body, x: str) -> str:
    """Copies of the data: one gather for every axis that grows."""
    mode = {"MIRROR_SYMMETRIC": "symmetric", "MIRROR_REFLECT": "reflect", "EDGE": "edge"}[n.enum("scheme")]
    for i, (row, size) in enumerate(zip(n.rows("pad_amount"), n.x(0).shape, strict=True)):
        if any(row):
            where = np.pad(np.arange(size), (row[0], row[1]), mode=mode)  # pyright: ignore
            x = b.op("Gather", x, b.const(where, np.int64), axis=i)
    return x


@op
class Pad:
    """Rows (before, after) per axis, filled with a constant, the edge, or a mirror image."""

    in0 = tensor()
    out0 = result()
    scheme = enum(CONSTANT=0, MIRROR_SYMMETRIC=1, MIRROR_REFLECT=2, EDGE=3)
    pad_amount = per_axis(2)
    pad_constant_value = f32(default=0.0)
    infer = _pad_shape
    lower = _pad_onnx
    moves = Moves.AXES
    same_as = when(lambda n: not any(map(any, n.rows("pad_amount"))))
    keeps_values = True


def _tile_shape(n: Node) -> list[Dims]:
    positive(n, "multiples")
    return [tuple(d * m for d, m in zip(n.x(0).shape, n.ints("multiples"), strict=True))]


@op
class Tile:
    """The data repeated along every axis."""

    in0 = tensor()
    out0 = result()
    multiples = per_axis()
    infer = _tile_shape
    lower: Lower = lambda n, b, x: b.op("Tile", x[0], b.ints(*n.ints("multiples")))
    moves = Moves.AXES
    same_as = when(lambda n: all(m == 1 for m in n.ints("multiples")))
    keeps_values = True


# -- from shapes and indices ---------------------------------------------------------------------------------


def _shape_part(n: Node) -> Dims:
    shape, start, end = n.x(0).shape, n.int("start"), n.int("end")
    if not start < end <= len(shape):
        raise ShapeError(f"{n.where}: axes {start} to {end} of {list(shape)} are none")
    return shape[start:end]


@op
class Shape:
    """The dimensions from `start` up to `end`."""

    in0 = tensor()
    out0 = result(DType.UINT_32)
    start = u32(default=0)
    end = u32(default=RANK)
    infer: Infer = lambda n: [(len(_shape_part(n)),)]
    lower: Lower = lambda n, b, x: b.op("Identity", b.const(_shape_part(n), n.out.dtype.numpy))


def _filled_shape(n: Node) -> list[Dims]:
    data = n.x(0).data
    known = tuple(int(d) for d in data.ravel()) if data is not None else None
    target = declared(n)[0] if known is None or n.outputs else known
    if known is not None and target != known:
        raise ShapeError(f"{n.where}: the input says {list(known)}, the output is declared {list(target)}")
    if n.x(0).shape != (len(target),):
        raise ShapeError(f"{n.where}: {n.x(0).shape[0]} dimensions cannot give the output {list(target)}")
    return [target]


def _filled_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    return b.op("Expand", b.const(n.float("value"), n.out.dtype.numpy), b.ints(*n.out.shape))


@op
class ConstantOfShape:
    """One value everywhere, in the shape that the input holds."""

    in0 = tensor(1, role=INDEX)
    out0 = result(FREE)
    value = element()
    infer = _filled_shape
    lower = _filled_onnx


def _one_hot_shape(n: Node) -> list[Dims]:
    shape, a = n.x(0).shape, n.int("axis")
    positive(n, "depth")
    if a > len(shape):
        raise ShapeError(f"{n.where}: {list(shape)} cannot get a new axis {a}")
    return [(*shape[:a], n.int("depth"), *shape[a:])]


def _one_hot_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """By comparison, so that an index outside of the depth is off everywhere."""
    a, out = n.int("axis"), n.out.dtype.numpy
    places = np.arange(n.int("depth")).reshape([-1] + [1] * (n.x(0).rank - a))
    hit = b.op("Equal", b.op("Unsqueeze", b.cast(x[0], np.int64), b.ints(a)), b.const(places, np.int64))
    return b.op("Where", hit, b.const(n.float("on_value"), out), b.const(n.float("off_value"), out))


@op
class OneHot:
    """A new axis with on_value at the index and off_value elsewhere."""

    in0 = tensor(role=INDEX)
    out0 = result(FREE)
    depth = u32()
    axis = u32()
    on_value = element(1.0)
    off_value = element(0.0)
    infer = _one_hot_shape
    lower = _one_hot_onnx
