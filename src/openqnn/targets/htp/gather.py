"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from openqnn.ir import DType, Node, Value
from openqnn.ops import Builder
from openqnn.targets.htp.ranks import has_too_many_axes, view
from openqnn.targets.htp.rules import Instead, Refusal, again, fixed_rule, rule, takes

MOST_STEPS = 128
MOST_COORDINATES = 3  # with what is read at each, the axes that GatherNd takes
_COMBINE = {"ADD": Builder.add, "MUL": Builder.mul, "MAX": Builder.maximum}

takes("Gather", "GatherElements", kinds="FI")
takes("GatherNd", "ScatterElements", kinds="FI", axes=4)
takes("ScatterNd", kinds="FIB")
takes("NonZero", kinds="B")


@rule("ScatterElements")
def scatter_step_by_step(node: Node, b: Builder) -> Instead:
    # "reduction has incorrect Value 3, expected < 1". Along the axis one position of the updates after the
    # other: read what is there, combine, write back. Two updates of one step never meet.
    how = node.enum("reduction")
    if how == "NONE":
        return None
    data, indices, updates, axis = node.x(0), node.x(1), node.x(2), node.int("axis")
    steps = indices.shape[axis]
    if steps > MOST_STEPS:
        raise Refusal(
            f"HTP has no {how} in ScatterElements; {steps} updates are too many to spell out one by one"
        )
    for k in range(steps):
        where, new = (b.part(v, axis, k, k + 1) if steps > 1 else v for v in (indices, updates))
        old = b.gather_elements(data, where, axis)
        data = b.scatter_elements(data, where, _COMBINE[how](b, old, new), axis)
    return data


@rule("GatherNd", "GatherElements", "Gather")
def gather_of_booleans(node: Node, b: Builder) -> Instead:
    # No bool8.
    x = node.x(0)
    if x.dtype is not DType.BOOL_8:
        return None
    wide = b.cast(x, DType.INT_32)
    found: Value = b(node.op, wide, node.x(1), **node.params)
    return b.cast(found, DType.BOOL_8)


@rule("GatherNd")
def coordinates_in_a_row(node: Node, b: Builder) -> Instead:
    # Coordinates of five axes validate, and fail in finalize (1002). What is read at each is one axis.
    x, places = node.x(0), node.x(1)
    lead = x.shape[: places.shape[-1]]
    if not has_too_many_axes(node) or node.params.get("batch_dims") or len(lead) > MOST_COORDINATES:
        return None
    inner, count = prod(x.shape[len(lead) :]), prod(places.shape[:-1])
    data, rows = view(b, x, (*lead, inner)), view(b, places, (count, len(lead)))
    return view(b, again(b, node, data, rows, shape=(count, inner)), node.out.shape)


@rule("Gather")
def gather_on_three_axes(node: Node, b: Builder) -> Instead:
    # Five axes at most: indices in a row, and the data as what lies before, along and behind the axis.
    if not has_too_many_axes(node):
        return None
    x, indices, at = node.x(0), node.x(1), node.int("axis")
    data = view(b, x, (prod(x.shape[:at]), x.shape[at], prod(x.shape[at + 1 :])))
    return view(b, again(b, node, data, view(b, indices, (indices.size,)), axis=1), node.out.shape)


@rule("Gather")
def rows_of_integers(node: Node, b: Builder) -> Instead:
    # As below, in int32.
    return gathered_apart(node, b, (2, 4, 8)) if node.out.dtype is DType.INT_32 else None


def gathered_apart(node: Node, b: Builder, sizes: Collection[int]) -> Value | None:
    """Where a row has as many elements as in `sizes`, which make 8, 16 or 32 bytes.

    Of 32 such rows and more, half come out wrong. One element more, which is cut off again, and they do not.
    """
    x, axis = node.x(0), node.int("axis")
    inner = prod(x.shape[axis + 1 :])
    if inner not in sizes or node.x(1).size < 32:
        return None
    rows = x if axis == x.rank - 2 else b.reshape(x, (*x.shape[: axis + 1], inner))
    wider = b.concat([rows, b.part(rows, rows.rank - 1, 0, 1)], rows.rank - 1)
    found = b.gather(wider, node.x(1), axis=axis)
    return b.reshape(b.part(found, found.rank - 1, 0, inner), node.out.shape)


@rule("NonZero")
def all_that_can_be(node: Node, b: Builder) -> Instead:
    # "Incorrect output[0] dimension at idx 0. Expected 4 but got 3": room for every element.
    x = node.x(0)
    if node.out.shape[0] == x.size and x.dtype is DType.BOOL_8:
        return None
    flags = x if x.dtype is DType.BOOL_8 else b.cast(x, DType.BOOL_8)
    rows = b.non_zero(flags, x.size)
    return b.part(rows, 0, 0, node.out.shape[0]) if node.out.shape[0] < x.size else rows


@fixed_rule("Gather")
def gathered_rows(node: Node, b: Builder, width: int) -> Value | None:
    """Bytes and pairs of bytes have the fault that integers have."""
    return gathered_apart(node, b, (4, 8, 16, 32))
