"""Taking away what adds nothing: dead nodes, repeated computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openqnn.ir import Graph, Node
from openqnn.ops import Moves, schema_of
from openqnn.ops.layout import is_view, permutation_of
from openqnn.passes.edit import alive, builder_at, bypass, supplant, sweep
from openqnn.passes.explain import Explain


def remove_dead_code(graph: Graph, log: Explain) -> int:
    """Nodes whose results reach no graph output."""
    return sweep(graph, list(graph.nodes))


def merge_reshapes(graph: Graph, log: Explain) -> int:
    """A reshape of a reshape is one."""
    return _merge_views(graph, log, "merge_reshapes", _is_reshape)


def merge_views(graph: Graph, log: Explain) -> int:
    """Merges views, and transposes that move only axes of size 1, once nobody asks for axis orders any
    more."""
    return _merge_views(graph, log, "merge_views", _is_view)


def _merge_views(graph: Graph, log: Explain, name: str, is_one: Callable[[Node], bool]) -> int:
    changes = 0
    for node in list(graph.nodes):
        if not alive(node) or not is_one(node):
            continue
        data = node.x(0)
        while data.producer is not None and is_one(data.producer):
            data = data.producer.x(0)
        if data is not node.x(0) or permutation_of(node) is not None:
            new = builder_at(graph, node).reshape(data, node.out.shape, node.out.encoding)
            supplant(graph, node.out, new)
            log.apply(name, node)
            changes += 1
    return changes


def _is_reshape(node: Node) -> bool:
    return _keeps_encoding(node) and schema_of(node).moves is Moves.VIEW


def _is_view(node: Node) -> bool:
    perm = permutation_of(node)
    if perm is None:
        return _is_reshape(node)
    return _keeps_encoding(node) and is_view(node.x(0).shape, perm)


def _keeps_encoding(node: Node) -> bool:
    if not node.has(0) or node.x(0).is_constant:
        return False
    encoding = node.out.encoding
    return node.x(0).encoding == encoding and (encoding is None or encoding.axis is None)


def merge_repeated(graph: Graph, log: Explain) -> int:
    """Two nodes that compute the same from the same values become one."""
    first: dict[Any, Node] = {}
    changes = 0
    for node in list(graph.nodes):
        if not alive(node):
            continue
        kept = first.setdefault(_key(node), node)
        if kept is not node:
            changes += _merge(graph, log, kept, node)
    return changes


def _key(node: Node) -> Any:
    outputs = tuple((v.dtype, v.shape, v.encoding) for v in node.outputs)
    inputs = tuple(id(v) for v in node.inputs)
    return node.op, node.package, inputs, tuple(sorted(node.params.items())), outputs


def _merge(graph: Graph, log: Explain, kept: Node, node: Node) -> int:
    both = [
        v
        for v, k in zip(node.outputs, kept.outputs, strict=True)
        if graph.is_output(v) and graph.is_output(k)
    ]
    if both:
        log.decline("merge_repeated", node, f"'{both[0].name}' and its equal are both graph outputs")
        return 0
    for value, same in zip(node.outputs, kept.outputs, strict=True):
        bypass(graph, value, same)
    log.apply("merge_repeated", node, f"equal to {kept.where}")
    return sweep(graph, [node])
