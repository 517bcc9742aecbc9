"""Layers that move numbers, cut and join them, reduce them, or choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from openqnn.frontends.caffe.table import translates
from openqnn.frontends.compositions import cut
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value


@translates("Dropout")
def same(t: Translation, x: Value) -> Value:
    return x


@translates("Split")
def split(t: Translation, x: Value) -> list[Value]:
    return [x] * len(t.outputs)


@translates("Softmax")
def softmax(t: Translation, x: Value, *, axis: int = 1) -> Value:
    return t.softmax(x, t.axis(axis, x.rank))


@translates("Concat")
def concat(t: Translation, *xs: Value, axis: int = 1, concat_dim: int | None = None) -> Value:
    """Known numbers, such as prior boxes, are joined at once."""
    if not xs or len({x.rank for x in xs}) != 1:
        t.refuse(f"blobs {', '.join(str(list(x.shape)) for x in xs)} cannot be joined")
    along = t.axis(axis if concat_dim is None else concat_dim, xs[0].rank)
    if len({(*x.shape[:along], *x.shape[along + 1 :]) for x in xs}) != 1:
        t.refuse(f"blobs {', '.join(str(list(x.shape)) for x in xs)} cannot be joined along axis {along}")
    if all(x.data is not None for x in xs):
        return t.constant(np.concatenate([np.asarray(x.data) for x in xs], along))
    return t.concat(xs, along)


@translates("Slice")
def sliced(
    t: Translation, x: Value, *, axis: int = 1, slice_dim: int | None = None,
    slice_point: list[int] | None = None,
) -> list[Value]:  # fmt: skip
    along, count = t.axis(axis if slice_dim is None else slice_dim, x.rank), len(t.outputs)
    size = x.shape[along]
    points = slice_point or [size // count * i for i in range(1, count)]
    ends = [0, *points, size]
    if len(points) != count - 1 or any(b <= a for a, b in pairwise(ends)):
        t.refuse(f"{size} cannot be cut at {list(points)} into {count} parts")
    return [x] if count == 1 else t.split(x, along, points)


@translates("Crop")
def crop(t: Translation, x: Value, like: Value, *, axis: int = 2, offset: list[int] | None = None) -> Value:
    first = t.axis(axis, x.rank)
    offsets = list(offset or [0])
    offsets = offsets * (x.rank - first) if len(offsets) == 1 else offsets
    if like.rank != x.rank or len(offsets) != x.rank - first:
        t.refuse(f"{list(x.shape)} cannot be cut to {list(like.shape)} at {offsets}")
    for along, begin in enumerate(offsets, start=first):
        if not 0 <= begin <= x.shape[along] - like.shape[along]:
            t.refuse(f"{list(x.shape)} cannot be cut to {list(like.shape)} at {offsets}")
        x = cut(t, x, along, begin, begin + like.shape[along])
    return x


@translates("Permute")
def permute(t: Translation, x: Value, *, order: list[int]) -> Value:
    """Axes that are not named follow in their own order."""
    perm = [*order, *(i for i in range(x.rank) if i not in order)]
    if sorted(perm) != list(range(x.rank)):
        t.refuse(f"{list(order)} is no order of the axes of {list(x.shape)}")
    return t.transpose(x, perm)


@translates("Flatten")
def flatten(t: Translation, x: Value, *, axis: int = 1, end_axis: int = -1) -> Value:
    first, last = t.axis(axis, x.rank), t.axis(end_axis, x.rank)
    if last < first:
        t.refuse(f"axis {axis} stands behind end_axis {end_axis}")
    return t.reshape(x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@translates("Reshape")
def reshape(
    t: Translation, x: Value, *, shape: dict[str, Any] | None = None, axis: int = 0, num_axes: int = -1
) -> Value:
    """0 stands for the size that the axis has, -1 for what is left."""
    dims = [d for d in (shape or {}).get("dim", []) if isinstance(d, int)]
    first = t.axis(axis, x.rank) if axis >= 0 else t.axis(axis + x.rank + 1, x.rank + 1)
    last = x.rank if num_axes == -1 else first + num_axes
    found = _filled(dims, x.shape[first:last], x.shape[first:])
    if not first <= last <= x.rank or found is None:
        t.refuse(f"{list(x.shape)} cannot become {dims} from axis {axis} on")
    return t.reshape(x, (*x.shape[:first], *found, *x.shape[last:]))


def _filled(dims: list[int], old: Sequence[int], kept: Sequence[int]) -> list[int] | None:
    """The sizes that take the place of the old ones; None where they are no such."""
    if dims.count(-1) > 1 or any(d < -1 or (d == 0 and i >= len(kept)) for i, d in enumerate(dims)):
        return None
    found = [kept[i] if d == 0 else d for i, d in enumerate(dims)]
    rest = prod(old) // max(prod(d for d in found if d != -1), 1)
    found = [rest if d == -1 else d for d in found]
    return found if prod(found) == prod(old) else None


@translates("Tile")
def tile(t: Translation, x: Value, *, axis: int = 1, tiles: int) -> Value:
    along = t.axis(axis, x.rank)
    if tiles < 1:
        t.refuse(f"tiles: {tiles} leaves nothing")
    return t.tile(x, [tiles if i == along else 1 for i in range(x.rank)])


@translates("ShuffleChannel")
def shuffle_channel(t: Translation, x: Value, *, group: int = 1) -> Value:
    if x.rank < 2 or group < 1 or x.shape[1] % group:
        t.refuse(f"{group} groups do not divide the channels of {list(x.shape)}")
    apart = t.reshape(x, (x.shape[0], group, x.shape[1] // group, *x.shape[2:]))
    return t.reshape(t.transpose(apart, (0, 2, 1, *range(3, apart.rank))), x.shape)


# -- reductions ----------------------------------------------------------------------------------------------


@translates("Reduction")
def reduction(
    t: Translation, x: Value, *, operation: str = "SUM", axis: int = 0, coeff: float = 1.0
) -> Value:
    """Over all axes from one on."""
    axes = list(range(t.axis(axis, x.rank), x.rank))
    before = {"ASUM": t.abs, "SUMSQ": t.square}.get(operation)
    if operation not in ("SUM", "ASUM", "SUMSQ", "MEAN"):
        t.refuse(f"operation: {operation} is not known")
    data = x if before is None else before(x)
    y = (t.reduce_mean if operation == "MEAN" else t.reduce_sum)(data, axes, keep_dims=False)
    return y if coeff == 1 else t.mul(y, coeff)


@translates("ArgMax")
def arg_max(
    t: Translation, x: Value, *, out_max_val: bool = False, top_k: int = 1, axis: int | None = None
) -> Value:
    """The position of the largest, as a real number; without an axis among all of an image."""
    if top_k != 1 or out_max_val:
        t.refuse("only the position of the one largest number is translated", hint="top_k: 1")
    if axis is not None:
        return t.cast(t.argmax(x, t.axis(axis, x.rank), keep_dims=True), DType.FLOAT_32)
    rows = t.reshape(x, (x.shape[0], 1, x.size // max(x.shape[0], 1)))
    return t.cast(t.argmax(rows, 2, keep_dims=True), DType.FLOAT_32)
