"""Taking away what adds nothing: dead nodes, repeated computations."""

from __future__ import annotations

from typing import Any

from openqnn.ir import Graph, Node
from openqnn.passes.edit import alive, bypass, sweep
from openqnn.passes.explain import Explain


def remove_dead_code(graph: Graph, log: Explain) -> int:
    """Nodes whose results reach no graph output."""
    return sweep(graph, list(graph.nodes))


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
