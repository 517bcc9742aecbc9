"""What the rules promise of the graphs that they make."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.passes import Explain
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.targets.htp import RULES, legalise_htp


def graph_of(shape: tuple[int, ...], dtype: DType = DType.FLOAT_32) -> tuple[Graph, Builder]:
    graph = Graph("g")
    graph.add_input("x", dtype, shape)
    return graph, Builder(graph, "the test")


def run(graph: Graph, x: np.ndarray) -> list[np.ndarray]:
    value = graph.inputs[0]
    found = CpuExecutable(graph, threads=1).run({"x": x.reshape(value.shape).astype(value.dtype.numpy)})
    return [found[v.name].reshape(graph.ports[v.name].shape) for v in graph.outputs]


def check_same(graph: Graph, x: np.ndarray) -> Graph:
    legal = legalise_htp(graph)
    for before, after in zip(run(graph, x), run(legal, x), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
    return legal


def test_the_given_graph_stays_as_it_is() -> None:
    graph, b = graph_of((2, 3, 4))
    graph.add_output(b("Softmax", graph.inputs[0], axis=0))
    before = str(graph)
    log = Explain()
    legal = legalise_htp(graph, log)
    assert str(graph) == before
    assert [n.op for n in legal.nodes] == ["Transpose", "Softmax", "Transpose"]
    assert "along_last_axis" in str(log)
    assert all(n.source == "the test" for n in legal.nodes)


def test_seven_axes_are_merged() -> None:
    graph, b = graph_of((2, 3, 2, 2, 3, 2, 2))
    x = b("Relu", graph.inputs[0])
    graph.add_output(b("Transpose", x, perm=(0, 4, 2, 6, 1, 3, 5)), None)
    data = np.random.default_rng(0).standard_normal(graph.inputs[0].shape)
    legal = check_same(graph, data)
    assert max(v.rank for v in legal.values()) <= 5
    assert legal.outputs[0].name == graph.outputs[0].name


def test_coordinates_of_five_axes_are_put_in_a_row() -> None:
    """As torch's exports of encoders look up their masks; libQnnHtp fails on five axes."""
    graph, b = graph_of((2, 4, 3, 2))
    places = np.array([[0, 3], [1, 0], [1, 2]], np.int32).reshape(1, 1, 1, 3, 2)
    graph.add_output(b.gather_nd(graph.inputs[0], b.const(places)))
    legal = check_same(graph, np.random.default_rng(0).standard_normal(graph.inputs[0].shape))
    (gather,) = (n for n in legal.nodes if n.op == "GatherNd")
    assert max(v.rank for v in (*filter(None, gather.inputs), *gather.outputs)) <= 4


def test_narrow_integers_still_wrap() -> None:
    graph, b = graph_of((4,), DType.UINT_8)
    x = graph.inputs[0]
    graph.add_output(b("ElementWiseAdd", x, b.const([200], np.uint8)))
    data = np.array([0, 50, 100, 255])
    legal = check_same(graph, data)
    assert {v.dtype for v in legal.values()} == {DType.INT_32}


def test_recurrent_cells_are_spelled_out() -> None:
    graph, b = graph_of((3, 2, 4))
    rng = np.random.default_rng(0)
    w, r, bias = (b.const(rng.standard_normal(s), np.float32) for s in ((5, 4), (5, 5), (5,)))
    found = b.many("Lstm", graph.inputs[0], w, w, w, r, r, r, bias, bias, bias, *[None] * 6, w, r, None, None, None, bias)  # fmt: skip # noqa: E501
    for value in found:
        graph.add_output(value)
    legal = check_same(graph, rng.standard_normal((3, 2, 4)))
    assert "Lstm" not in {n.op for n in legal.nodes}


def test_refusals_name_node_reason_and_advice() -> None:
    graph, b = graph_of((2000, 1, 4))
    w = [b.const(np.zeros(s), np.float32) for s in ((5, 4), (5, 5), (5,))]
    graph.add_output(b("Gru", graph.inputs[0], *[w[0]] * 3, *[w[1]] * 3, *[w[2]] * 6))
    with pytest.raises(UnsupportedError, match=r"HTP cannot run 1 node\(s\):\n  Gru .*2000 steps") as caught:
        legalise_htp(graph)
    assert "at a time" in str(caught.value)


def test_every_rule_says_why() -> None:
    import inspect

    for function in {f for functions in RULES.values() for f in functions}:
        assert "#" in inspect.getsource(function), f"{function.__name__} has no comment on what HTP does"
