"""What `openqnn debug` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table
from openqnn.cli.report_quantization import shown_decibels

if TYPE_CHECKING:
    from openqnn.analysis.accuracy.debug_report import DebugReport

ERRORS = ("added", "isolated", "entire", "only", "without")


def print_debug(report: DebugReport, most: int) -> None:
    """The outputs, the most suspicious layers, and what to do about them."""
    out = console()
    outputs = table("output", "SQNR", "cosine", right=("SQNR", "cosine"))
    for each in report.outputs:
        outputs.add_row(escape(each.name), shown_decibels(each.sqnr), f"{each.cosine:.6f}")
    out.print(outputs)
    rows = table("", "layer", "op", "type", *ERRORS, "cause", right=("", *ERRORS))
    for layer in report.layers[:most]:
        numbers = [getattr(layer, name) for name in ERRORS]
        causes = ", ".join(dict.fromkeys(f.cause.id for f in layer.findings))
        rows.add_row(
            f"{layer.rank}{'!' if layer.broken else ''}", escape(layer.tensor), layer.op, layer.type,
            *("" if n is None else shown_decibels(n) for n in numbers), causes,
        )  # fmt: skip
    out.print(rows)
    for layer in report.broken[:most]:
        first = layer.findings[0]
        out.print(
            f"[bold]{escape(layer.tensor)}[/bold]: {escape(first.cause.title)} ({escape(first.tensor)})"
        )
        out.print(f"  {escape(first.detail)}\n  remedy: {escape(first.cause.remedy)}")
    if not report.broken:
        layers = len(report.layers)
        out.print(f"No layer is broken: none of the {layers} adds more error than its width explains.")
    for note in report.notes:
        out.print(f"note: {escape(note)}")
    if not report.complete:
        out.print("interrupted: figures are of the samples until then")
