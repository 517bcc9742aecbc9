"""Differences between graphs, from records and from files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openqnn.analysis.diff import Difference, diff_nets
from openqnn.emit import lower
from openqnn.ir.graph_text import parse_graph
from openqnn.qnn.net import Net
from openqnn.runtime.metrics import distance
from tests.qnn.nets import ConvRelu

BEFORE = """
graph "g" {
  input %x: float32[1,4,4,8]
  const %w: float32[8] = [1,2,3,4,5,6,7,8]
  %a: float32[1,4,4,8] = ElementWiseMultiply(%x, %w) name "scale"
  %b: float32[1,4,4,8] = Relu(%a) name "act"
  %y: float32[1,2,2,8] = PoolMax2d(%b) filter_size=[2,2] stride=[2,2] name "pool"
  output %y
}
"""


def net(text: str = BEFORE, *changes: tuple[str, str]) -> Net:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return lower(parse_graph(text), idle=True)


def differences(*changes: tuple[str, str], tolerance: float = 0.0) -> list[Difference]:
    return list(diff_nets(net(), net(BEFORE, *changes), tolerance).differences)


def rows(*changes: tuple[str, str]) -> list[tuple[str, str, str, str]]:
    return [(d.kind, d.change, d.name, d.detail) for d in differences(*changes)]


def test_a_graph_equals_itself() -> None:
    found = diff_nets(net(), net())
    assert found.equal
    assert (found.matched, found.renamed) == (3, ())


def test_a_changed_parameter() -> None:
    changes = (("filter_size=[2,2]", "filter_size=[1,1]"),)
    assert rows(*changes) == [("node", "changed", "pool", "filter_size [2, 2] -> [1, 1]")]


def test_a_changed_op() -> None:
    assert rows(("Relu(", "Tanh(")) == [("node", "changed", "act", "op Relu -> Tanh")]


def test_a_node_in_between() -> None:
    found = rows(
        ("%y: float32", '%c: float32[1,4,4,8] = Sigmoid(%b) name "gate"\n  %y: float32'),
        ("PoolMax2d(%b)", "PoolMax2d(%c)"),
    )
    assert found == [
        ("node", "added", "gate", "Sigmoid"),
        ("node", "changed", "pool", "input 0: b -> c"),
    ]


def test_names_alone_are_no_difference() -> None:
    other = net(BEFORE, ('name "act"', 'name "activation"'), ("%b", "%other"), ("%w", "%weights"))
    found = diff_nets(net(), other)
    assert found.equal
    assert found.renamed == (("act", "activation"),)


def test_a_changed_border() -> None:
    found = rows(("output %y", "output %y\n  output %b"), ("input %x", "input %z: int32[2]\n  input %x"))
    assert ("input", "added", "z", "int32[2]") in found
    assert ("output", "added", "b", "float32[1,4,4,8]") in found
    assert all(kind != "node" for kind, *_ in found)


def test_shapes_are_followed() -> None:
    found = rows(("1,4,4,8", "1,6,6,8"), ("1,2,2,8", "1,3,3,8"))
    assert ("input", "changed", "x", "shape [1, 4, 4, 8] -> [1, 6, 6, 8]") in found
    assert ("node", "changed", "act", "result b: shape [1, 4, 4, 8] -> [1, 6, 6, 8]") in found
    assert ("output", "changed", "y", "shape [1, 2, 2, 8] -> [1, 3, 3, 8]") in found


def test_a_changed_constant_is_measured() -> None:
    (found,) = differences(("[1,2,3,4,5,6,7,8]", "[1,2,3,4,5,6,7,8.5]"))
    assert (found.kind, found.name) == ("constant", "w")
    assert found.distance is not None
    assert (found.distance.largest, found.distance.elements) == (0.5, 1)
    assert found.distance.cosine == pytest.approx(208 / np.sqrt(204 * 212.25))
    assert found.detail == (
        "of ElementWiseMultiply 'scale': 1 of 8 elements differ, by 0.5 at most, cosine 0.999596"
    )


def test_tolerance() -> None:
    change = ("[1,2,3,4,5,6,7,8]", "[1,2,3,4,5,6,7,8.5]")
    assert not differences(change, tolerance=0.5)
    assert differences(change, tolerance=0.4)


def test_encodings() -> None:
    quantized = ConvRelu().quantized_net()
    tensor = quantized.tensors["mid"]
    assert tensor.quant is not None
    other = replace(
        quantized,
        tensors={**quantized.tensors, "mid": replace(tensor, quant=replace(tensor.quant, scales=(0.5,)))},
    )
    (found,) = diff_nets(quantized, other).differences
    assert found.detail == ("result mid: encoding (scale 0.0470588, offset -128) -> (scale 0.5, offset -128)")
    # a scale that went through a file is the same scale
    single = replace(tensor.quant, scales=(float(np.float32(tensor.quant.scales[0])),))
    again = replace(quantized, tensors={**quantized.tensors, "mid": replace(tensor, quant=single)})
    assert diff_nets(quantized, again).equal


def test_distance_of_odd_numbers() -> None:
    nan = np.array([np.nan, 1], np.float32)
    assert distance(nan, nan).elements == 0
    assert distance(nan, np.array([0, 1], np.float32)).largest == np.inf
    zeros = np.zeros(3)
    assert distance(zeros, zeros).cosine == 1
    assert distance(zeros, np.ones(3)).cosine == 0
