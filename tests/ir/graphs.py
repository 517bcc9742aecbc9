"""Small graphs for the tests of the graph itself: op names here are labels, no declaration is looked up."""

from __future__ import annotations

from openqnn.ir import DType, Graph, Node, Value

SHAPE = (2, 3)


def value(graph: Graph, name: str) -> Value:
    return Value(graph.unique(name), DType.FLOAT_32, SHAPE)


def node(graph: Graph, op: str, *inputs: Value | None, name: str = "", before: Node | None = None) -> Node:
    """A node of one output, added to the graph."""
    name = name or op.lower()
    return graph.add(Node(op, name, list(inputs), [value(graph, f"{name}.out")]), before)


def diamond() -> Graph:
    """x -> Top -> (Left, Right) -> Join(left, right) -> y"""
    graph = Graph("diamond")
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    top = node(graph, "Top", x)
    left, right = node(graph, "Left", top.out), node(graph, "Right", top.out)
    join = node(graph, "Join", left.out, right.out)
    graph.add_output(join.out)
    return graph


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def by_op(graph: Graph, op: str) -> Node:
    return next(n for n in graph.nodes if n.op == op)
