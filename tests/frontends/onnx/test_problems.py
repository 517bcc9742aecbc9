"""All problems of a model are named at once, also those behind a refused node."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

import openqnn
from openqnn.errors import OpenQnnWarning, UnsupportedError
from tests.onnx_models import model, tensor


def test_problems_behind_a_refused_node_are_named_too() -> None:
    nodes = [
        helper.make_node("Bernoulli", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Det", ["b"], ["c"], name="second"),
        helper.make_node("Mystery", ["c"], ["y"], name="third", domain="com.example"),
    ]
    x = helper.make_tensor_value_info("x", 1, [4, 4])
    y = helper.make_tensor_value_info("y", 1, None)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]
    made = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=10)
    with pytest.raises(UnsupportedError) as caught:
        openqnn.convert(made)
    assert [p.node for p in caught.value.problems] == ["first", "second", "third"]
    report = openqnn.check(made)
    assert report.supported == {"Relu": 1} and len(report.problems) == 3


def test_inputs_that_no_node_reads_are_told() -> None:
    inputs = [tensor("x", (2, 3)), tensor("length", (1,), TensorProto.INT64)]
    given = model([helper.make_node("Relu", ["x"], ["y"])], inputs)
    with pytest.warns(OpenQnnWarning, match="no node reads 'length': QNN's files and libraries leave such"):
        graph = openqnn.convert(given)
    assert [v.name for v in graph.inputs] == ["x", "length"]
