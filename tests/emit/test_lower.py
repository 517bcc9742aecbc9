"""QNN's conventions on names and shapes hold in what is emitted, and survive a DLC."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import openqnn
from openqnn.emit import lower
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from tests.qnn.nets import requires


def _odd() -> Graph:
    graph = Graph("mnist-8.small")
    builder = Builder(graph, source="onnx node /relu 1")
    x = graph.add_input("3 x/é", DType.FLOAT_32, (2, 3))
    graph.add_output(builder("Relu", x, name="y:0"))
    return graph


def test_names_keep_what_qnn_allows() -> None:
    net = lower(_odd())
    assert (net.name, net.inputs, net.outputs) == ("mnist_8_small", ("_3_x__",), ("y_0",))


@requires("libQnnIr.so")
def test_a_dlc_keeps_sources_whatever_the_graph_is_called(tmp_path: Path) -> None:
    _odd().save(tmp_path / "odd.dlc")
    again = openqnn.load(tmp_path / "odd.dlc")
    (node,) = again.nodes
    assert (node.op, node.source) == ("Relu", "onnx node /relu 1")
    with openqnn.Session(again) as session:
        (y,) = session.run({again.inputs[0].name: np.full((2, 3), -1, np.float32)}).values()
    assert not y.any()
