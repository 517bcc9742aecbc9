"""openqnn diff: what differs between two graphs."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.options.diagnose import DiffOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps

if TYPE_CHECKING:
    from openqnn.analysis.diff import Diff


def run_diff(arguments: Namespace) -> Report:
    """0 when they are equal, 1 when not."""
    from openqnn.analysis.diff import diff_nets
    from openqnn.analysis.sources import read_net

    options = read_options(arguments, DiffOptions)
    first, second = (
        read_net(path, options.graph, options.settings()) for path in (options.first, options.second)
    )
    found = diff_nets(first, second, options.tolerance)
    differences = [dataclasses.asdict(each) for each in found.differences]
    record = {"equal": found.equal, "differences": differences, "renamed": found.renamed}
    return Report(record, lambda: print_diff(found), int(not found.equal))


def print_diff(found: Diff) -> None:
    from rich.markup import escape  # takes a while to import

    from openqnn.cli.report import console, table

    out = console()
    if found.differences:
        rows = table("what", "change", "name", "detail")
        for each in found.differences:
            rows.add_row(each.kind, each.change, escape(each.name), escape(each.detail))
        out.print(rows)
        out.print()
    same = f"{found.matched} nodes matched, {len(found.renamed)} of them under another name"
    out.print(f"{'equal' if found.equal else f'{len(found.differences)} differences'}: {same}.")


COMMAND = Command(
    "diff",
    "Tell what differs between two graphs: nodes, parameters, constants, inputs and outputs.",
    (DiffOptions, OwnOps),
    run_diff,
    examples=(
        "openqnn diff before.dlc after.dlc",
        "openqnn diff model.onnx model.dlc --tolerance 1e-6",
    ),
)
