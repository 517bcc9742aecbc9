"""A profiling log as one HTML file: a treemap of the nodes, tables, and how executions went."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from openqnn.analysis.plain_page import NodeName, line_plot, note, page, table, treemap
from openqnn.analysis.profile_nodes import NodeTime, totals
from openqnn.analysis.profile_text import HOST_CYCLES, has_cycles, inferences_per_second
from openqnn.formats.profiling_log import ProfilingLog

SHOWN = 200


def profile_page(log: ProfilingLog, nodes: Sequence[NodeTime], view: str = "") -> str:
    """The page; `nodes` are those of the log, or of the source model, and `view` the viewer's page beside it,
    in which they are looked up."""
    whole = totals(log)
    rate = inferences_per_second(log)
    parts = [
        f"<p>{escape(log.path)}: {len(log.executions())} execution(s)"
        f"{f', {rate:.2f} inferences per second' if rate else ''}; {escape(log.app)} on"
        f" {escape(log.backend_version or 'an unknown build')}</p>",
    ]
    if has_cycles(log):
        parts.append(note(f"{HOST_CYCLES[0].upper()}{HOST_CYCLES[1:]}."))
    for unit in dict.fromkeys(node.unit for node in nodes):
        parts += _nodes_of(unit, [node for node in nodes if node.unit == unit], view)
    if not nodes:
        parts.append(note("No node is in this log: make it with --profiling_level detailed."))
    if whole:
        rows = [(name, min(v), sorted(v)[len(v) // 2], max(v), len(v)) for name, v in whole.items()]
        parts += ["<h2>Whole executions</h2>", table(("time", "least", "median", "largest", "count"), rows)]
    for name, values in whole.items():
        parts += _course(name, values)
    return page("Profile", parts)


def _nodes_of(unit: str, nodes: Sequence[NodeTime], view: str) -> list[str]:
    total = sum(node.typical for node in nodes) or 1.0
    rows = [
        (NodeName(node.name, view), node.op, node.typical, f"{node.typical / total:.1%}", len(node.values))
        for node in nodes[:SHOWN]
    ]
    return [
        f"<h2>Nodes in {escape(unit)}</h2>",
        treemap([(node.name, node.typical, node.op or "node") for node in nodes], view=view),
        table(("node", "op", f"median {unit}", "share", "executions"), rows),
    ]


def _course(name: str, values: Sequence[float]) -> list[str]:
    """How a time went from execution to execution."""
    if len(values) < 2:
        return []
    points = [(float(index), value) for index, value in enumerate(values)]
    return [f"<h3>{escape(name)}</h3>", line_plot({name: points}, ("execution", name))]
