"""openqnn profile: what took the time, by the nodes of the source model; and whether two logs differ."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.view_beside import check_beside, write_beside
from openqnn.errors import UsageError
from openqnn.options.field import option, read_options
from openqnn.options.source import batch, dims, input_shapes, shape_settings

if TYPE_CHECKING:
    from openqnn.analysis.profile_diff import Change, ProfileDiff
    from openqnn.analysis.profile_nodes import NodeTime
    from openqnn.formats.profiling_log import ProfilingLog

DIFF = "diff"


def _percent(text: str) -> float:
    import argparse

    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a percentage, such as 5")
    return value / 100


@dataclass(frozen=True)
class ProfileOptions:
    """Logs, and what to make of them."""

    logs: tuple[str, ...] = option(
        (), "logs", nargs="+", metavar="LOG", help="a log or an ONNX Runtime CSV; or: diff LOG LOG"
    )
    model: str = option(
        "", "--model", metavar="FILE", help="the model that was run: nodes are shown by its own names"
    )
    top: int = option(20, "--top", metavar="N", parse=int, help="as many nodes are printed (default: 20)")
    json: bool = option(False, "--json", help="print the result as JSON")
    html: str = option("", "--html", metavar="FILE", help="write a page with a treemap")
    trace: str = option("", "--trace", metavar="FILE", help="write a trace for chrome://tracing")
    perfetto: str = option("", "--perfetto", metavar="FILE", help="write a trace in Perfetto's own form")
    threshold: float = option(
        0.05, "--threshold", metavar="PERCENT", parse=_percent,
        help="diff: changes below it do not count (default: 5)",
    )  # fmt: skip
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = input_shapes()
    dims: tuple[tuple[str, int], ...] = dims()
    batch: int | None = batch()

    @property
    def settings(self) -> dict[str, Any]:
        """What `convert` is told of a model that leaves dimensions open."""
        return shape_settings(self.input_shapes, self.dims, self.batch)


def run_profile(arguments: Namespace) -> Report:
    from openqnn.analysis.profile_nodes import totals
    from openqnn.formats.profiling_log import read_profiling_log

    options = read_options(arguments, ProfileOptions)
    _check_shapes(options)
    if options.logs[0] == DIFF:
        return _run_diff(options)
    if len(options.logs) != 1:
        raise UsageError("one log at a time", hint="openqnn profile diff LOG LOG compares two")
    if options.html:
        check_beside(options.html)
    log = read_profiling_log(options.logs[0])
    nodes = _nodes(log, options)
    _write_files(log, nodes, options)
    record = {
        "log": log.path,
        "executions": totals(log),
        "nodes": [{**dataclasses.asdict(node), "median": node.typical} for node in nodes],
    }
    return Report(record, lambda: _print(log, nodes, options.top))


def _check_shapes(options: ProfileOptions) -> None:
    if not options.model and any(options.settings.values()):
        raise UsageError("--input_shape, --dim and --batch go with --model")


def _nodes(log: ProfilingLog, options: ProfileOptions) -> list[NodeTime]:
    from openqnn.analysis.profile_nodes import by_source, node_times
    from openqnn.analysis.sources import read_net

    if not options.model:
        return node_times(log)
    return by_source(node_times(log, [read_net(options.model, "", options.settings)]))


def _write_files(log: ProfilingLog, nodes: Sequence[NodeTime], options: ProfileOptions) -> None:
    from openqnn.analysis.profile_page import profile_page
    from openqnn.analysis.profile_trace import chrome_trace, perfetto_trace
    from openqnn.formats.atomic import replacing

    if options.html:
        view = _write_view(log, nodes, options)
        with replacing(options.html) as file:
            file.write(profile_page(log, nodes, view).encode("utf-8"))
    if options.trace:
        with replacing(options.trace) as file:
            file.write(json.dumps(chrome_trace(log)).encode("utf-8"))
    if options.perfetto:
        with replacing(options.perfetto) as file:
            file.write(perfetto_trace(log))


def _write_view(log: ProfilingLog, nodes: Sequence[NodeTime], options: ProfileOptions) -> str:
    """The model in the viewer, coloured by what its nodes took, or the log where no model is named."""
    from openqnn.viewer.open_views import open_views
    from openqnn.viewer.readers.profile import profile_view, time_overlays

    if options.model:
        return write_beside(options.html, open_views(options.model, options.settings), time_overlays(nodes))
    return write_beside(options.html, [profile_view(Path(log.path))] if nodes else [])


def _print(log: ProfilingLog, nodes: Sequence[NodeTime], most: int) -> None:
    from rich.markup import escape

    from openqnn.analysis.profile_nodes import totals
    from openqnn.analysis.profile_text import HOST_CYCLES, has_cycles
    from openqnn.cli.report import console, table

    rows = table("execution", "count", "least", "median", "largest")
    for name, values in totals(log).items():
        shown = (min(values), sorted(values)[len(values) // 2], max(values))
        rows.add_row(escape(name), str(len(values)), *(f"{value:,.0f}" for value in shown))
    console().print(rows)
    for unit in dict.fromkeys(node.unit for node in nodes):
        chosen = [node for node in nodes if node.unit == unit]
        total = sum(node.typical for node in chosen) or 1.0
        rows = table("node", "op", f"median {unit}", "share")
        for node in chosen[:most]:
            share = f"{node.typical / total:.1%}"
            rows.add_row(escape(node.name), node.op, f"{node.typical:,.0f}", share)
        console().print(rows)
    if not nodes:
        print("no node is in this log: make it with --profiling_level detailed")
    if has_cycles(log):
        print(f"note: {HOST_CYCLES}")


def _run_diff(options: ProfileOptions) -> Report:
    """0 where nothing is slower, 1 where something is."""
    from openqnn.analysis.profile_diff import diff_profiles
    from openqnn.formats.profiling_log import read_profiling_log

    if len(options.logs) != 3:
        raise UsageError("openqnn profile diff takes two logs")
    if options.html or options.trace or options.perfetto:
        raise UsageError("--html, --trace and --perfetto go with one log")
    before, after = (read_profiling_log(path) for path in options.logs[1:])
    found = diff_profiles(before, after, options.threshold)
    record = {**dataclasses.asdict(found), "regression": found.has_regression}
    return Report(record, lambda: _print_diff(found, options), int(found.has_regression))


def _print_diff(found: ProfileDiff, options: ProfileOptions) -> None:
    for title, changes in (("execution", found.whole), ("node", found.nodes[: options.top])):
        if changes:
            _print_changes(title, changes)
    for names, which in ((found.only_before, options.logs[1]), (found.only_after, options.logs[2])):
        if names:
            print(f"only in {which}: {', '.join(names)}")
    slower = sum(change.verdict == "slower" for change in (*found.whole, *found.nodes))
    print(f"{slower} slower" if slower else "nothing is slower")


def _print_changes(title: str, changes: Sequence[Change]) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    rows = table(title, "before", "after", "change", "p", "verdict")
    for change in changes:
        p = "-" if change.p is None else f"{change.p:.3g}"
        numbers = (f"{change.before:,.0f}", f"{change.after:,.0f}", f"{change.ratio - 1:+.1%}")
        rows.add_row(escape(change.name), *numbers, p, change.verdict)
    console().print(rows)


COMMAND = Command(
    "profile",
    "Tell what took the time in a profiling log, node by node, or whether another log is slower.",
    (ProfileOptions,),
    run_profile,
    examples=(
        "openqnn profile output/qnn-profiling-data_0.log --model model.oqnn",
        "openqnn profile diff before.log after.log --threshold 5",
    ),
)
