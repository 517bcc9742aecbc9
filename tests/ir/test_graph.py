"""Edits of a graph keep its use-def chains, its order and the names that users know."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import VerifyError
from openqnn.ir import DType, Graph, Node, Port
from openqnn.ir.verify import verify
from tests.ir.graphs import SHAPE, by_op, diamond, node, ops, value


def test_values_know_producer_and_every_use() -> None:
    graph = Graph()
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    square = node(graph, "Mul", x, x)
    assert x.producer is None
    assert x.users == [square, square], "one entry per use"
    assert square.out.producer is square
    assert square.out.users == []


def test_values_are_listed_once_in_order_of_first_use() -> None:
    names = [v.name for v in diamond().values()]
    assert names == ["x", "top.out", "left.out", "right.out", "join.out"]


def test_adding_before_a_node_in_place() -> None:
    graph = diamond()
    node(graph, "Early", graph.inputs[0], before=by_op(graph, "Left"))
    assert ops(graph) == ["Top", "Early", "Left", "Right", "Join"]


def test_adding_before_a_node_that_is_itself_waiting() -> None:
    graph = diamond()
    join = by_op(graph, "Join")
    second = node(graph, "Second", graph.inputs[0], before=join)
    node(graph, "First", graph.inputs[0], before=second)
    node(graph, "Third", graph.inputs[0], before=join)
    last = node(graph, "Last", graph.inputs[0])
    node(graph, "NextToLast", graph.inputs[0], before=last)
    assert ops(graph) == ["Top", "Left", "Right", "First", "Second", "Third", "Join", "NextToLast", "Last"]


def test_a_waiting_node_can_be_removed_again() -> None:
    graph = diamond()
    waiting = node(graph, "Waiting", graph.inputs[0], before=by_op(graph, "Top"))
    graph.remove(waiting)
    assert ops(graph) == ["Top", "Left", "Right", "Join"]
    assert waiting not in graph.inputs[0].users
    verify(graph)


def test_removing_a_used_node_is_refused_and_changes_nothing() -> None:
    graph = diamond()
    with pytest.raises(VerifyError, match=r"Left 'left' is still used through 'left\.out'"):
        graph.remove(by_op(graph, "Left"))
    with pytest.raises(VerifyError, match=r"Join 'join' is still used through 'join\.out'"):
        graph.remove(by_op(graph, "Join"))
    verify(graph)


def test_set_input_moves_one_use() -> None:
    graph = diamond()
    join, left, right = (by_op(graph, op) for op in ("Join", "Left", "Right"))
    graph.set_input(join, 1, left.out)
    assert left.out.users == [join, join]
    assert right.out.users == []
    graph.set_input(join, 1, None)
    assert left.out.users == [join]
    assert not join.has(1)
    with pytest.raises(VerifyError, match="Join 'join': input 1 is missing"):
        join.x(1)


def test_replace_uses_reaches_every_operand_of_every_user() -> None:
    graph = diamond()
    top, left, right = (by_op(graph, op) for op in ("Top", "Left", "Right"))
    graph.replace_uses(top.out, graph.inputs[0])
    assert left.inputs == right.inputs == [graph.inputs[0]]
    assert top.out.users == []
    graph.remove(top)
    verify(graph)


def test_replacing_an_output_keeps_the_name_that_users_know() -> None:
    graph = diamond()
    old = by_op(graph, "Join")
    new = node(graph, "Better", by_op(graph, "Left").out, before=old)
    graph.replace(old.out, new.out)
    graph.remove(old)
    assert [v.name for v in graph.outputs] == ["join.out"]
    assert graph.outputs[0].producer is new
    assert graph.ports["join.out"] == Port(DType.FLOAT_32, SHAPE)
    verify(graph)


def test_an_output_cannot_become_an_input_or_a_constant() -> None:
    for make in (
        lambda g: g.inputs[0],
        lambda g: g.constant("c", np.zeros(SHAPE, np.float32), DType.FLOAT_32),
    ):
        graph = diamond()
        with pytest.raises(VerifyError, match=r"output 'join\.out' cannot become"):
            graph.replace(by_op(graph, "Join").out, make(graph))


def test_sort_restores_order_and_keeps_what_is_free() -> None:
    graph = diamond()
    top, left, right, join = graph.nodes
    graph._nodes = [join, right, left, top]
    graph.sort()
    assert graph.nodes[0] is top and graph.nodes[-1] is join
    verify(graph)
    before = list(graph.nodes)
    graph.sort()
    assert list(graph.nodes) == before


def test_sort_names_a_node_of_the_cycle() -> None:
    graph = diamond()
    graph.set_input(by_op(graph, "Top"), 0, by_op(graph, "Join").out)
    with pytest.raises(VerifyError, match="the graph has a cycle through Top 'top'"):
        graph.sort()


def test_sort_of_a_deep_graph_does_not_recurse() -> None:
    graph = Graph()
    x = graph.add_input("x", DType.FLOAT_32, SHAPE)
    for index in range(3000):
        x = node(graph, "Step", x, name=f"s{index}").out
    graph.add_output(x)
    graph._nodes = list(reversed(graph.nodes))
    graph.sort()
    verify(graph)


def test_unique_never_gives_a_name_twice() -> None:
    graph = Graph()
    graph.reserve(["a", "a_2"])
    names = [graph.unique("a") for _ in range(3)] + [graph.unique("a_2"), graph.unique("b")]
    assert len(set(names)) == 5
    assert not {"a", "a_2"} & set(names)
    assert names[-1] == "b"


def test_where_names_op_node_and_source() -> None:
    made = Node("Relu", "act", [], [], source="onnx node /act/Relu")
    assert made.where == "Relu 'act' (onnx node /act/Relu)"
    assert repr(made) == f"<{made.where}>"


def test_a_value_says_its_size_in_memory() -> None:
    graph = Graph()
    made = value(graph, "v")
    assert (made.rank, made.size, made.nbytes) == (2, 6, 24)
    assert repr(made) == "%v: float32[2,3]"
