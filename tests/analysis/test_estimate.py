"""The cost model of libQnnHtp: what it says of graphs whose order is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from openqnn import quantize
from openqnn.analysis.chip_fits import CHIPS, CHIPS_FLOAT, fits_for
from openqnn.analysis.estimate import estimate_graph, layer_costs, node_costs
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.runtime.boundary import random_inputs
from tests.cli.tool import openqnn
from tests.qnn.nets import needs_htp

pytestmark = needs_htp


def convolution(channels: int, width: int = 8) -> Graph:
    graph = Graph(f"conv{channels}")
    x = graph.add_input("x", DType.FLOAT_32, (1, 28, 28, channels))
    filters = np.random.default_rng(0).standard_normal((3, 3, channels, channels)).astype(np.float32)
    weights = graph.constant("w", filters, DType.FLOAT_32)
    y = Builder(graph)("Conv2d", x, weights, stride=[1, 1], pad_amount=[[1, 1], [1, 1]])
    graph.add_output(Builder(graph)("Sigmoid", y))
    if not width:
        return graph
    return quantize(graph, [random_inputs(graph)], algorithms=(), act_bw=width)


def test_more_work_costs_more() -> None:
    small = estimate_graph(convolution(32))
    large = estimate_graph(convolution(128))
    wide = estimate_graph(convolution(32, 16))
    assert small.low <= small.cycles <= small.high
    assert large.cycles > 1.5 * small.cycles
    assert wide.cycles > 1.2 * small.cycles
    assert small.read > 0 and not small.rough and not wide.rough
    assert (small.width, wide.width) == (8, 16)
    assert 0 < small.utilisation < large.utilisation < 1
    for fit in CHIPS:
        assert fit.milliseconds(large.cycles) > fit.milliseconds(small.cycles) > fit.start


def test_the_same_graph_has_the_same_estimate() -> None:
    assert estimate_graph(convolution(32)) == estimate_graph(convolution(32))


def test_floating_point_is_called_rough() -> None:
    found = estimate_graph(convolution(32, 0))
    assert "floating point" in found.rough
    assert (found.width, fits_for(found.width)) == (32, CHIPS_FLOAT)


def test_nodes_alone() -> None:
    costs = node_costs(convolution(64))
    assert {cost.op for cost in costs} >= {"Conv2d", "Sigmoid"}
    assert [cost.cycles for cost in costs] == sorted((c.cycles for c in costs), reverse=True)


def test_layers_by_cutting() -> None:
    graph = convolution(64)
    whole = estimate_graph(graph)
    layers = layer_costs(graph, whole)
    assert len(layers) == 1 and {"Conv2d", "Sigmoid"} <= set(layers[0].ops)  # HTP joins them
    assert sum(layer.share for layer in layers) == pytest.approx(1)
    assert sum(layer.cycles for layer in layers) == pytest.approx(whole.cycles)
    assert layers[0].macs == 28 * 28 * 64 * 64 * 9 and layers[0].bytes > 9 * 64 * 64


def test_every_fit_grows_with_the_work() -> None:
    for fit in (*fits_for(8), *fits_for(16), *fits_for(32)):
        assert fit.milliseconds(2e6, 2e6, 2e6) > fit.milliseconds(1e6) > fit.start > 0
        assert 0 < fit.median < fit.largest


def test_the_command(tmp_path: Path) -> None:
    convolution(32, 0).save(tmp_path / "m.oqnn")
    done = openqnn("estimate", tmp_path / "m.oqnn", "--whole", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert set(record["milliseconds"]) == {fit.chip for fit in CHIPS} and record["cycles"] > 0
    shown = openqnn("estimate", tmp_path / "m.oqnn", "--html", tmp_path / "e.html", "--act_bw", 16)
    page = (tmp_path / "e.html").read_text()
    assert "Roofline" in page and "<svg" in page and "http" not in page
    assert "error on other networks" in shown.out and "Conv2d" in shown.out
    half = openqnn("estimate", tmp_path / "m.oqnn", "--whole", "--act_bw", 32)
    assert "rough: the graph computes in floating point" in half.out and "18 networks" in half.out
