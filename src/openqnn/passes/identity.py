"""Nodes that give back what they get: one row per way of doing nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from openqnn.ir import Graph, Node, Value
from openqnn.ops.layout import identity, permutation_of
from openqnn.passes.edit import alive, bypass, sweep
from openqnn.passes.explain import Explain

# The value that a node's output equals, if it equals one; shapes and types are compared afterwards.
Same: TypeAlias = Callable[[Node], Value | None]

_FEW = 65536  # elements; larger constants are not searched for being all ones or zeros


def _first_when(holds: Callable[[Node], bool]) -> Same:
    return lambda n: n.x(0) if holds(n) else None


def _always(_: Node) -> bool:
    return True


def _filled(value: Value, number: float) -> bool:
    data = value.data
    return data is not None and 0 < data.size <= _FEW and bool(np.all(data == number))


def _neutral(number: float, first_too: bool) -> Same:
    """Arithmetic with a number that changes nothing, on the right or, with `first_too`, on either side."""

    def same(n: Node) -> Value | None:
        if _filled(n.x(1), number):
            return n.x(0)
        return n.x(1) if first_too and _filled(n.x(0), number) else None

    return same


def _twice(n: Node) -> Value | None:
    """An operation that undoes itself."""
    inner = n.x(0).producer
    return inner.x(0) if inner is not None and inner.op == n.op else None


def _again(n: Node) -> Value | None:
    """An operation that changes nothing the second time."""
    inner = n.x(0).producer
    return n.x(0) if inner is not None and inner.op == n.op and inner.params == n.params else None


def _all_of_it(n: Node) -> bool:
    rows = n.rows("ranges")
    return all(row == (0, size, 1) for row, size in zip(rows, n.x(0).shape, strict=False))


TABLE: dict[str, Same] = {
    "Reshape": _first_when(_always),
    "Squeeze": _first_when(_always),
    "Transpose": _first_when(lambda n: permutation_of(n) == identity(n.x(0).rank)),
    "Cast": _first_when(_always),
    "StridedSlice": _first_when(_all_of_it),
    "Pad": _first_when(lambda n: not any(any(row) for row in n.rows("pad_amount"))),
    "Tile": _first_when(lambda n: all(m == 1 for m in n.ints("multiples"))),
    "Concat": _first_when(lambda n: len(n.inputs) == 1),
    "Split": _first_when(lambda n: len(n.outputs) == 1),
    "ElementWiseAdd": _neutral(0, first_too=True),
    "ElementWiseSubtract": _neutral(0, first_too=False),
    "ElementWiseMultiply": _neutral(1, first_too=True),
    "ElementWiseDivide": _neutral(1, first_too=False),
    "ElementWisePower": _neutral(1, first_too=False),
    "ElementWiseNeg": _twice,
    "ElementWiseNot": _twice,
    "Relu": _again,
    "Relu6": _again,
    "ReluMinMax": _again,
    "ElementWiseAbs": _again,
    "ElementWiseFloor": _again,
    "ElementWiseCeil": _again,
    "ElementWiseRound": _again,
}


def remove_identities(graph: Graph, log: Explain) -> int:
    changes = 0
    for node in list(graph.nodes):
        find = TABLE.get(node.op)
        same = find(node) if find is not None and alive(node) else None
        if same is None or (same.shape, same.dtype) != (node.out.shape, node.out.dtype):
            continue
        changes += _remove(graph, log, node, same)
    return changes


def _remove(graph: Graph, log: Explain, node: Node, same: Value) -> int:
    if same.encoding != node.out.encoding:
        log.decline("remove_identities", node, f"'{node.out.name}' has another encoding than '{same.name}'")
        return 0
    reason = bypass(graph, node.out, same)
    if reason:
        log.decline("remove_identities", node, reason)
        return 0
    log.apply("remove_identities", node, f"equal to '{same.name}'")
    return sweep(graph, [node])
