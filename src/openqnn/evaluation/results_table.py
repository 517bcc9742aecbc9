"""The table of results: metrics-info.csv with the columns that QNN users know, and the record for JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from openqnn.evaluation.comparators import Comparator
from openqnn.evaluation.evaluate_model import SUCCESS, Row
from openqnn.evaluation.inference import QNN

COLUMNS = (
    "Inference schema", "Status", "Precision", "Backend", "Backend extensions", "CLI Params", "Metrics",
    "Comparator",
)  # fmt: skip
NONE = "-"
REFERENCE = "reference"


def results_csv(rows: Sequence[Row], comparator: Comparator | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(result_cells(row, comparator) for row in rows)
    return text.getvalue()


def result_cells(row: Row, comparator: Comparator | None) -> list[str]:
    """The cells of one row, several lines each."""
    inference = row.inference
    return [
        inference.label if not inference.tag else f"{inference.label} ({inference.tag})",
        row.status if row.status == SUCCESS else f"{row.status}: {first_line(row.message)}",
        inference.precision,
        inference.backend_words if inference.engine == QNN else NONE,
        _pairs(inference.extensions) or NONE,
        _params(row) or NONE,
        "\n".join(f"{name}: {number(value)}" for name, value in row.metrics.items()) or NONE,
        compared_words(row, comparator),
    ]


def compared_words(row: Row, comparator: Comparator | None) -> str:
    if row.is_reference:
        return REFERENCE
    if comparator is None or not row.outputs:
        return NONE
    lines = [f"{comparator.title}: {number(row.overall)}"]
    return "\n".join(lines + [f"(avg) {name}: {number(value)}" for name, value in row.outputs.items()])


def first_line(message: str) -> str:
    return message.splitlines()[0] if message else ""


def number(value: float) -> str:
    return f"{value:.6g}" if isfinite(value) else str(value)


def _pairs(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name}:{value}" for name, value in values.items())


def _params(row: Row) -> str:
    inference = row.inference
    groups = (
        ("Converter params", inference.params), ("Contextbin params", inference.contextbin),
        ("Netrun params", inference.netrun),
    )  # fmt: skip
    shown = ((title, " ".join(f"{n}:{v}" for n, v in sorted(p.items()))) for title, p in groups if p)
    return "\n".join(f"{title}: {words}" for title, words in shown)


def results_record(name: str, rows: Sequence[Row], comparator: Comparator | None) -> dict[str, Any]:
    """The results for JSON, with numbers as numbers."""
    return {
        "model": name,
        "comparator": comparator.name if comparator is not None else None,
        "rows": [_record(row) for row in rows],
    }


def _record(row: Row) -> dict[str, Any]:
    return {
        "schema": row.inference.label,
        "tag": row.inference.tag,
        "status": row.status,
        "precision": row.inference.precision,
        "backend": row.inference.backend_words,
        "params": dict(row.inference.params),
        "overall": _finite(row.overall),
        "outputs": {name: _finite(value) for name, value in row.outputs.items()},
        "metrics": {name: _finite(value) for name, value in row.metrics.items()},
        "megabytes_moved": _finite(row.cost),
        "reference": row.is_reference,
        "message": row.message,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if isfinite(value) else None
