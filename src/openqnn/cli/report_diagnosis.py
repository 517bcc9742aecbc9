"""What doctor, check, reduce, diff and context check print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table

if TYPE_CHECKING:
    from openqnn.analysis.doctor import Diagnosis


def print_diagnosis(found: Diagnosis) -> None:
    rows = table("what", "name", "status", "version", "detail")
    for item in found.items:
        detail = [item.detail, f"-> {item.hint}" if item.hint else "", item.path]
        text = "\n".join(escape(line) for line in detail if line)
        rows.add_row(item.kind, escape(item.name), item.status, escape(item.version), text)
    out = console()
    out.print(rows)
    broken = sum(item.status == "broken" for item in found.items)
    missing = sum(item.status == "missing" for item in found.items)
    verdict = "OpenQNN works here" if found.ok else "OpenQNN does not work here"
    out.print(f"\n{verdict}; {missing} missing, {broken} broken.")
