"""Overlays out of what our commands write, and out of the forms of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.analysis.accuracy.debug import debug_accuracy
from openqnn.analysis.accuracy.debug_report import report_json
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.page import pane_record
from openqnn.viewer.read_overlays import read_overlays
from openqnn.viewer.view import Overlay
from tests.cli.tool import openqnn as command
from tests.models.fetch import model_path, static_shapes
from tests.viewer.test_views import graph

MODEL = "mnist_conv"


def overlays(path: Path, content: object) -> dict[str, Overlay]:
    path.write_text(json.dumps(content))
    return {overlay.title: overlay for overlay in read_overlays(path)}


@pytest.mark.parametrize("name", ["lint", "partition"])
def test_what_commands_print_is_read(tmp_path: Path, name: str) -> None:
    done = command(name, model_path(MODEL), "--json")
    (tmp_path / "o.json").write_text(done.out)
    (overlay,) = read_overlays(tmp_path / "o.json")
    converted = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    record = pane_record(view_from_graph(converted, "m", "QNN graph"), [overlay])
    assert record["overlays"][-1]["title"] == {"lint": "architecture findings", "partition": "backend"}[name]
    assert record["overlays"][-1]["labels"]


def test_a_partition_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("backends: [htp, cpu]\npins: {a: htp, b: cpu}\n")
    (overlay,) = read_overlays(tmp_path / "p.yaml")
    assert overlay.labels == {"a": "htp", "b": "cpu"}


def test_debug_results_are_errors_and_decibels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = [{"x": rng.standard_normal((1, 4)).astype(np.float32)} for _ in range(3)]
    real = graph()
    report = debug_accuracy(real, openqnn.quantize(real, data, backend="cpu"), data)
    (tmp_path / "debug.json").write_text(report_json(report))
    found = {overlay.title: overlay for overlay in read_overlays(tmp_path / "debug.json")}
    assert {"error, entire", "error, isolated", "SQNR, entire"} <= set(found)
    assert found["SQNR, entire"].least_is_worst
    decibels, error = found["SQNR, entire"].values["y"], found["error, entire"].values["y"]
    assert error == pytest.approx(100 * 10 ** (-decibels / 20))


def test_estimates_and_profiles_are_times(tmp_path: Path) -> None:
    layers = [{"name": "a", "cycles": 7.5, "bytes": 3, "advice": ["wider"]}]
    found = overlays(tmp_path / "e.json", {"layers": layers, "cycles": 8})
    assert found["time, estimate"].values == {"a": 7.5} and found["time, estimate"].notes == {"a": "wider"}
    nodes = [{"name": "a", "unit": "cycles", "median": 5}, {"name": "b", "unit": "us", "median": 2}]
    found = overlays(tmp_path / "p.json", {"nodes": nodes})
    assert found["time, profile (cycles)"].values == {"a": 5} and found["time, profile (us)"].unit == "us"


def test_encodings_are_bit_widths(tmp_path: Path) -> None:
    row = {
        "bitwidth": 8,
        "dtype": "int",
        "is_symmetric": "False",
        "max": 1.0,
        "min": 0.0,
        "offset": 0,
        "scale": 1 / 255,
    }
    found = overlays(tmp_path / "e.json", {"activation_encodings": {"y": [row]}, "param_encodings": {}})
    assert found["bit width, e"].values == {"y": 8}


def test_words_are_labels(tmp_path: Path) -> None:
    assert overlays(tmp_path / "w.json", {"y": "dsp"})["w"].labels == {"y": "dsp"}


def test_node_data_of_several_graphs_are_an_overlay_each(tmp_path: Path) -> None:
    node_data = {name: {"results": {name: {"value": i}}, "thresholds": []} for i, name in enumerate("ab")}
    found = overlays(tmp_path / "n.json", node_data)
    assert {title: overlay.values for title, overlay in found.items()} == {"n, a": {"a": 0}, "n, b": {"b": 1}}
    assert set(overlays(tmp_path / "n.json", {"main": node_data["a"]})) == {"n"}


def test_tensors_stand_for_their_nodes() -> None:
    converted = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    node = next(node for node in converted.nodes if node.name != node.out.name)
    record = pane_record(
        view_from_graph(converted, "m", "QNN graph"), [Overlay("o", {node.out.name: 1, "?": 2})]
    )
    assert record["overlays"][-1]["values"] == {node.name: 1}


def test_a_profiling_log_of_onnx_runtime(tmp_path: Path) -> None:
    head = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
    rows = ["1,EXECUTE,9,US,BACKEND,ROOT,x", "1,NODE,4,CYCLES,BACKEND,SUB-EVENT,conv:OpId_3 (cycles)"]
    (tmp_path / "log.csv").write_text(head + "\n".join(rows) + "\n")
    (overlay,) = read_overlays(tmp_path / "log.csv")
    assert overlay.values == {"conv": 4} and overlay.unit == "cycles"
