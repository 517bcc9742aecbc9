"""What `openqnn evaluate` and qnn-accuracy-evaluator print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table
from openqnn.evaluation.evaluate_model import SUCCESS
from openqnn.evaluation.results_table import COLUMNS, result_cells

if TYPE_CHECKING:
    from openqnn.cli.shared.evaluation_request import Evaluated
    from openqnn.evaluation.comparators import Comparator
    from openqnn.evaluation.evaluate_model import Row


HEAD = ("Inference schema", "Status", "Precision", "Backend", "Metrics", "Comparator")


def print_evaluation(found: Evaluated) -> None:
    """The table of one model, the best first, with what went wrong below it; all columns are in the file."""
    rows = table(*HEAD)
    for row in found.rows:
        rows.add_row(*(escape(cell) for cell in _cells(row, found.comparator)))
    out = console()
    out.print(rows)
    told: set[str] = set()
    for row in found.rows:
        if row.message and row.message not in told:
            told.add(row.message)
            out.print(escape(f"{row.inference.label}: {row.message}"))
    again = sum(row.is_stored for row in found.rows)
    if again:
        out.print(f"{again} of {len(found.rows)} inferences were there from an earlier run")
    best = next((row for row in found.rows if row.status == SUCCESS and not row.is_reference), None)
    if best is not None and len(found.rows) > 1:
        out.print(escape(f"best: {best.inference.label}"))
    out.print(escape(f"{found.folder / 'metrics-info.csv'}, {found.folder / 'metrics-info.html'}"))


def _cells(row: Row, comparator: Comparator | None) -> list[str]:
    by_name = dict(zip(COLUMNS, result_cells(row, comparator), strict=True))
    compared = by_name["Comparator"].splitlines()
    words = compared[0] + (f" ({', '.join(compared[1:])})" if len(compared) > 2 else "")
    metrics = ", ".join(by_name["Metrics"].splitlines())
    return [by_name[name] for name in HEAD[:4]] + [metrics, words.replace("(avg) ", "")]
