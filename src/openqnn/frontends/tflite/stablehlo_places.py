"""StableHLO operators that cut, pad, repeat and address."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.frontends.tflite.elementwise import type_of
from openqnn.frontends.tflite.flatbuffer import schema
from openqnn.frontends.tflite.gather import dynamic_update_slice, inside
from openqnn.frontends.tflite.shape import broadcast, sliced, spread
from openqnn.frontends.tflite.stablehlo_windows import kind_of
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Value


@translates("STABLEHLO_SLICE")
def slice_(
    t: Translation, x: Value, *, start_indices: Sequence[int] = (), limit_indices: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Value:  # fmt: skip
    found = list(zip(start_indices, limit_indices, strides or [1] * x.rank, strict=False))
    if len(found) != x.rank or any(
        not 0 <= b <= e <= d or s < 1 for (b, e, s), d in zip(found, x.shape, strict=True)
    ):
        t.refuse(f"parts {found} do not fit {list(x.shape)}")
    return sliced(t, x, found)


@translates("STABLEHLO_PAD")
def pad(
    t: Translation, x: Value, value: Value, *, edge_padding_low: Sequence[int] = (),
    edge_padding_high: Sequence[int] = (), interior_padding: Sequence[int] = (),
) -> Value:  # fmt: skip
    """Between the elements, then at the ends; less than nothing at an end cuts it off."""
    rows = list(zip(edge_padding_low, edge_padding_high, strict=False))
    between = list(interior_padding) or [0] * x.rank
    if len(rows) != x.rank or len(between) != x.rank or min(between, default=0) < 0:
        t.refuse(f"pads {rows} with {between} between do not fit {list(x.shape)}")
    number = float(t.static(value, "the number that pads").reshape(-1)[0])
    x = spread(t, x, [b + 1 for b in between], number)
    ends = [(max(0, -a), d - max(0, -b), 1) for (a, b), d in zip(rows, x.shape, strict=True)]
    if any(a >= b for a, b, _ in ends):
        t.refuse(f"pads {rows} leave nothing of {list(x.shape)}")
    x = sliced(t, x, ends)
    positive = [[max(a, 0), max(b, 0)] for a, b in rows]
    return t.pad(x, positive, number) if any(map(any, positive)) else x


@translates("STABLEHLO_IOTA")
def iota(t: Translation, *, iota_dimension: int = 0) -> Value:
    """Numbers that count along an axis; the shape is that of the result's tensor."""
    shape = t.result().shape
    kind = type_of(t, schema().enums["TensorType"].index(t.result().type)).numpy
    axis = t.axis(iota_dimension, len(shape))
    line = np.arange(shape[axis]).astype(kind).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return t.constant(np.ascontiguousarray(np.broadcast_to(line, shape)))


@translates("STABLEHLO_BROADCAST_IN_DIM")
def broadcast_in_dim(t: Translation, x: Value, *, broadcast_dimensions: Sequence[int] = ()) -> Value:
    """Each axis has its place among those of the result."""
    shape, places = t.result().shape, list(broadcast_dimensions)
    if len(places) != x.rank or len(set(places)) != x.rank or any(not 0 <= p < len(shape) for p in places):
        t.refuse(f"axes {places} of {list(shape)} do not fit {list(x.shape)}")
    turned = t.transpose(x, np.argsort(places).tolist())
    sizes = dict(zip(places, x.shape, strict=True))
    return broadcast(t, t.reshape(turned, [sizes.get(i, 1) for i in range(len(shape))]), shape)


@translates("STABLEHLO_DYNAMIC_SLICE")
def dynamic_slice(t: Translation, x: Value, *starts: Value, slice_sizes: Sequence[int] = ()) -> Value:
    """Starts are moved so that the part is inside; those of run time choose elements axis by axis."""
    if len(starts) != x.rank or len(slice_sizes) != x.rank:
        t.refuse(f"{len(starts)} starts and sizes {list(slice_sizes)} do not fit {list(x.shape)}")
    for axis, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        last = x.shape[axis] - size
        if size < 1 or last < 0:
            t.refuse(f"a part of {list(slice_sizes)} does not fit {list(x.shape)}")
        if start.data is not None:
            begin = min(max(int(start.data.reshape(-1)[0]), 0), last)
            ranges = [(begin, begin + size, 1) if i == axis else (0, d, 1) for i, d in enumerate(x.shape)]
            x = sliced(t, x, ranges)
        elif last:
            begin = inside(t, t.reshape(start, (1,)), np.asarray([last]))
            x = t.gather(x, t.add(t.constant(np.arange(size, dtype=np.int32)), begin), axis)
    return x


@translates("STABLEHLO_DYNAMIC_UPDATE_SLICE")
def dynamic_update(t: Translation, x: Value, update: Value, *starts: Value) -> Value:
    if all(s.data is not None for s in starts):
        numbers = [int(t.static(s, "a start").reshape(-1)[0]) for s in starts]
        return dynamic_update_slice(t, x, update, t.constant(np.asarray(numbers, np.int32)))
    parts = [t.cast(t.reshape(s, (1,)), DType.INT_32) for s in starts]
    return dynamic_update_slice(t, x, update, t.concat(parts, 0) if len(parts) > 1 else parts[0])


@translates("STABLEHLO_GATHER")
def gather(
    t: Translation, x: Value, indices: Value, *, offset_dims: Sequence[int] = (),
    collapsed_slice_dims: Sequence[int] = (), start_index_map: Sequence[int] = (), index_vector_dim: int = 0,
    slice_sizes: Sequence[int] = (),
) -> Value:  # fmt: skip
    """Whole slices at places along some axes."""
    along = list(start_index_map)
    rest = [i for i in range(x.rank) if i not in along]
    wanted = [1 if i in along else d for i, d in enumerate(x.shape)]
    if sorted(along) != sorted(collapsed_slice_dims) or list(slice_sizes) != wanted:
        t.refuse("it takes parts of slices: QNN gathers whole ones")
    rows = _index_rows(t, indices, index_vector_dim, len(along))
    last = np.asarray([x.shape[i] - 1 for i in along], np.int32)
    if rows.data is not None:
        rows = t.constant(np.clip(rows.data, 0, last).astype(np.int32))
    else:
        rows = inside(t, rows, last)
    y = t.gather_nd(t.transpose(x, [*along, *rest]), rows)
    batch = rows.rank - 1
    places = [i for i in range(y.rank) if i not in offset_dims]
    return t.transpose(y, np.argsort([*places[:batch], *offset_dims]).tolist())


def _index_rows(t: Translation, indices: Value, dim: int, count: int) -> Value:
    """Indices with the coordinates of a place along their last axis."""
    if dim == indices.rank:
        indices = t.reshape(indices, (*indices.shape, 1))
    elif dim != indices.rank - 1:
        indices = t.transpose(indices, [*(i for i in range(indices.rank) if i != dim), dim])
    if indices.shape[-1] != count:
        t.refuse(f"indices {list(indices.shape)} do not name places along {count} axes")
    return indices


@translates("STABLEHLO_SCATTER")
def scatter(
    t: Translation, x: Value, indices: Value, updates: Value, *, update_window_dims: Sequence[int] = (),
    inserted_window_dims: Sequence[int] = (), scatter_dims_to_operand_dims: Sequence[int] = (),
    index_vector_dim: int = 0, update_computation_subgraph_index: int = 0,
) -> Value:  # fmt: skip
    """Whole slices to known places along some axes."""
    along = list(scatter_dims_to_operand_dims)
    rest = [i for i in range(x.rank) if i not in along]
    if sorted(along) != sorted(inserted_window_dims):
        t.refuse("it writes parts of slices: QNN scatters whole ones")
    rows = _index_rows(t, indices, index_vector_dim, len(along))
    found, sizes = t.static(rows, "the places that are written"), [x.shape[i] for i in along]
    if found.size and (found.min() < 0 or (found >= sizes).any()):
        t.refuse(f"a place is outside of axes {along} of {list(x.shape)}")
    places = [i for i in range(updates.rank) if i not in update_window_dims]
    values = t.transpose(updates, [*places, *update_window_dims])
    turned = t.transpose(x, [*along, *rest])
    reduction = _reduction(t, update_computation_subgraph_index)
    y = t.scatter_nd(turned, t.constant(found.astype(np.int32)), values, reduction)
    return t.transpose(y, np.argsort([*along, *rest]).tolist())


def _reduction(t: Translation, body: int) -> str:
    """A body without operators that gives its second input replaces what was there."""
    if t.replaces(body):
        return "NONE"
    found = {"add": "ADD", "mul": "MUL"}.get(kind_of(t, body))
    if found is None:
        t.refuse("QNN scatters numbers that replace, add or multiply")
    return found
