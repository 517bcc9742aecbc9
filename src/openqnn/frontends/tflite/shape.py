"""TFLite operators that move data about: reshaping, cutting, joining, repeating, padding, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from openqnn.frontends.compositions import cut
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.frontends.translation import broadcast_shape
from openqnn.ir import Value

REFLECT, SYMMETRIC = 0, 1


@translates("RESHAPE")
def reshape(
    t: Translation, x: Value, shape: Value | None = None, *, new_shape: list[int] | None = None
) -> Value:
    wanted = list(t.ints(shape, "the shape")) if shape is not None else list(new_shape or [])
    if shape is not None and shape.data is None and new_shape:
        wanted = list(new_shape)
    return _reshaped(t, x, wanted)


def _reshaped(t: Translation, x: Value, wanted: list[int]) -> Value:
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        t.refuse(f"{list(x.shape)} cannot become {wanted}")
    if -1 in wanted:
        rest = prod(d for d in wanted if d != -1)
        if not rest or x.size % rest:
            t.refuse(f"{list(x.shape)} cannot become {wanted}")
        wanted[wanted.index(-1)] = x.size // rest
    if prod(wanted) != x.size and wanted and x.size % max(prod(wanted[1:]), 1) == 0 and wanted[0] == 1:
        wanted[0] = x.size // prod(wanted[1:])  # a shape that was written down for a batch of one
    if prod(wanted) != x.size:
        t.refuse(f"{list(x.shape)} cannot become {wanted}")
    return t.reshape(x, wanted)


@translates("SQUEEZE")
def squeeze(t: Translation, x: Value, *, squeeze_dims: list[int] | None = None) -> Value:
    axes = [t.axis(a, x.rank) for a in squeeze_dims or []] or [i for i, d in enumerate(x.shape) if d == 1]
    if any(x.shape[a] != 1 for a in axes):
        t.refuse(f"axes {axes} of {list(x.shape)} are not all of size 1")
    return t.reshape(x, [d for i, d in enumerate(x.shape) if i not in axes])


@translates("EXPAND_DIMS")
def expand_dims(t: Translation, x: Value, axis: Value) -> Value:
    where = t.axis(t.ints(axis, "the axis")[0], x.rank + 1)
    return t.reshape(x, (*x.shape[:where], 1, *x.shape[where:]))


@translates("TRANSPOSE")
def transpose(t: Translation, x: Value, perm: Value) -> Value:
    order = [t.axis(a, x.rank) for a in t.ints(perm, "the order of axes")]
    if sorted(order) != list(range(x.rank)):
        t.refuse(f"{order} is no order of the axes of {list(x.shape)}")
    return t.transpose(x, order)


@translates("SHAPE")
def shape(t: Translation, x: Value) -> Value:
    return t.constant(np.asarray(x.shape, np.int32))


@translates("RANK")
def rank(t: Translation, x: Value) -> Value:
    return t.constant(np.asarray(x.rank, np.int32))


# -- joining and cutting -------------------------------------------------------------------------------------


@translates("CONCATENATION")
def concatenation(t: Translation, *parts: Value, axis: int = 0) -> Value:
    where = t.axis(axis, parts[0].rank)
    full = [p for p in parts if p.size] or list(parts[:1])
    return t.concat(full, where)


@translates("PACK")
def pack(t: Translation, *parts: Value, axis: int = 0) -> Value:
    where = t.axis(axis, parts[0].rank + 1)
    if any(p.shape != parts[0].shape for p in parts):
        t.refuse("its inputs do not have the same shape")
    if len(parts) > 1 and parts[0].rank:
        return t.pack(list(parts), where)
    wide = [t.reshape(p, (*p.shape[:where], 1, *p.shape[where:])) for p in parts]
    return t.concat(wide, where)


@translates("UNPACK")
def unpack(t: Translation, x: Value, *, num: int = 0, axis: int = 0) -> list[Value]:
    where = t.axis(axis, x.rank)
    shape = [d for i, d in enumerate(x.shape) if i != where]
    pieces = _split(t, x, where, [1] * x.shape[where])
    return [t.reshape(p, shape) for p in pieces]


def _split(t: Translation, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    places = np.cumsum([0, *sizes]).tolist()
    if places[-1] != x.shape[axis] or min(sizes, default=0) < 0:
        t.refuse(f"parts {list(sizes)} do not make up axis {axis} of {list(x.shape)}")
    if x.data is not None or 0 in sizes:
        return [cut(t, x, axis, a, b) for a, b in pairwise(places)]
    if len(sizes) == 1:
        return [t.copy(x)]
    return t.split(x, axis, places[1:-1])


@translates("SPLIT")
def split(t: Translation, axis: Value, x: Value, *, num_splits: int = 0) -> list[Value]:
    where = t.axis(t.ints(axis, "the axis")[0], x.rank)
    if num_splits < 1 or x.shape[where] % num_splits:
        t.refuse(f"axis {where} of {list(x.shape)} cannot be cut into {num_splits} equal parts")
    return _split(t, x, where, [x.shape[where] // num_splits] * num_splits)


@translates("SPLIT_V")
def split_v(t: Translation, x: Value, sizes: Value, axis: Value, *, num_splits: int = 0) -> list[Value]:
    where = t.axis(t.ints(axis, "the axis")[0], x.rank)
    found = list(t.ints(sizes, "the sizes"))
    if found.count(-1) == 1:
        found[found.index(-1)] = x.shape[where] - sum(f for f in found if f != -1)
    return _split(t, x, where, found)


@translates("SLICE")
def slice_(t: Translation, x: Value, begin: Value, size: Value) -> Value:
    starts, sizes = t.ints(begin, "the begin"), t.ints(size, "the size")
    if len(starts) != x.rank or len(sizes) != x.rank:
        t.refuse(f"begin {list(starts)} and size {list(sizes)} do not fit {list(x.shape)}")
    ends = [d if s == -1 else b + s for b, s, d in zip(starts, sizes, x.shape, strict=True)]
    if any(not 0 <= b <= e <= d for b, e, d in zip(starts, ends, x.shape, strict=True)):
        t.refuse(f"begin {list(starts)} and size {list(sizes)} lead outside of {list(x.shape)}")
    return sliced(t, x, [(b, e, 1) for b, e in zip(starts, ends, strict=True)])


def sliced(t: Translation, x: Value, ranges: Sequence[tuple[int, int, int]]) -> Value:
    """Python's slices: one that walks down to the first element ends before the whole axis."""
    ranges = [(b, -d - 1 if s < 0 and e < 0 else e, s) for (b, e, s), d in zip(ranges, x.shape, strict=True)]
    if x.data is not None:
        return t.constant(x.data[tuple(slice(*r) for r in ranges)], x.name)
    if all(r == (0, d, 1) for r, d in zip(ranges, x.shape, strict=True)):
        return x
    return t.strided_slice(x, ranges)


@translates("STRIDED_SLICE")
def strided_slice(
    t: Translation, x: Value, begin: Value, end: Value, strides: Value, *, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
    offset: bool = False,
) -> Value:  # fmt: skip
    """numpy's indexing, in five bit masks."""
    lists = [t.ints(v, w) for v, w in ((begin, "begin"), (end, "end"), (strides, "the strides"))]
    masks = _Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask, offset)
    ranges: list[tuple[int, int, int]] = []
    shape: list[int] = []
    dense = sum(not masks.has(masks.new_axis | masks.ellipsis, i) for i in range(len(lists[0])))
    for i, (b, e, s) in enumerate(zip(*lists, strict=True)):
        if masks.has(masks.ellipsis, i):
            rest = x.shape[len(ranges) : x.rank - (dense - len(ranges))]
            ranges += [(0, d, 1) for d in rest]
            shape += rest
        elif masks.has(masks.new_axis, i):
            shape.append(1)
        else:
            if len(ranges) >= x.rank or not s:
                t.refuse(f"strides {list(lists[2])} do not fit {list(x.shape)}")
            ranges.append(masks.range_of(t, i, (b, e, s), x.shape[len(ranges)]))
            shape += [] if masks.has(masks.shrink, i) else [len(range(*ranges[-1]))]
    rest = x.shape[len(ranges) :]
    y = sliced(t, x, [*ranges, *((0, d, 1) for d in rest)])
    return t.reshape(y, [*shape, *rest])


@dataclass(frozen=True)
class _Masks:
    """What bits say about the entries of a slice."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int
    offset: bool  # ends count from the begin

    def has(self, mask: int, index: int) -> bool:
        return bool(mask >> index & 1)

    def range_of(self, t: Translation, i: int, row: tuple[int, int, int], size: int) -> tuple[int, int, int]:
        begin, end, step = row
        single = self.has(self.shrink, i)
        open_ends = self.has(self.begin, i), self.has(self.end, i)
        found = _axis_range(begin, begin + end if self.offset else end, step, size, *open_ends, single)
        if single and not 0 <= found[0] < size:
            t.refuse(f"place {begin} is outside of an axis of size {size}")
        return found


def _axis_range(
    begin: int, end: int, step: int, size: int, from_start: bool, to_end: bool, single: bool
) -> tuple[int, int, int]:
    if single:
        begin = begin + size if begin < 0 else begin
        return begin, begin + 1, 1
    low, high = (0, size) if step > 0 else (-1, size - 1)
    begin, end = (v + size if v < 0 else v for v in (begin, end))
    begin = (low if step > 0 else high) if from_start else min(max(begin, low), high)
    end = (high if step > 0 else low) if to_end else min(max(end, low), high)
    return begin, end, step


@translates("REVERSE_V2")
def reverse_v2(t: Translation, x: Value, axes: Value) -> Value:
    turned = {t.axis(a, x.rank) for a in t.ints(axes, "the axes")}
    return sliced(t, x, [(d - 1, -1, -1) if i in turned else (0, d, 1) for i, d in enumerate(x.shape)])


@translates("REVERSE_SEQUENCE")
def reverse_sequence(
    t: Translation, x: Value, lengths: Value, *, seq_dim: int = 0, batch_dim: int = 0
) -> Value:
    """Places along an axis in an order of their own for each sample."""
    found = t.ints(lengths, "the lengths")
    along, batch = t.axis(seq_dim, x.rank), t.axis(batch_dim, x.rank)
    if len(found) != x.shape[batch] or along == batch or any(not 0 <= n <= x.shape[along] for n in found):
        t.refuse(f"lengths {list(found)} do not fit axes {along} and {batch} of {list(x.shape)}")
    rows = [[*range(n - 1, -1, -1), *range(n, x.shape[along])] for n in found]
    shape = [1] * x.rank
    shape[batch], shape[along] = len(found), x.shape[along]
    order = np.asarray(rows, np.int32)
    order = order.reshape(shape) if batch < along else order.T.reshape(shape)
    return t.gather_elements(x, t.constant(np.broadcast_to(order, x.shape).copy()), along)


# -- repeating and padding -----------------------------------------------------------------------------------


@translates("TILE")
def tile(t: Translation, x: Value, multiples: Value) -> Value:
    counts = t.ints(multiples, "the multiples")
    if len(counts) != x.rank or min(counts, default=1) < 1:
        t.refuse(f"{list(counts)} times {list(x.shape)} cannot be said in QNN")
    return x if all(c == 1 for c in counts) and x.data is not None else t.tile(x, counts)


def broadcast(t: Translation, x: Value, shape: Sequence[int]) -> Value:
    """A value repeated to a shape."""
    try:
        full = broadcast_shape(x.shape, tuple(shape))
    except ValueError:
        t.refuse(f"{list(x.shape)} cannot be repeated to {list(shape)}")
    if full != tuple(shape):
        t.refuse(f"{list(x.shape)} cannot be repeated to {list(shape)}")
    if x.data is not None:
        return t.constant(np.ascontiguousarray(np.broadcast_to(x.data, full)), x.name)
    wide = t.reshape(x, (*(1,) * (len(full) - x.rank), *x.shape))
    counts = [a // b for a, b in zip(full, wide.shape, strict=True)]
    return t.copy(wide) if all(c == 1 for c in counts) else t.tile(wide, counts)


@translates("BROADCAST_ARGS")
def broadcast_args(t: Translation, a: Value, b: Value) -> Value:
    """The shape that two shapes have together."""
    both = tuple(t.ints(a, "the first shape")), tuple(t.ints(b, "the second shape"))
    try:
        return t.constant(np.asarray(broadcast_shape(*both), np.int32))
    except ValueError:
        t.refuse(f"{list(both[0])} and {list(both[1])} do not go together")


@translates("BROADCAST_TO")
def broadcast_to(t: Translation, x: Value, shape: Value) -> Value:
    return broadcast(t, x, t.ints(shape, "the shape"))


@translates("FILL")
def fill(t: Translation, dims: Value, value: Value) -> Value:
    return broadcast(t, value, t.ints(dims, "the shape"))


@translates("RANGE")
def range_(t: Translation, start: Value, limit: Value, delta: Value) -> Value:
    a, b, step = (t.static(v, "the range").item() for v in (start, limit, delta))
    count = max(0, int(np.ceil((b - a) / step))) if step else 0
    if not 0 < count < 1 << 24:
        t.refuse(f"a range from {a} to {b} by {step} cannot be said in QNN")
    return t.constant((a + step * np.arange(count)).astype(start.dtype.numpy))


def _amounts(t: Translation, x: Value, paddings: Value) -> list[list[int]]:
    flat = t.ints(paddings, "the padding")
    if len(flat) != 2 * x.rank or min(flat, default=0) < 0:
        t.refuse(f"padding {list(flat)} does not fit {list(x.shape)}")
    return [list(flat[i : i + 2]) for i in range(0, len(flat), 2)]


@translates("PAD", "PADV2")
def pad(t: Translation, x: Value, paddings: Value, value: Value | None = None) -> Value:
    rows = _amounts(t, x, paddings)
    number = 0.0 if value is None else float(t.static(value, "the number that pads").reshape(-1)[0])
    return t.pad(x, rows, number) if any(map(any, rows)) else x


@translates("MIRROR_PAD")
def mirror_pad(t: Translation, x: Value, paddings: Value, *, mode: int = 0) -> Value:
    rows = _amounts(t, x, paddings)
    scheme = "MIRROR_SYMMETRIC" if mode == SYMMETRIC else "MIRROR_REFLECT"
    return mirrored(t, x, rows, scheme) if any(map(any, rows)) else x


def mirrored(t: Translation, x: Value, rows: list[list[int]], scheme: str) -> Value:
    """By a gather along each axis: Qualcomm's libraries mirror few shapes right."""
    for axis, (before, after) in enumerate(rows):
        if not before and not after:
            continue
        places = np.pad(
            np.arange(x.shape[axis]), (before, after), mode="symmetric" if "SYM" in scheme else "reflect"
        )
        x = t.gather(x, t.constant(places.astype(np.int32)), axis)
    return x


@translates("DILATE")
def dilate(t: Translation, x: Value, dilations: Value, value: Value) -> Value:
    number = float(t.static(value, "the number between").reshape(-1)[0])
    return spread(t, x, t.ints(dilations, "the dilations"), number)


def spread(t: Translation, x: Value, factors: Sequence[int], number: float) -> Value:
    """Numbers between the elements: along each axis they then stand as far apart as its factor says."""
    for axis, d in enumerate(factors):
        if d > 1:
            shape, size = x.shape, x.shape[axis]
            apart = t.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
            padded = t.pad(apart, [[0, d - 1 if i == axis + 1 else 0] for i in range(apart.rank)], number)
            x = cut(
                t,
                t.reshape(padded, (*shape[:axis], size * d, *shape[axis + 1 :])),
                axis,
                0,
                d * (size - 1) + 1,
            )
    return x


# -- blocks --------------------------------------------------------------------------------------------------


@translates("DEPTH_TO_SPACE")
def depth_to_space(t: Translation, x: Value, *, block_size: int = 0) -> Value:
    _check_blocks(t, x, x.rank == 4 and block_size > 0 and x.shape[3] % (block_size**2) == 0, block_size)
    return t("DepthToSpace", x, block_size=(block_size, block_size), mode="DCR")


@translates("SPACE_TO_DEPTH")
def space_to_depth(t: Translation, x: Value, *, block_size: int = 0) -> Value:
    fits = x.rank == 4 and block_size > 0 and not x.shape[1] % block_size and not x.shape[2] % block_size
    _check_blocks(t, x, fits, block_size)
    return t("SpaceToDepth", x, block_size=(block_size, block_size), mode="DCR")


def _check_blocks(t: Translation, x: Value, fits: bool, block: int) -> None:
    if not fits:
        t.refuse(f"blocks of {block} do not fit {list(x.shape)}")


def _image(
    t: Translation, x: Value, block: list[int], rows: list[list[int]]
) -> tuple[Value, list[int], list[list[int]]]:
    """A signal is an image of one column."""
    if x.rank == 3 and len(block) == 1:
        return t.reshape(x, (x.shape[0], x.shape[1], 1, x.shape[2])), [*block, 1], [*rows, [0, 0]]
    if x.rank != 4 or len(block) != 2:
        t.refuse(f"blocks {block} of {list(x.shape)}: QNN has them in images")
    return x, block, rows


@translates("SPACE_TO_BATCH_ND")
def space_to_batch_nd(t: Translation, x: Value, block_shape: Value, paddings: Value) -> Value:
    block, flat = list(t.ints(block_shape, "the blocks")), t.ints(paddings, "the padding")
    image, block, rows = _image(t, x, block, [list(flat[i : i + 2]) for i in range(0, len(flat), 2)])
    y = t("SpaceToBatch", image, block_size=block, pad_amount=rows)
    return t.reshape(y, (y.shape[0], y.shape[1], y.shape[3])) if x.rank == 3 else y


@translates("BATCH_TO_SPACE_ND")
def batch_to_space_nd(t: Translation, x: Value, block_shape: Value, crops: Value) -> Value:
    block, flat = list(t.ints(block_shape, "the blocks")), t.ints(crops, "the crops")
    image, block, rows = _image(t, x, block, [list(flat[i : i + 2]) for i in range(0, len(flat), 2)])
    y = t("BatchToSpace", image, block_size=block, crops=rows)
    return t.reshape(y, (y.shape[0], y.shape[1], y.shape[3])) if x.rank == 3 else y


# -- diagonals -----------------------------------------------------------------------------------------------


@translates("MATRIX_DIAG")
def matrix_diag(t: Translation, x: Value) -> Value:
    eye = t.constant(np.eye(x.shape[-1], dtype=x.dtype.numpy))
    return t.mul(t.reshape(x, (*x.shape, 1)), eye)


@translates("MATRIX_SET_DIAG")
def matrix_set_diag(t: Translation, x: Value, diagonal: Value) -> Value:
    height, width = x.shape[-2:]
    if diagonal.shape != (*x.shape[:-2], min(height, width)):
        t.refuse(f"a diagonal {list(diagonal.shape)} does not fit {list(x.shape)}")
    line = t.reshape(
        diagonal, (*diagonal.shape, 1) if height <= width else (*diagonal.shape[:-1], 1, diagonal.shape[-1])
    )
    return t.select(t.constant(np.broadcast_to(np.eye(height, width, dtype=bool), x.shape).copy()), line, x)
