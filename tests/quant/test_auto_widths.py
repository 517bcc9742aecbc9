"""Nodes that have 16 bits though activations have 8: small ones, and those between squares and roots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import openqnn
from openqnn.analysis.quant_report import quant_report
from openqnn.api.quantize import prepared_for, quantize
from openqnn.ir import Array, DType, Encoding, Given, Graph
from openqnn.quant.auto_widths import DECIBELS, FILTER, MIXED, SMALL_NODE, SQUARE, wide_nodes
from openqnn.quant.recipe import FLOAT, Recipe
from openqnn.runtime.metrics import decibels
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of


def float_graph(model: str) -> Graph:
    return openqnn.convert(model_path(model), input_shapes=shapes_of(model))


def widths(graph: Graph) -> dict[str, int]:
    return {v.name: v.encoding.bitwidth for n in graph.nodes for v in n.outputs if v.encoding is not None}


def sqnr(graph: Graph, fixed: Graph, feeds: list[dict[str, Array]]) -> float:
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as other:
        pairs = [(real.run(f), other.run(f)) for f in feeds]
    signal = sum(float(np.square(a[k]).sum()) for a, _ in pairs for k in a)
    return decibels(signal, sum(float(np.square(a[k] - b[k]).sum()) for a, b in pairs for k in a))


def test_the_spectrum_of_a_signal() -> None:
    """Silero takes roots of sums of squares; its network behind that has 8 bits."""
    graph, data = float_graph("silero_openvino"), data_set("silero_openvino")
    found = wide_nodes(prepared_for(graph, Recipe(), "htp"), Recipe(), {})
    spectrum = {name.rpartition("/")[2] for name, wide in found.items() if wide is SQUARE}
    assert spectrum == {"Pow", "Pow_1", "Add", "Sqrt"}
    wide, narrow = (quantize(graph, data.calibration, wide=w, algorithms=()) for w in (True, False))
    assert {8, 16} == set(widths(wide).values())
    assert {8} == set(widths(narrow).values())
    assert sqnr(graph, wide, data.evaluation) > sqnr(graph, narrow, data.evaluation) + 3


def test_a_spectrum_in_decibels() -> None:
    """basic_pitch takes logarithms of the tones of nine octaves, each of a filter bank behind a low pass."""
    graph, data = float_graph("basic_pitch_onnx"), data_set("basic_pitch_onnx")
    found = wide_nodes(prepared_for(graph, Recipe(), "htp"), Recipe(), {})
    wide, narrow, named = (
        quantize(graph, data.calibration[:8], algorithms=(), **choices)
        for choices in ({}, {"wide": False}, {"weight_bw": 8})
    )
    nodes = {n.name: n for n in wide.nodes}
    logs = [n for n in wide.nodes if n.op == "ElementWiseLog"]
    assert logs
    assert all(found[n.name] is DECIBELS and n.out.dtype is DType.FLOAT_32 for n in logs)
    layers = [n for n in wide.nodes if n.op == "Conv2d"]
    filters, real = ([n for n in layers if found.get(n.name) is kind] for kind in (FILTER, DECIBELS))
    # real and imaginary part of nine octaves, and what halves the rate; HTP computes two octaves wrong
    assert len(filters) == 9 + 8 + 9 - 4 and len(real) == 4
    assert {(n.out.dtype, n.x(1).dtype) for n in filters} == {(DType.UFIXED_16, DType.SFIXED_16)}
    assert {n.out.dtype for n in real} == {DType.FLOAT_32}
    assert {n.x(1).dtype for n in named.nodes if n.op == "Conv2d"} == {DType.SFIXED_8}
    assert sum(n.op == "Conv2d" for n in nodes.values()) > len(filters)  # the network behind has 8 bits
    heard = data.evaluation[:2]
    assert sqnr(graph, wide, heard) > max(sqnr(graph, narrow, heard) + 10, sqnr(graph, named, heard) + 3)


def test_where_a_width_is_refused_the_next_is_tried() -> None:
    assert [DECIBELS.narrower(w, 8) for w in (FLOAT, 16, 8)] == [16, 8, None]
    assert [FILTER.narrower(w, 8) for w in (16, 8, FLOAT)] == [8, None, None]
    assert FILTER.narrower(16, 16) is None


def head(path: Path, computed: bool = False) -> Graph:
    """The end of a detector: boxes in pixels and scores as one tensor; `computed` goes on with that."""
    nodes = [
        helper.make_node("Mul", ["x", "size"], ["boxes"]),
        helper.make_node("Sigmoid", ["x"], ["scores"]),
        helper.make_node("Concat", ["boxes", "scores"], ["joined"], axis=1),
        helper.make_node("Tanh" if computed else "Identity", ["joined"], ["both"]),
    ]
    ports = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 64]) for n, c in (("x", 2), ("both", 4))
    ]
    size = numpy_helper.from_array(np.full((1, 2, 1), 320, np.float32), "size")
    onnx.save(helper.make_model(helper.make_graph(nodes, "head", ports[:1], ports[1:], [size])), path)
    return openqnn.convert(path)


def test_scores_beside_boxes(tmp_path: Path) -> None:
    graph = head(tmp_path / "head.onnx")
    data = [{"x": np.random.default_rng(i).random((1, 2, 64), np.float32) - 0.5} for i in range(6)]
    wide, narrow = (quantize(graph, data[:4], wide=w, algorithms=()) for w in (True, False))
    assert list(wide_nodes(prepared_for(graph, Recipe(), "htp"), Recipe(), {}).values()) == [MIXED]
    errors: list[float] = []
    for fixed in (wide, narrow):
        with openqnn.Session(graph) as real, openqnn.Session(fixed) as other:
            pairs = [(real.run(d)["both"][:, 2:], other.run(d)["both"][:, 2:]) for d in data[4:]]
        errors.append(max(float(np.abs(a - b).max()) for a, b in pairs))
    assert errors[0] < 0.01 and errors[1] > 0.1
    (scores,) = [t for t in quant_report(graph, narrow, data).worst if t.op == "Sigmoid"]
    assert scores.advice.startswith("it has the range of 'both'")
    assert not any("range of" in t.advice for t in quant_report(graph, wide, data).worst)


def test_what_computes_behind_a_join_has_one_width(tmp_path: Path) -> None:
    graph = prepared_for(head(tmp_path / "head.onnx", computed=True), Recipe(), "htp")
    assert not wide_nodes(graph, Recipe(), {})


def test_named_widths_are_meant() -> None:
    assert not Recipe().told({"act_bw": 8}).wide
    assert Recipe().told({"act_bw": 16}).wide
    assert Recipe().told({"act_bw": 8, "wide": True}).wide
    assert not Recipe(wide=False).told({"act_bw": 16}).wide
    assert [Recipe().told(c).wide_weights for c in ({}, {"weight_bw": 4})] == [True, False]


def test_gates_of_channels_are_small() -> None:
    graph = prepared_for(float_graph("ppocr_cls"), Recipe(), "htp")
    found = wide_nodes(graph, Recipe(), {})
    assert set(found.values()) == {SMALL_NODE}
    made = {n.name: sum(v.size for v in n.outputs) for n in graph.nodes}
    assert len(found) > 30
    assert sum(made[name] for name in found) < 0.005 * sum(made.values())


@pytest.mark.parametrize("choices", [{"wide": False}, {"act_bw": 16}])
def test_nothing_else_is_asked_for(choices: dict[str, int]) -> None:
    recipe = Recipe(**choices)  # pyright: ignore[reportArgumentType]
    assert not wide_nodes(prepared_for(float_graph("ppocr_cls"), recipe, "htp"), recipe, {})


def test_what_somebody_said_counts_more() -> None:
    graph = prepared_for(float_graph("mnist_conv"), Recipe(), "htp")
    (node,) = [n for n in graph.nodes if n.name in wide_nodes(graph, Recipe(), {})]
    given = {node.out.name: Given("override", 8, encoding=Encoding.per_tensor(0.1, -128, 8))}
    assert not wide_nodes(graph, Recipe(), given)
    assert not wide_nodes(graph, Recipe(widths={node.name: 8}), {})


def test_a_width_that_is_asked_for_is_that_of_all() -> None:
    fixed = quantize(float_graph("mnist_conv"), data_set("mnist_conv").calibration, act_bw=8)
    assert {v.dtype for v in (*fixed.inputs, *fixed.outputs)} == {DType.UFIXED_8}
    assert "16 bits" not in " ".join(fixed.provenance.values())


def test_the_listing_says_why() -> None:
    fixed = quantize(float_graph("mnist_conv"), data_set("mnist_conv").calibration)
    (out,) = fixed.outputs
    assert fixed.provenance[out.name] == f"calibration, {SMALL_NODE.reason}"


def test_hard_sigmoids_in_16_bits_are_taken_apart() -> None:
    """HTP computes them wrong there; in 8 bits they stay as they are."""
    graph, data = float_graph("ppocr_cls"), data_set("ppocr_cls")
    wide, narrow = (quantize(graph, data.calibration[:2], wide=w, algorithms=()) for w in (True, False))
    kinds = [
        {
            n.out.encoding.bitwidth
            for n in g.nodes
            if n.op == "ElementWiseNeuron" and n.out.encoding is not None
        }
        for g in (wide, narrow)
    ]
    assert kinds[0] <= {8}
    assert kinds[1] == {8}
