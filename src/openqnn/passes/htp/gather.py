"""Gathers and scatters."""

from __future__ import annotations

from openqnn.ir import DType, Node, Value
from openqnn.ops import Builder
from openqnn.passes.htp.reduce import part
from openqnn.passes.htp.rules import Instead, Refusal, rule

MOST_STEPS = 128
_COMBINE = {"ADD": "ElementWiseAdd", "MUL": "ElementWiseMultiply", "MAX": "ElementWiseMaximum"}


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
        where, new = (part(b, v, axis, k, k + 1) if steps > 1 else v for v in (indices, updates))
        old = b("GatherElements", data, where, axis=axis)
        data = b("ScatterElements", data, where, b(_COMBINE[how], old, new), axis=axis, reduction="NONE")
    return data


@rule("GatherNd", "GatherElements", "Gather")
def gather_of_booleans(node: Node, b: Builder) -> Instead:
    # No bool8.
    x = node.x(0)
    if x.dtype is not DType.BOOL_8:
        return None
    wide = b("Cast", x, dtype=DType.INT_32)
    found: Value = b(node.op, wide, node.x(1), **node.params)
    return b("Cast", found, dtype=DType.BOOL_8)


@rule("NonZero")
def all_that_can_be(node: Node, b: Builder) -> Instead:
    # "Incorrect output[0] dimension at idx 0. Expected 4 but got 3": room for every element.
    x = node.x(0)
    if node.out.shape[0] == x.size and x.dtype is DType.BOOL_8:
        return None
    flags = x if x.dtype is DType.BOOL_8 else b("Cast", x, dtype=DType.BOOL_8)
    rows = b("NonZero", flags, shape=(x.size, x.rank), dtype=DType.INT_32)
    return part(b, rows, 0, 0, node.out.shape[0]) if node.out.shape[0] < x.size else rows
