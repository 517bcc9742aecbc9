"""What the commands print: tables on stdout, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from openqnn.cli.streams import behind, harmless_text

if TYPE_CHECKING:
    from openqnn.analysis.summary import Summary
    from openqnn.api.convert import Report
    from openqnn.ir import Array
    from openqnn.passes import Explain


class _Table(Table):
    """A table whose cells are harmless. Where it is narrower than its longest words it shows row by row."""

    def add_row(self, *cells: Any, **settings: Any) -> None:
        super().add_row(*(harmless_text(c) if isinstance(c, str) else c for c in cells), **settings)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        spans = [self._measure_column(console, options, column) for column in self.columns]
        free = options.max_width - self._extra_width - sum(span.minimum for span in spans)
        if free < 0 and len(spans) > 1:
            yield from self._row_by_row(options.max_width)
            return
        wanted = sum(span.span for span in spans)
        if (
            0 <= free < wanted
        ):  # lines are broken between words: each column gets its longest word, and a share
            for index, (column, span) in enumerate(zip(self.columns, spans, strict=True)):
                content = span.minimum - self._get_padding_width(index)
                column.width = content + free * span.span // wanted
        yield from super().__rich_console__(console, options)

    def _row_by_row(self, width: int) -> RenderResult:
        """The first column on a line of its own, the others below it, each behind its header."""
        headers = [str(column.header) for column in self.columns]
        for row in zip(*(column._cells for column in self.columns), strict=True):
            first = Text.from_markup(str(row[0]), style="bold")
            yield first
            line = Text("  ")
            for header, cell in zip(headers[1:], row[1:], strict=True):
                value = Text.from_markup(str(cell))
                if not value.plain.strip():
                    continue
                pair = Text.assemble((f"{header} ", "dim"), value)
                if line.plain.strip() and line.cell_len + pair.cell_len + 2 > width:
                    yield line
                    line = Text("  ")
                line = Text.assemble(line, "  " if line.plain.strip() else "", pair)
            if line.plain.strip():
                yield line


class _Console(Console):
    """A console whose lines are harmless: colours are the console's own."""

    def print(self, *objects: Any, **settings: Any) -> None:
        super().print(*(harmless_text(o) if isinstance(o, str) else o for o in objects), **settings)


def console(file: TextIO | None = None) -> Console:
    """Tables keep their width when the output is a file or a pipe."""
    target = behind(file or sys.stdout)
    return _Console(file=target, width=None if target.isatty() else 160, soft_wrap=False, highlight=False)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    made = _Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def print_check(report: Report) -> None:
    rows = table("op", "nodes", "result", "reason", "first at", right=("nodes",))
    for op, count in sorted(report.supported.items()):
        rows.add_row(escape(op), str(count), "supported")
    groups: dict[tuple[str, str], list[Any]] = {}
    for p in report.problems:
        groups.setdefault((p.op, p.reason), []).append(p)
    for (op, reason), members in groups.items():
        rows.add_row(escape(op), str(len(members)), "not supported", escape(reason), escape(members[0].node))
    out = console()
    out.print(rows)
    good, bad = sum(report.supported.values()), len(report.problems)
    out.print(
        f"\n{good} nodes supported, {bad} not."
        + (
            ""
            if report.ok
            else " What reads the results of these is judged as far as types and shapes are known."
        )
    )


def print_unused(report: Report) -> None:
    if report.unused_inputs:
        console().print(f"inputs that nothing reads: {escape(', '.join(report.unused_inputs))}")


def print_problems(report: Report) -> None:
    """Message by message, each with the place and what to do."""
    out = console()
    for p in report.problems:
        hint = f"\n  hint: {escape(p.hint)}" if p.hint else ""
        out.print(f"{escape(p.op)} '{escape(p.node)}': {escape(p.reason)}{hint}")
    out.print(f"{sum(report.supported.values())} nodes supported, {len(report.problems)} not.")


def print_summary(summary: Summary) -> None:
    out = console()
    out.print(f"graph {escape(summary.name)}")
    for kind, values in (("input ", summary.inputs), ("output", summary.outputs)):
        for value in values:
            out.print(f"  {kind} {escape(value)}")
    rows = table("op", "count", "parameters", "MACs", right=("count", "parameters", "MACs"))
    for row in summary.rows:
        rows.add_row(row.op, str(row.count), f"{row.parameters:,}", f"{row.macs:,}")
    total = sum(r.count for r in summary.rows)
    rows.add_row("total", str(total), f"{summary.parameters:,}", f"{summary.macs:,}", style="bold")
    out.print(rows)
    out.print(f"parameters {summary.parameter_bytes:,} bytes")
    out.print(f"activations {summary.activation_bytes:,} bytes at most")


def print_results(results: Mapping[str, Array], paths: Mapping[str, Path]) -> None:
    rows = table("output", "type", "shape", "min", "max", "mean", "file", right=("min", "max", "mean"))
    for name, array in results.items():
        numbers = array.astype(np.float64) if array.size else np.zeros(1)
        stats = [f"{v:.6g}" for v in (numbers.min(), numbers.max(), numbers.mean())]
        rows.add_row(
            escape(name), str(array.dtype), "x".join(map(str, array.shape)), *stats, escape(str(paths[name]))
        )
    console().print(rows)


def print_explanation(explain: Explain, file: TextIO | None = None) -> None:
    out = console(file)
    for event in explain.events:
        out.print(escape(str(event)))
