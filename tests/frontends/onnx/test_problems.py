"""All problems of a model are named at once, also those behind a refused node."""

from __future__ import annotations

import pytest
from onnx import helper

import openqnn
from openqnn.errors import UnsupportedError


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
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=10)
    with pytest.raises(UnsupportedError) as caught:
        openqnn.convert(model)
    assert [p.node for p in caught.value.problems] == ["first", "second", "third"]
    report = openqnn.check(model)
    assert report.supported == {"Relu": 1} and len(report.problems) == 3
