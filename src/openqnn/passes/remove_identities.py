"""Nodes that give back what they get, as their declarations say."""

from __future__ import annotations

from openqnn.ir import Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.passes.edit import alive, bypass, sweep
from openqnn.passes.explain import Explain


def remove_identities(graph: Graph, log: Explain) -> int:
    changes = 0
    for node in list(graph.nodes):
        find = schema_of(node).same_as
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
