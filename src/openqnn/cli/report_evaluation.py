"""What `openqnn evaluate` and qnn-accuracy-evaluator print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table
from openqnn.evaluation.evaluate_model import SUCCESS
from openqnn.evaluation.results_table import COLUMNS, result_cells

if TYPE_CHECKING:
    from openqnn.cli.shared.evaluation_request import Evaluated


def print_evaluation(found: Evaluated) -> None:
    """The table of one model, the best first, with what went wrong below it."""
    rows = table(*COLUMNS)
    for row in found.rows:
        rows.add_row(*(escape(cell) for cell in result_cells(row, found.comparator)))
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
