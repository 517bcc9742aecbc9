"""The debug report: every layer with its errors, statistics and causes, ranked; as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from openqnn.analysis.accuracy.attribution import Attribution
from openqnn.analysis.accuracy.causes import Finding
from openqnn.analysis.accuracy.diagnose import Diagnosis
from openqnn.analysis.accuracy.layer_errors import Measured, ends_of
from openqnn.ir import Graph, Value

COLUMNS = (
    "rank", "tensor", "op", "node", "source", "type", "broken", "cause", "detail", "remedy", "added_db",
    "isolated_db", "entire_db", "encoding_db", "weights_db", "only_db", "without_db", "cosine", "range_low",
    "range_high", "min", "max", "mean", "std", "p1", "p50", "p99", "clipped", "nan", "infinite", "dims",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer. Errors are signal to noise ratios in dB: `added` is its own share, `only` what the outputs
    have left where it alone computes in fixed point, `without` where all others do."""

    rank: int
    place: int
    tensor: str
    op: str
    node: str
    source: str
    type: str
    dims: tuple[int, ...]
    broken: bool
    findings: tuple[Finding, ...]
    entire: float
    isolated: float
    added: float
    encoding: float
    weights: float
    cosine: float
    statistics: Mapping[str, float]
    range: tuple[float, float] | None
    counts: tuple[int, ...]
    only: float | None = None
    without: float | None = None


@dataclass(frozen=True, slots=True)
class OutputError:
    name: str
    sqnr: float
    cosine: float


@dataclass(frozen=True, slots=True)
class DebugReport:
    """Layers in the order of suspicion. `fused` are tensors of the source that exist only inside a layer."""

    name: str
    samples: int
    outputs: tuple[OutputError, ...]
    layers: tuple[LayerReport, ...]
    fused: tuple[str, ...]
    complete: bool = True
    notes: tuple[str, ...] = ()
    confirmed: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def broken(self) -> tuple[LayerReport, ...]:
        return tuple(layer for layer in self.layers if layer.broken)

    @property
    def exit_code(self) -> int:
        return 1 if self.broken else 0


def make_report(
    graph: Graph,
    measured: Measured,
    diagnoses: Sequence[Diagnosis],
    attribution: Attribution,
    notes: Sequence[str] = (),
) -> DebugReport:
    pairing = measured.pairing
    places = {layer.name: index for index, layer in enumerate(pairing.layers)}
    layers = tuple(
        _layer(rank, places, d, pairing.fixed[d.tensor], attribution) for rank, d in enumerate(diagnoses, 1)
    )
    outputs = tuple(
        OutputError(v.name, t.decibels(t.entire), t.cosine)
        for v in graph.outputs
        if (t := measured.tallies.get(v.name)) is not None and t.count
    )
    return DebugReport(
        graph.name, measured.samples, outputs, layers, pairing.fused, measured.complete, tuple(notes)
    )


def _layer(
    rank: int, places: Mapping[str, int], diagnosis: Diagnosis, value: Value, attribution: Attribution
) -> LayerReport:
    tally, layer = diagnosis.tally, diagnosis.layer
    statistics = {
        "min": tally.low, "max": tally.high, "mean": tally.mean, "std": tally.std,
        "p1": tally.percentile(0.01), "p50": tally.percentile(0.5), "p99": tally.percentile(0.99),
        "clipped": (tally.below + tally.above) / max(tally.count, 1), "nan": tally.nan,
        "infinite": tally.infinite, "kurtosis": tally.kurtosis,
    }  # fmt: skip
    coded = value.encoding is not None and value.encoding.axis is None
    return LayerReport(
        rank, places[layer.name], diagnosis.tensor, layer.op, layer.node, layer.source, value.dtype.label,
        value.shape, diagnosis.broken, diagnosis.findings, tally.decibels(tally.entire),
        tally.decibels(tally.isolated), tally.decibels(tally.added), tally.decibels(tally.own),
        tally.decibels(tally.weight), tally.cosine, statistics, ends_of(value) if coded else None,
        tuple(int(c) for c in tally.counts), attribution.only.get(layer.name),
        attribution.without.get(layer.name),
    )  # fmt: skip


def report_csv(report: DebugReport) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for layer in report.layers:
        writer.writerow([_cell(value) for value in _row(layer).values()])
    return text.getvalue()


def _row(layer: LayerReport) -> dict[str, Any]:
    first = layer.findings[0] if layer.findings else None
    low, high = layer.range or (None, None)
    told = {
        "rank": layer.rank, "tensor": layer.tensor, "op": layer.op, "node": layer.node,
        "source": layer.source, "type": layer.type, "broken": layer.broken,
        "cause": first.cause.id if first else "", "detail": first.detail if first else "",
        "remedy": first.cause.remedy if first else "", "added_db": layer.added,
        "isolated_db": layer.isolated, "entire_db": layer.entire, "encoding_db": layer.encoding,
        "weights_db": layer.weights, "only_db": layer.only, "without_db": layer.without,
        "cosine": layer.cosine, "range_low": low, "range_high": high, **layer.statistics,
        "dims": "x".join(map(str, layer.dims)),
    }  # fmt: skip
    return {name: told[name] for name in COLUMNS}


def _cell(value: Any) -> Any:
    return f"{value:.7g}" if isinstance(value, float) else "" if value is None else value


def report_json(report: DebugReport) -> str:
    """The record as JSON: what is infinite is null, and exact errors are named so."""
    return json.dumps(_finite(report_record(report)), indent=1)


def report_record(report: DebugReport) -> dict[str, Any]:
    """All of the report."""
    layers = [
        {
            **{k: v for k, v in _row(layer).items() if k not in ("cause", "detail", "remedy", "dims")},
            "dims": list(layer.dims),
            "exact": layer.added == float("inf"),
            "findings": [f.record() for f in layer.findings],
        }
        for layer in report.layers
    ]
    return {
        "model": report.name,
        "samples": report.samples,
        "complete": report.complete,
        "notes": list(report.notes),
        "outputs": [{"name": o.name, "sqnr_db": o.sqnr, "cosine": o.cosine} for o in report.outputs],
        "broken": [layer.tensor for layer in report.broken],
        "confirmed_db": dict(report.confirmed),
        "layers": layers,
        "fused": list(report.fused),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
