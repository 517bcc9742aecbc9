"""Where a model already had stored integers: what stood between them and real numbers goes.

A model may take and give integers, with nodes that quantize and dequantize at its borders. Once both
sides of such a node are in fixed point it changes the encoding at most.
"""

from __future__ import annotations

from openqnn.ir import DType, Graph, Node, Value
from openqnn.ops import OPS, complete, schema_of

CONVERT = "Convert"


def join_stored(graph: Graph) -> None:
    for node in list(graph.nodes):
        if _is_between(node, fixed=(True, True)):
            _join(graph, node)
    for node in list(graph.nodes):
        if _is_between(node, fixed=(False, True)) and node.x(0).dtype.is_integer:
            _store_input(graph, node)
        elif _is_between(node, fixed=(True, False)) and node.out.dtype.is_integer:
            _store_output(graph, node)


def _is_between(node: Node, fixed: tuple[bool, bool]) -> bool:
    if not schema_of(node).on_stored or len(node.inputs) != 1 or len(node.outputs) != 1:
        return False
    return (node.x(0).dtype.is_fixed, node.out.dtype.is_fixed) == fixed


def _join(graph: Graph, node: Node) -> None:
    x, out = node.x(0), node.out
    if (x.dtype, x.encoding) == (out.dtype, out.encoding) and not graph.is_output(out):
        _bypass(graph, node)
    elif node.op != CONVERT:
        node.op, node.params = CONVERT, complete(OPS[CONVERT], {}, x.rank, node.where)


def _bypass(graph: Graph, node: Node) -> None:
    graph.replace_uses(node.out, node.x(0))
    graph.remove(node)


def _fits(stored: DType, plain: DType) -> bool:
    return stored.numpy == plain.numpy


def _store_input(graph: Graph, node: Node) -> None:
    """A graph input of integers is the fixed-point tensor; the outside gives the same integers."""
    x, out = node.x(0), node.out
    alone = set(x.users) == {node} and any(x is v for v in graph.inputs)
    if alone and _fits(out.dtype, x.dtype) and not graph.is_output(out):
        x.dtype, x.encoding = out.dtype, out.encoding
        _bypass(graph, node)


def _store_output(graph: Graph, node: Node) -> None:
    """The way of integers to the outputs is one of fixed-point tensors, if nothing computes with them."""
    x = node.x(0)
    behind = _behind(graph, node.out)
    if behind is None or not _fits(x.dtype, node.out.dtype) or graph.is_output(node.out):
        return
    for value in behind:
        value.dtype, value.encoding = x.dtype, x.encoding
    _bypass(graph, node)


def _behind(graph: Graph, value: Value) -> list[Value] | None:
    """The tensors that are only moved from here on; None where something else is done to one."""
    found, waiting = list[Value](), [value]
    while waiting:
        current = waiting.pop()
        found.append(current)
        for user in current.users:
            if not schema_of(user).hands_on(user) or len([v for v in user.inputs if v is not None]) != 1:
                return None
            waiting += user.outputs
    return found
