"""Profiling logs as views: the nodes of an execution in their order, coloured by what each took."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from openqnn.analysis.profile_nodes import NodeTime, node_name, node_times, totals
from openqnn.errors import InputError
from openqnn.formats.profiling_log import CSV_HEADER, ProfilingLog, read_profiling_log
from openqnn.viewer.readers.tensor_words import shortened
from openqnn.viewer.view import Overlay, View, ViewNode

SUFFIXES = (".log", ".csv")
KIND = "profiling log"
TIMES = {"us": "time", "cycles": "cycles"}


def is_profile(path: Path) -> bool:
    """Whether a file is a log of libQnnSystem, or ONNX Runtime's CSV."""
    if path.suffix == ".csv":
        with path.open("rb") as file:
            return file.read(64).removeprefix(b"\xef\xbb\xbf").startswith(CSV_HEADER[0].encode())
    return path.suffix == ".log"


def profile_view(path: Path) -> View:
    """A list of nodes without edges: a log tells what ran, and not what read what."""
    log = read_profiling_log(path)
    nodes = _in_order(log)
    if not nodes:
        hint = "make it with --profiling_level detailed"
        raise InputError(f"{path}: there is no node in this log", hint=hint)
    facts = {"written by": f"{log.app} {log.app_version}".strip(), "library": log.backend_version}
    facts |= {"executions": f"{len(log.executions()):,}", "nodes": f"{len(nodes):,}"}
    facts |= {name: f"{median(values):,.0f} in the median" for name, values in totals(log).items()}
    shown = tuple(_node(node) for node in nodes)
    return View(path.name, KIND, shown, {n: t for n, t in facts.items() if t}, tuple(time_overlays(nodes)))


def time_overlays(nodes: Sequence[NodeTime]) -> list[Overlay]:
    """One overlay for each unit in which nodes were measured."""
    units = dict.fromkeys(node.unit for node in nodes)
    return [
        Overlay(TIMES.get(unit, "value"), {n.name: n.typical for n in nodes if n.unit == unit}, unit)
        for unit in units
    ]


def _in_order(log: ProfilingLog) -> list[NodeTime]:
    """Nodes as the first execution has them: node_times gives the costliest first."""
    places: dict[str, int] = {}
    for record in log.executions()[:1]:
        for root in record.events:
            for event in root.walk():
                places.setdefault(node_name(event), len(places))
    return sorted(node_times(log), key=lambda node: places.get(node.name, len(places)))


def _node(node: NodeTime) -> ViewNode:
    params = {
        "median": f"{node.typical:,.6g} {node.unit}",
        "least": f"{min(node.values):,.6g} {node.unit}",
        "largest": f"{max(node.values):,.6g} {node.unit}",
        "executions": f"{len(node.values):,}",
    }
    if 1 < len(node.values) <= 32:
        params["values"] = shortened(", ".join(f"{value:,.6g}" for value in node.values))
    shown = f"{node.typical:,.0f}" if node.typical >= 1000 else f"{node.typical:.4g}"
    return ViewNode(node.name, f"{shown} {node.unit}", node.source, params, keys=(node.name,))
