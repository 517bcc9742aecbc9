"""Parts of a graph: any of its nodes as a graph of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from openqnn.ir.graph import Graph, Node, Port, Value


def subgraph(graph: Graph, kept: Collection[Node], name: str = "") -> Graph:
    """A graph of some nodes of another, in its order; values are copied under their names, and constants
    shared.

    What they read from others becomes an input; what others read, or the graph gives out, an output.
    """
    chosen = set(kept)
    nodes = [node for node in graph.nodes if node in chosen]
    made = Graph(name or graph.name)
    made.reserve(v.name for v in graph.values())
    made.reserve(n.name for n in graph.nodes)
    copies: dict[Value, Value] = {}
    for value in dict.fromkeys(_read(nodes, chosen)):
        made.inputs.append(_copy(value, copies))
        made.ports[value.name] = Port(value.dtype, value.shape)
    for node in nodes:
        inputs = [None if v is None else _copy(v, copies) for v in node.inputs]
        outputs = [_copy(v, copies) for v in node.outputs]
        made.add(Node(node.op, node.name, inputs, outputs, dict(node.params), node.source, node.package))
    for value in _given(nodes, chosen, set(graph.outputs)):
        made.add_output(copies[value])
    return made


def _copy(value: Value, copies: dict[Value, Value]) -> Value:
    if value not in copies:
        copies[value] = Value(value.name, value.dtype, value.shape, value.encoding, value.data)
    return copies[value]


def _read(nodes: list[Node], chosen: set[Node]) -> Iterator[Value]:
    """What the nodes read and none of them makes."""
    for value in (v for node in nodes for v in node.inputs):
        if value is not None and not value.is_constant and value.producer not in chosen:
            yield value


def _given(nodes: list[Node], chosen: set[Node], shown: set[Value]) -> Iterator[Value]:
    """What the nodes make and others read, or nobody."""
    for value in (v for node in nodes for v in node.outputs):
        if value in shown or not value.users or any(user not in chosen for user in value.users):
            yield value
