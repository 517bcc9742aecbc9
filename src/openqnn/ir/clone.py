"""A graph of its own with the same content: what a rewrite for one backend works on."""

from __future__ import annotations

from openqnn.ir.graph import Graph, Node, Value


def clone_graph(graph: Graph) -> Graph:
    """Values and nodes are copied, constant data is shared."""
    copies: dict[Value, Value] = {}

    def copy(value: Value) -> Value:
        if value not in copies:
            copies[value] = Value(value.name, value.dtype, value.shape, value.encoding, value.data)
        return copies[value]

    made = Graph(graph.name)
    made.reserve(v.name for v in graph.values())
    made.reserve(n.name for n in graph.nodes)
    made.inputs = [copy(v) for v in graph.inputs]
    for n in graph.nodes:
        inputs = [None if v is None else copy(v) for v in n.inputs]
        outputs = [copy(v) for v in n.outputs]
        made.add(Node(n.op, n.name, inputs, outputs, dict(n.params), n.source, n.package))
    made.outputs = [copy(v) for v in graph.outputs]
    made.ports = dict(graph.ports)
    made.provenance = dict(graph.provenance)
    made.given = dict(graph.given)
    made.merged, made.folded = graph.merged, graph.folded
    return made
