"""Errors of layers against a hand calculation, attribution, mending, and the files of a report."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper, parser

import openqnn
from openqnn.analysis.accuracy import attribution, layer_errors
from openqnn.analysis.accuracy.confirm import prefix_graph
from openqnn.analysis.accuracy.debug import Stage, debug_accuracy
from openqnn.analysis.accuracy.debug_page import debug_page
from openqnn.analysis.accuracy.debug_report import COLUMNS, DebugReport, report_csv, report_json
from openqnn.analysis.accuracy.diagnose import WORSE
from openqnn.analysis.accuracy.layer_errors import measure_layers
from openqnn.analysis.accuracy.mend import mending_encodings
from openqnn.analysis.accuracy.stored_results import ResultStore
from openqnn.analysis.accuracy.usual import usual_graph
from openqnn.api.session import Session
from openqnn.errors import OutputError
from openqnn.quant.plan import CUT, SHARED
from openqnn.runtime.metrics import sqnr
from tests.analysis.accuracy.faults import Subject, subject_of
from tests.analysis.accuracy.faults import plant as plant_fault


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of("mnist_conv", 3)


@pytest.fixture(scope="module")
def report(subject: Subject) -> DebugReport:
    return debug_accuracy(subject.real, subject.fixed, subject.samples)


def test_the_entire_error_is_that_of_two_sessions(subject: Subject) -> None:
    measured = measure_layers(subject.real, subject.fixed, subject.samples)
    name = subject.fixed.outputs[0].name
    with Session(subject.real) as real, Session(subject.fixed) as fixed:
        pairs = [(real.run(s)[name], fixed.run(s)[name]) for s in subject.samples]
    together = [np.concatenate([p[i].reshape(-1) for p in pairs]) for i in (0, 1)]
    tally = measured.tallies[name]
    assert tally.decibels(tally.entire) == pytest.approx(sqnr(*together), abs=1e-3)


def test_the_first_layer_has_the_same_error_alone_and_in_the_network(subject: Subject) -> None:
    measured = measure_layers(subject.real, subject.fixed, subject.samples)
    layer = next(y for y in measured.pairing.layers if y.op == "Conv2d")
    tally = measured.tallies[layer.name]
    assert tally.isolated == pytest.approx(tally.entire, rel=1e-4)
    assert len(layer.fixed) == 2, "the Relu belongs to the layer"
    assert "Plus30_Output_0" in measured.pairing.fused


def test_layers_that_only_move_numbers_add_nothing(report: DebugReport) -> None:
    moved = [y for y in report.layers if y.op in ("Reshape", "Transpose", "PoolMax2d")]
    assert moved
    assert all(y.added == inf for y in moved)


def test_attribution_tells_what_single_layers_do(report: DebugReport) -> None:
    layers = [y for y in report.layers if y.only is not None]
    assert layers
    lowest = min(y.only for y in layers if y.only is not None)
    assert lowest >= min(o.sqnr for o in report.outputs) - 4, "errors of layers add up, and may cancel"
    assert all(y.without is None or y.without >= report.outputs[0].sqnr - 6 for y in layers)


def test_the_files_of_a_report(report: DebugReport) -> None:
    rows = list(csv.reader(io.StringIO(report_csv(report))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 1 + len(report.layers)
    record = json.loads(report_json(report))
    assert record["broken"] == []
    assert record["complete"]
    page = debug_page(report)
    assert "http" not in page.replace("http-equiv", "")
    assert report.layers[0].tensor in page


def test_encodings_that_mend_a_fault(subject: Subject) -> None:
    planted = next(p for p in (plant_fault(subject, s) for s in range(2, 40, 9)) if p.kind == "tenth")
    usual = usual_graph(planted.real, planted.fixed, subject.samples)
    report = debug_accuracy(planted.real, planted.fixed, subject.samples, usual=usual, attribution=False)
    mended = {e.name for e in mending_encodings(report, usual)}
    assert mended & planted.tensors


def test_a_moved_range_is_told_where_few_values_leave_it() -> None:
    """One value of a thousand does: the noise is hardly more than that of calibration."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,4000] x) => (float[1,4000] y)'
        " { z = Relu(x) y = Add(z, x) }"
    )
    values = np.abs(np.random.default_rng(0).normal(0, 1, (1, 4000))).astype(np.float32)
    values[0, 0] = 40
    real = openqnn.convert(model)
    fixed = openqnn.quantize(real, [{"x": values}], wide=False)
    healthy = debug_accuracy(real, fixed, [{"x": values}], attribution=False)
    assert not healthy.broken
    (moved,) = (v for v in fixed.values() if v.name == "z")
    assert moved.encoding is not None
    moved.encoding = replace(moved.encoding, offset=(moved.encoding.offset[0] - 70,))
    report = debug_accuracy(real, fixed, [{"x": values}], attribution=False)
    first = report.broken[0]
    assert (first.tensor, first.findings[0].cause.id) == ("z", "wrong-offset")
    assert first.findings[0].strength < WORSE


def test_a_range_of_fewer_samples_is_not_moved() -> None:
    """It is shorter at one end, and the other one stays."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,40000] x) => (float[1,40000] y)'
        " { z = Relu(x) y = Add(z, x) }"
    )
    values = np.clip(np.random.default_rng(0).normal(0, 1, (1, 40000)), -4, 4).astype(np.float32)
    values[0, 0] = 4
    more = values.copy()
    more[0, 0] = 4.8
    real = openqnn.convert(model)
    fixed = openqnn.quantize(real, [{"x": values}], wide=False, headroom=False)
    usual = usual_graph(real, fixed, [{"x": more}])
    assert not debug_accuracy(real, fixed, [{"x": more}], usual=usual, attribution=False).broken


@pytest.mark.parametrize("fitted", [True, False])
def test_weights_that_give_the_same_result_are_no_fault(fitted: bool) -> None:
    """Two inputs are nearly equal: what one weight gains the other may lose, and not gain, too."""
    chance = np.random.default_rng(0)
    values = chance.normal(0, 1, (64, 16)).astype(np.float32)
    values[:, 1] = values[:, 0] + 0.15 * values[:, 1]
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[64,16] x) => (float[64,64] y) { y = MatMul(x, w) }'
    )
    weights = chance.uniform(-1, 1, (16, 64)).astype(np.float32)
    weights[:2] /= 2
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    real = openqnn.convert(model)
    fixed = openqnn.quantize(real, [{"x": values}], algorithms=())
    (stored,) = (v for v in fixed.constants() if v.data is not None and v.size == weights.size)
    assert stored.data is not None
    moved = np.zeros_like(weights)
    moved[0], moved[1] = 20, -20 if fitted else 20
    stored.data = stored.data + (moved.T if stored.shape != moved.shape else moved).astype(stored.data.dtype)
    report = debug_accuracy(real, fixed, [{"x": values}], attribution=False)
    assert [f.cause.id for y in report.broken for f in y.findings[:1]] == (
        [] if fitted else ["weights-differ"]
    )


def test_values_that_readers_cannot_tell_apart_may_be_cut(subject: Subject) -> None:
    """The quantizer says of such ranges where they come from."""
    planted = next(p for p in (plant_fault(subject, s) for s in range(2, 40, 9)) if p.kind == "tenth")
    assert debug_accuracy(planted.real, planted.fixed, subject.samples, attribution=False).broken
    planted.fixed.provenance |= dict.fromkeys(planted.tensors, f"{SHARED}: {CUT}")
    assert not debug_accuracy(planted.real, planted.fixed, subject.samples, attribution=False).broken


def test_an_interrupted_run_leaves_a_report(subject: Subject) -> None:
    def interrupt(name: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    report = debug_accuracy(subject.real, subject.fixed, subject.samples, stage=interrupt)
    assert not report.complete
    assert "interrupted" in debug_page(report)


def _debugged(subject: Subject, store: ResultStore, stage: Stage | None = None) -> DebugReport:
    return debug_accuracy(subject.real, subject.fixed, subject.samples, stage=stage, store=store)


@pytest.mark.parametrize(("where", "calls"), [("layers", 1), ("attribution", 2)])
def test_an_interrupted_run_goes_on(
    where: str, calls: int, subject: Subject, report: DebugReport, tmp_path: Path
) -> None:
    store, seen = ResultStore(tmp_path / "stored", "a"), list[str]()

    def interrupt(name: str, done: int, total: int) -> None:
        seen.append(name)
        if name == where and seen.count(name) == calls:
            raise KeyboardInterrupt

    first = _debugged(subject, store, interrupt)
    assert not first.complete or "interrupted" in first.notes[0]
    again: list[str] = []
    second = _debugged(subject, store, lambda name, done, total: again.append(name))
    assert report_json(second) == report_json(report)
    whole: list[str] = []
    _debugged(subject, ResultStore(tmp_path / "new", "a"), lambda name, done, total: whole.append(name))
    assert again.count(where) == whole.count(where) - calls


def test_a_second_look_is_a_look_up(
    subject: Subject, report: DebugReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path / "stored", "a")
    assert report_json(_debugged(subject, store)) == report_json(report)
    assert not list(store.folder.glob("errors-*")), "large errors go once all is known"
    monkeypatch.setattr(layer_errors, "CpuExecutable", None)
    monkeypatch.setattr(attribution, "CpuExecutable", None)
    assert report_json(_debugged(subject, store)) == report_json(report)
    with pytest.raises(TypeError):  # what is of another digest does not count
        _debugged(subject, ResultStore(store.folder, "b"))


def test_damaged_results_are_computed_again(subject: Subject, report: DebugReport, tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "stored", "a")
    _debugged(subject, store)
    (store.folder / "measured.json").write_text("{")
    (store.folder / "attributed.json").write_bytes(b"\xff")
    assert report_json(_debugged(subject, store)) == report_json(report)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="not of openqnn debug"):
        _debugged(subject, ResultStore(tmp_path / "mine", "a"))
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_the_graph_up_to_a_tensor(subject: Subject) -> None:
    name = "Pooling66_Output_0"
    part = prefix_graph(subject.fixed, name)
    assert [v.name for v in part.outputs] == [name]
    assert len(part.nodes) < len(subject.fixed.nodes)
    with Session(subject.fixed) as whole, Session(part) as prefix:
        sample = subject.samples[0]
        assert np.array_equal(whole.run(sample, [name])[name], prefix.run(sample)[name])
