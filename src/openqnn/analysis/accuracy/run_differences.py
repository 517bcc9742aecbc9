"""Differences of two runs of a network, node by node: how far their tensors are apart, and their times."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.analysis.accuracy.tensor_folder import TensorFolder
from openqnn.analysis.accuracy.verification import NodeInfo, Row, VerifierPlan, verify, write_verification
from openqnn.analysis.accuracy.verifiers import PERFECT_DB, ChosenVerifier
from openqnn.analysis.profile_nodes import NodeTime, node_times
from openqnn.errors import InputError
from openqnn.formats.atomic import replacing
from openqnn.formats.profiling_log import read_profiling_log

SHARES = ("RtolAtol", "AdjustedRtolAtol")  # their values are per cent of the elements
LIKENESS = ("CosineSimilarity", "TopK", "MeanIOU")  # 1 is no error
LOGS = ("qnn-profiling-data.log", "qnn-profiling-data_0.log")


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """What a run left: a folder with one for each sample, or with the tensors themselves, and its log."""

    folder: Path
    log: Path | None = None

    def samples(self) -> list[Path]:
        found = [p for p in self.folder.glob("Result_*") if p.is_dir() and p.name[7:].isdecimal()]
        return sorted(found, key=lambda p: int(p.name[7:])) or [self.folder]

    def times(self) -> dict[str, NodeTime]:
        log = self.log or next((p for n in LOGS if (p := self.folder / n).is_file()), None)
        return {} if log is None else {node.name: node for node in node_times(read_profiling_log(log))}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Beyond what a difference counts: shares, of elements or of the first run's time."""

    accuracy: float = 0.01
    performance: float = 0.01


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """One node. `errors` are those of its tensors, sample by sample; `time` is the share of the time."""

    node: str
    op: str
    errors: Mapping[str, tuple[float, ...]]
    first: float | None
    second: float | None
    unit: str
    thresholds: Thresholds

    @property
    def time(self) -> float | None:
        if self.first is None or self.second is None:
            return None
        if not self.first:
            return 0.0 if not self.second else math.inf
        return abs(self.second - self.first) / self.first

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which of accuracy and performance differ."""
        found = (error for errors in self.errors.values() for error in errors)
        differs = any(not error <= self.thresholds.accuracy for error in found)  # what is no number does, too
        accuracy = ("accuracy",) if differs else ()
        return (*accuracy, "performance") if (self.time or 0.0) > self.thresholds.performance else accuracy

    def lines(self, verifier: str) -> list[str]:
        """What the node panel says."""
        found = [] if self.time is None else [f"execute performance: {100 * self.time:.3f} %"]
        if self.first is not None and self.second is not None:
            found.append(f"execute times: {self.first:,.6g} and {self.second:,.6g} {self.unit}")
        for tensor, errors in self.errors.items():
            found += [f"{tensor} Run {i}: {error_words(e, verifier)}" for i, e in enumerate(errors, 1)]
        return found

    def record(self, verifier: str) -> dict[str, Any]:
        return {
            "node": self.node, "op": self.op, "kinds": list(self.kinds), "lines": self.lines(verifier),
            "errors": {name: [_finite(e) for e in errors] for name, errors in self.errors.items()},
            "time": _finite(self.time),
        }  # fmt: skip


def error_of(value: float, verifier: str) -> float:
    """A verifier's value as an error: 0 is none, and for what is relative 1 is everything."""
    if verifier in SHARES:
        return value / 100.0
    if verifier in LIKENESS:
        return abs(1.0 - value)
    if verifier == "SQNR":
        return 0.0 if value >= PERFECT_DB else 10.0 ** (-value / 20.0)
    return abs(value)


def error_words(error: float, verifier: str) -> str:
    """Errors of absolute measures have no per cent."""
    if verifier in (*SHARES, *LIKENESS, "SQNR"):
        return f"{float(f'{100 * error:.6g}')}% Error"
    return f"{error:.6g} {verifier}"


def compare_runs(
    runs: tuple[RunOutputs, RunOutputs],
    graph: Mapping[str, NodeInfo],
    makers: Mapping[str, tuple[str, str]],
    verifier: ChosenVerifier,
    thresholds: Thresholds,
    mapping: Mapping[str, str],
    report: Path,
    tensors: tuple[str, ...] = (),
) -> list[NodeDifference]:
    """A record for each node that both runs tell of; reports of the verifier go into `report`.

    `makers` says which node, of which op, a tensor comes from; `tensors` are those that a verifier of several
    takes together, and the only ones that it says something of.
    """
    plan = VerifierPlan([], [(verifier, tensors)]) if tensors else VerifierPlan([verifier])
    errors: dict[str, list[float]] = {}
    for number, (golden, found) in enumerate(_pairs(runs), 1):
        rows = verify(TensorFolder(golden), TensorFolder(found), plan, mapping, graph)
        if tensors and not any(tensors[0] in (row.name, row.golden) for row in rows):
            raise InputError(f"there is no tensor {tensors[0]} in both runs", hint="Boxes Tensor names one")
        write_verification(report / f"Run_{number}", rows, [verifier.name], extremes=True)
        for row in rows if not tensors else [r for r in rows if tensors[0] in (r.name, r.golden)]:
            errors.setdefault(row.name, []).append(_error(row, verifier))
    return _nodes(errors, makers, (runs[0].times(), runs[1].times()), thresholds)


def _pairs(runs: tuple[RunOutputs, RunOutputs]) -> list[tuple[Path, Path]]:
    """Samples of both; a golden set for one sample is held against the first."""
    first, second = (run.samples() for run in runs)
    return list(zip(first, second, strict=False))


def _error(row: Row, verifier: ChosenVerifier) -> float:
    key = verifier.name.lower()
    if key not in row.values:
        raise InputError(f"{row.name}: {'; '.join(row.notes) or 'no value'}")
    return error_of(row.values[key], verifier.name)


def _nodes(
    errors: Mapping[str, Sequence[float]],
    makers: Mapping[str, tuple[str, str]],
    times: tuple[Mapping[str, NodeTime], Mapping[str, NodeTime]],
    thresholds: Thresholds,
) -> list[NodeDifference]:
    grouped: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {}
    for tensor, found in errors.items():
        grouped.setdefault(makers.get(tensor, (tensor, "")), {})[tensor] = tuple(found)
    for node, op in dict.fromkeys(makers.values()):
        if node in times[0] and node in times[1]:
            grouped.setdefault((node, op), {})
    return [_node(key, found, times, thresholds) for key, found in grouped.items()]


def _node(
    key: tuple[str, str],
    errors: Mapping[str, tuple[float, ...]],
    times: tuple[Mapping[str, NodeTime], Mapping[str, NodeTime]],
    thresholds: Thresholds,
) -> NodeDifference:
    first, second = (each.get(key[0]) for each in times)
    if first is None or second is None or first.unit != second.unit:
        return NodeDifference(*key, errors, None, None, "", thresholds)
    return NodeDifference(*key, errors, first.typical, second.typical, first.unit, thresholds)


def counts_differ(runs: tuple[RunOutputs, RunOutputs]) -> str:
    """The sentence about samples that only one side has; "" where both have as many."""
    first, second = (len(run.samples()) for run in runs)
    if first == second:
        return ""
    return f"there are {first} samples and {second}: the first {min(first, second)} of both are compared"


def units_differ(runs: tuple[RunOutputs, RunOutputs]) -> str:
    """The sentence about times that cannot be compared; "" where they can."""
    units = [sorted({node.unit for node in run.times().values()}) for run in runs]
    if not all(units):
        which = [f"run {i}" for i, unit in enumerate(units, 1) if not unit]
        return f"no times of nodes were measured in {' and '.join(which)}: performance is not compared"
    if units[0] != units[1]:
        return f"times are in {units[0][0]} and in {units[1][0]}: performance is not compared"
    return ""


def write_differences(folder: Path, nodes: Sequence[NodeDifference], verifier: str) -> None:
    """accuracy.csv with a column for each run, and performance.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = max((len(e) for node in nodes for e in node.errors.values()), default=0)
    head = ["node", "op", "tensor", *(f"Run {i + 1} ({verifier})" for i in range(runs)), "differs"]
    rows = [
        [n.node, n.op, tensor, *errors, *[""] * (runs - len(errors)), "accuracy" in n.kinds]
        for n in nodes
        for tensor, errors in n.errors.items()
    ]
    _write(folder / "accuracy.csv", head, rows)
    timed = [[n.node, n.op, n.first, n.second, n.unit, n.time, "performance" in n.kinds] for n in nodes]
    head = ["node", "op", "first", "second", "unit", "difference", "differs"]
    _write(folder / "performance.csv", head, [row for row in timed if row[5] is not None])


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
