"""What doctor, check, reduce, diff and context check print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from openqnn.cli.report import console, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openqnn.analysis.bug_report import Bundle
    from openqnn.analysis.context_check import ContextReport
    from openqnn.analysis.context_summary import ContextSummary
    from openqnn.analysis.doctor import Diagnosis
    from openqnn.analysis.half_precision import HalfProblem
    from openqnn.analysis.reduce_net import Reduced
    from openqnn.analysis.validation import Matrix, Validation

MOST_HALVES = 10


def print_diagnosis(found: Diagnosis) -> None:
    rows = table("what", "name", "status", "version", "detail")
    for item in found.items:
        detail = [item.detail, f"-> {item.hint}" if item.hint else "", item.path]
        text = "\n".join(escape(line) for line in detail if line)
        rows.add_row(item.kind, escape(item.name), item.status, escape(item.version), text)
    out = console()
    out.print(rows)
    broken = [item.name for item in found.items if item.status == "broken"]
    missing = sum(item.status == "missing" for item in found.items)
    verdict = "OpenQNN works here" if found.ok else "OpenQNN does not work here"
    names = f": {escape(', '.join(broken))}" if broken else ""
    out.print(f"\n{verdict}; {missing} missing, {len(broken)} broken{names}.")


def print_validation(found: Validation) -> None:
    """The nodes that the library refuses; one line where there are none."""
    out = console()
    if found.refused:
        rows = table("node", "op", "source", "reason", "what to do")
        for each in found.refused:
            rows.add_row(
                *(escape(cell) for cell in (each.node, each.op, each.source, each.reason, each.hint))
            )
        out.print(rows)
        out.print()
    where = f"{found.library} for {found.target}" if found.target else found.library
    taken = found.nodes - len(found.refused)
    out.print(f"{escape(where)}: {taken} of {found.nodes} nodes taken, {len(found.refused)} refused.")
    if found.warning:
        out.print(f"warning: {escape(found.warning)}")


def print_half_problems(found: Sequence[HalfProblem]) -> None:
    """The nodes whose numbers HTP's floats cannot hold, the first ones first."""
    out = console()
    for each in found[:MOST_HALVES]:
        out.print(f"half precision: {escape(str(each))}")
    if len(found) > MOST_HALVES:
        out.print(f"half precision: and {len(found) - MOST_HALVES} more")


def print_matrix(matrix: Matrix) -> None:
    """A row per op: how many nodes each backend takes, and how many it refuses."""
    names = list(matrix.columns)
    rows = table("op", *names, right=tuple(names))
    for op in matrix.ops:
        rows.add_row(escape(op), *(_cell(matrix.columns[name], op) for name in names))
    out = console()
    out.print(rows)
    for name, reason in matrix.missing.items():
        out.print(f"{name}: {escape(reason)}")
    reasons = {(r.op, r.reason): name for name, column in matrix.columns.items() for r in column.refused}
    for (op, reason), name in reasons.items():
        out.print(f"{escape(op)} on {name}: {escape(reason)}")
    for name, column in matrix.columns.items():
        if column.warning:
            out.print(f"{name}: {escape(column.warning)}")
    out.print(
        "\nCells: nodes taken, and refused ones after a slash. A graph for HTP is put in HTP's forms first."
    )


def _cell(column: Validation, op: str) -> str:
    count, refused = column.counts.get(op, 0), column.refused_of(op)
    if not count and not refused:
        return "-"
    return f"{count - refused}/{refused} refused" if refused else f"{count}"


def print_reduced(reduced: Reduced, bundle: Bundle) -> None:
    out = console()
    rows = table("node", "op", "source")
    for node in reduced.net.nodes:
        rows.add_row(escape(node.name), escape(node.op), escape(node.source))
    out.print(rows)
    out.print(f"\n{escape(reduced.failure.message)}", soft_wrap=True)
    left = len(reduced.net.nodes)
    counts = f"{left} of {reduced.nodes_before} nodes"
    out.print(f"\n{counts} still fail in the same way ({reduced.trials} trials).")
    if not reduced.complete:
        out.print("The time was over before everything had been tried: --max_time allows more.")
    for path in bundle.files:
        out.print(f"  wrote {escape(str(path))}")
    for name, reason in bundle.missing.items():
        out.print(f"  no {escape(name)}: {escape(reason)}", soft_wrap=True)


def print_context(summary: ContextSummary) -> None:
    """What is in a context binary."""
    out = console()
    target = f", compiled for {summary.target}" if summary.target else ""
    version = f" by QNN {summary.build_id}" if summary.build_id else f" (API {summary.core_api})"
    out.print(f"context binary for {summary.backend}{version}{escape(target)}, {summary.bytes:,} bytes")
    for graph in summary.graphs:
        out.print(f"graph {escape(graph.name)}")
        for kind, values in (("input ", graph.inputs), ("output", graph.outputs)):
            for value in values:
                out.print(f"  {kind} {escape(value)}")
        for setting, value in graph.settings.items():
            out.print(f"  {setting} {value}")


def print_context_report(path: str, report: ContextReport) -> None:
    rows = table("what", "result", "detail")
    for finding in report.findings:
        text = "\n".join(filter(None, [finding.detail, f"-> {finding.hint}" if finding.hint else ""]))
        rows.add_row(finding.what, finding.level, escape(text))
    out = console()
    out.print(rows)
    verdict = "nothing speaks against loading it" if report.ok else "it will not load"
    out.print(f"\n{escape(path)}: {verdict}.", soft_wrap=True)
