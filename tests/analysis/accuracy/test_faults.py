"""Planted faults: the debugger finds the layer and the cause, and finds nothing where nothing is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from openqnn.analysis.accuracy.debug import debug_accuracy
from openqnn.analysis.accuracy.debug_report import DebugReport
from tests.analysis.accuracy.faults import MODELS, Planted, Subject, plant, subject_of

SEEDS = 25  # for each of eight models


@dataclass(frozen=True)
class Verdict:
    first: bool
    among_three: bool
    cause: bool


def examined(subject: Subject, planted: Planted) -> DebugReport:
    return debug_accuracy(planted.real, planted.fixed, subject.samples, attribution=False)


def verdict_on(report: DebugReport, planted: Planted) -> Verdict:
    places = [i for i, layer in enumerate(report.layers) if layer.tensor in planted.tensors]
    place = min(places, default=len(report.layers))
    first = report.layers[0].findings
    cause = place == 0 and bool(first) and first[0].cause.id in planted.causes
    return Verdict(place == 0, place < 3, cause)


@pytest.mark.parametrize("seed", range(9))
def test_a_fault_of_each_kind_is_found_in_a_small_network(seed: int) -> None:
    subject = subject_of("mtcnn_onet", 3)
    planted = plant(subject, seed)
    report = examined(subject, planted)
    assert verdict_on(report, planted) == Verdict(True, True, True), (planted.kind, report.layers[0])


@pytest.mark.parametrize("model", ["mnist_conv", "mtcnn_onet"])
def test_without_a_fault_nothing_is_broken(model: str) -> None:
    subject = subject_of(model, 3)
    report = debug_accuracy(subject.real, subject.fixed, subject.samples)
    assert not report.broken
    assert report.exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_twenty_five_faults_in_each_of_eight_networks(model: str) -> None:
    subject = subject_of(model, 3)
    healthy = debug_accuracy(subject.real, subject.fixed, subject.samples, attribution=False)
    assert not healthy.broken, healthy.broken[0]
    found: list[Verdict] = []
    missed: Counter[str] = Counter()
    for seed in range(SEEDS):
        planted = plant(subject, seed)
        found.append(verdict_on(examined(subject, planted), planted))
        missed[f"{seed} {planted.kind}"] += not (found[-1].first and found[-1].cause)
    counts = {name: sum(getattr(v, name) for v in found) for name in ("first", "among_three", "cause")}
    print(f"{model}: {counts} of {len(found)}, missed: {+missed}")
    assert counts["first"] >= 0.95 * SEEDS
    assert counts["among_three"] >= 0.99 * SEEDS
    assert counts["cause"] >= 0.85 * SEEDS
