"""Significance of differences between logs, against numbers that are known; and traces parsed back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from openqnn.analysis.profile_diff import diff_profiles, mann_whitney
from openqnn.analysis.profile_nodes import by_source, node_times
from openqnn.analysis.profile_trace import chrome_trace, perfetto_trace
from openqnn.errors import InputError
from openqnn.formats.profiling_log import EXECUTE, LogEvent, LogRecord, ProfilingLog


def log(times: np.ndarray, node: float = 1.0) -> ProfilingLog:
    records = []
    for index, time in enumerate(times):
        conv = LogEvent(404, 3, round(1000 * node * time), "conv:OpId_1 (cycles)")
        relu = LogEvent(404, 3, 500, "relu:OpId_2 (cycles)")
        root = LogEvent(400, 1, round(time), "QNN (execute) time", (conv, relu))
        records.append(LogRecord(EXECUTE, "g", index * 2000, index * 2000 + round(time), (root,)))
    return ProfilingLog("x.log", tuple(records), app="test")


def noisy(seed: int, mean: float = 1000.0) -> np.ndarray:
    return mean * np.random.default_rng(seed).gamma(50, 1 / 50, 60)


def test_mann_whitney_as_scipy() -> None:
    """scipy.stats.mannwhitneyu(method="asymptotic") on the same numbers."""
    assert mann_whitney([1, 2, 3, 4, 5], [3, 4, 5, 6, 7]) == pytest.approx(0.113846298)
    assert mann_whitney(range(10), range(10, 20)) == pytest.approx(0.000182671791)
    assert mann_whitney([1, 1, 1], [1, 1, 1]) == 1.0


def test_noise_is_no_regression() -> None:
    found = sum(diff_profiles(log(noisy(s)), log(noisy(s + 1000)), 0.05).has_regression for s in range(60))
    assert found <= 3


def test_a_slower_log_is_found() -> None:
    found = [diff_profiles(log(noisy(s)), log(noisy(s + 1000, 1200.0)), 0.05) for s in range(20)]
    assert all(each.has_regression for each in found)
    assert not diff_profiles(log(noisy(1, 1200.0)), log(noisy(2)), 0.05).has_regression


def test_few_executions_are_no_proof() -> None:
    found = diff_profiles(log(noisy(1)[:3]), log(noisy(2, 9000.0)[:3]), 0.05)
    assert {change.verdict for change in found.whole} == {"too few"} and not found.has_regression


def test_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="no execution"):
        diff_profiles(log(noisy(1)), ProfilingLog("y.log", ()), 0.05)


def test_nodes() -> None:
    nodes = node_times(log(np.array([10.0, 20.0, 30.0])))
    assert [(n.name, n.unit, n.typical) for n in nodes] == [
        ("conv", "cycles", 20000),
        ("relu", "cycles", 500),
    ]
    assert by_source(nodes)[0].name == "conv"


def test_chrome_trace() -> None:
    trace = json.loads(json.dumps(chrome_trace(log(np.array([10.0, 20.0])))))
    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    calls = [bar for bar in bars if bar["name"] == "EXECUTE g"]
    assert [bar["dur"] for bar in calls] == [10, 20] and "PC" in trace["otherData"]["note"]
    nodes = [bar for bar in bars if bar["name"].startswith(("conv", "relu"))]
    assert len(nodes) == 4
    assert sum(bar["dur"] for bar in nodes) == pytest.approx(30, abs=0.01)


def test_perfetto_trace_parses_back() -> None:
    module = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = module.Trace()
    trace.ParseFromString(perfetto_trace(log(np.array([10.0, 20.0]))))
    names = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    begun = [p for p in trace.packet if p.HasField("track_event") and p.track_event.type == 1]
    ended = [p for p in trace.packet if p.HasField("track_event") and p.track_event.type == 2]
    assert len(begun) == len(ended) == 2 * (1 + 1 + 2)
    assert {names[p.track_event.track_uuid] for p in begun} == {"calls", "QNN (execute) time", "nodes"}
    assert [p.timestamp for p in begun if p.track_event.name == "EXECUTE g"] == [0, 2_000_000]
