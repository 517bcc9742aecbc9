"""Planted faults: the debugger finds the layer and the cause, and finds nothing where nothing is wrong."""

from __future__ import annotations

import pytest

from openqnn.analysis.accuracy.debug import debug_accuracy
from tests.analysis.accuracy.faults import MODELS, plant, source_of, subject_of
from tests.analysis.accuracy.faults_page import SEEDS, examined, measured, table, verdict_on


@pytest.mark.parametrize("seed", range(9))
def test_a_fault_of_each_kind_is_found_in_a_small_network(seed: int) -> None:
    subject = subject_of("mtcnn_onet", 3)
    planted = plant(subject, seed)
    report = examined(subject, planted)
    verdict = verdict_on(report, planted)
    assert (verdict["place"], verdict["cause"]) == (0, True), (planted.kind, report.layers[0])


@pytest.mark.parametrize("model", ["mnist_conv", "mtcnn_onet"])
def test_without_a_fault_nothing_is_broken(model: str) -> None:
    subject = subject_of(model, 3)
    report = debug_accuracy(subject.real, subject.fixed, subject.samples)
    assert not report.broken
    assert report.exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_twenty_five_faults_in_each_network(model: str) -> None:
    """`python -m tests.analysis.accuracy.faults_page --write` writes the same as a table."""
    if source_of(model) is None:
        pytest.skip(f"{model} is not exported: benchmarks/export_efficientnet.py")
    healthy, *found = measured(model, range(SEEDS), set())
    assert not healthy["broken"]
    missed = [r for r in found if not r["cause"]]
    assert sum(r["place"] == 0 for r in found) >= 0.95 * SEEDS, missed
    assert sum(r["place"] < 3 for r in found) >= 0.99 * SEEDS, missed
    assert sum(r["cause"] for r in found) >= 0.85 * SEEDS, missed


def test_the_table_counts_what_was_found() -> None:
    records = [{"model": "a", "seed": -1, "layers": 9, "broken": []}]
    records += [{"model": "a", "seed": i, "kind": "half", "place": i, "cause": i == 0} for i in range(4)]
    said = table(records)
    assert "| a | 9 | 0 | 4 | 1 | 3 | 1 |" in said
    assert said.endswith("Kinds: half 4. Missed: a 1 (half), a 2 (half), a 3 (half).")
