"""Padding, triangles, and the ops that pick or turn whole slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.shape import axes_of, filled, sliced
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

_EXACT = 1 << 24  # integers up to here are exact in the float32 that QNN keeps the padding value in


@translates("Pad", since=2)
def pad_2(t: Translation, x: Value, *, pads: list[int], mode: str = "constant", value: float = 0.0) -> Value:
    return padded(t, x, _rows(t, x, pads, None), mode, t.scalar(value, x))


@translates("Pad", since=11)
def pad(
    t: Translation, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *,
    mode: str = "constant",
) -> Value:  # fmt: skip
    where = None if axes is None else t.ints(axes, "axes")
    fill = t.scalar(0, x) if value is None or value.shape == (0,) else value
    return padded(t, x, _rows(t, x, t.ints(pads, "pads"), where), mode, fill)


def _rows(t: Translation, x: Value, pads: Sequence[int], axes: Sequence[int] | None) -> list[list[int]]:
    """Rows (before, after) for every axis."""
    where = range(x.rank) if axes is None else axes_of(t, axes, x.rank)
    if len(pads) != 2 * len(where):
        raise ShapeError(f"{len(pads)} pads are given for {len(where)} axes")
    rows = [[0, 0] for _ in x.shape]
    for i, axis in enumerate(where):
        rows[axis] = [int(pads[i]), int(pads[i + len(where)])]
    return rows


def _cut(t: Translation, x: Value, rows: list[list[int]]) -> Value:
    """The tensor without what negative pads take away."""
    cuts = {
        i: slice(max(0, -before), max(0, size - max(0, -after)))
        for i, ((before, after), size) in enumerate(zip(rows, x.shape, strict=True))
        if before < 0 or after < 0
    }
    return sliced(t, x, cuts) if cuts else x


def padded(t: Translation, x: Value, rows: list[list[int]], mode: str, fill: Value) -> Value:
    """Negative pads cut first."""
    x = _cut(t, x, rows)
    rows = np.maximum(rows, 0).tolist()
    if not any(map(any, rows)):
        return x
    if mode == "constant":
        return _padded_by(t, x, rows, fill)
    if mode not in ("reflect", "edge", "wrap"):
        t.refuse(f"mode '{mode}' is not known")
    if not x.size:
        raise ShapeError(f"{list(x.shape)} has nothing to pad with in mode '{mode}'")
    fits = all(max(row) < d for row, d in zip(rows, x.shape, strict=True))
    if mode == "edge" or (mode == "reflect" and fits):
        return t("Pad", x, scheme="EDGE" if mode == "edge" else "MIRROR_REFLECT", pad_amount=rows)
    for i, row in enumerate(rows):
        if any(row):
            places = np.pad(np.arange(x.shape[i], dtype=np.int32), row, mode=mode)  # type: ignore[call-overload]
            x = t.gather(x, t.constant(places), axis=i)
    return x


def _padded_by(t: Translation, x: Value, rows: list[list[int]], fill: Value) -> Value:
    shape = [a + d + b for (a, b), d in zip(rows, x.shape, strict=True)]
    if fill.size != 1:
        raise ShapeError(f"the padding value has shape {list(fill.shape)}, one number is expected")
    number = None if fill.data is None else fill.data.ravel()[0]
    if number is not None and (x.dtype.is_float or abs(int(number)) <= _EXACT):
        if not x.size:
            return filled(t, shape, number, x.dtype)
        return t.pad(x, rows, float(number))
    inside = np.pad(np.ones(x.shape, np.bool_), rows)
    zeros = t.pad(x, rows) if x.size else fill
    return t.select(t.constant(inside), zeros, t.reshape(fill, (1,) * x.rank))


@translates("Trilu")
def trilu(t: Translation, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    if x.rank < 2:
        t.refuse(f"the input has rank {x.rank}, matrices are expected")
    if not x.size:
        return x
    rows, columns = x.shape[-2:]
    distance = np.arange(columns, dtype=np.int32) - np.arange(rows, dtype=np.int32)[:, None]
    if k is None or k.data is not None:
        shift = 0 if k is None else t.ints(k, "k")[0]
        keep = t.constant(distance >= shift if upper else distance <= shift)
    else:
        keep = (t.greater_equal if upper else t.less_equal)(t.constant(distance), t.reshape(k, (1, 1)))
    return t.select(keep, x, t.constant(np.zeros((1,) * x.rank, x.dtype.numpy)))


@translates("ReverseSequence")
def reverse_sequence(
    t: Translation, x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    batch, time = axes_of(t, (batch_axis, time_axis), x.rank)
    rest = [i for i in range(x.rank) if i not in (batch, time)]
    order = [batch, time, *rest]
    ticks = t.constant(np.arange(x.shape[time], dtype=np.int32)[None])
    ends = t.reshape(lengths, (x.shape[batch], 1))
    back = t.sub(t.sub(ends, t.constant(np.int32(1))), ticks)
    places = t.select(t.less(ticks, ends), back, ticks)
    turned = t.gather_nd(t.transpose(x, order), t.reshape(places, (*places.shape, 1)), batch_dims=1)
    return t.transpose(turned, [order.index(i) for i in range(x.rank)])


@translates("Compress")
def compress(t: Translation, x: Value, condition: Value, *, axis: int | None = None) -> Value:
    if condition.data is None:
        t.refuse("the condition is computed at run time, and the size of the result with it")
    flat = t.reshape(x, (x.size,)) if axis is None else x
    where = t.axis(0 if axis is None else axis, flat.rank)
    places = np.flatnonzero(condition.data).astype(np.int32)
    if places.size and places[-1] >= flat.shape[where]:
        raise ShapeError(f"the condition selects place {places[-1]} of an axis of {flat.shape[where]}")
    if not places.size:
        return sliced(t, flat, {where: slice(0, 0)})
    return t.gather(flat, t.constant(places), axis=where)


@translates("NonZero")
def non_zero(t: Translation, x: Value) -> Value:
    """QNN's op has a fixed number of rows, which is only right when the model states it."""
    stated = t.output_shape()
    if stated is None or len(stated) != 2 or not x.rank:
        t.refuse("how many elements are not zero is only known at run time")
    return t.transpose(t.non_zero(x, stated[1]), (1, 0))


@translates("Unique")
def unique(t: Translation, x: Value, **_: Any) -> Value:
    t.refuse("how many values are unique is only known at run time")
