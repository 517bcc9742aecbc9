"""What each node took in a profiling log, by the nodes of the source model where that is given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from openqnn.formats.profiling_log import NODE, UNITS, LogEvent, LogRecord, ProfilingLog
from openqnn.qnn.net import Net

_HTP = re.compile(r"(?P<name>.+?)(?::| )OpId_(?P<id>\d+)(?: \((?P<what>[^)]*)\))?")
_DUMMY = ("Input", "Output")


@dataclass(frozen=True, slots=True)
class NodeTime:
    """A node over all executions: its values one by one, and what it is in the source model."""

    name: str
    unit: str
    values: tuple[float, ...]
    op: str = ""
    source: str = ""

    @property
    def typical(self) -> float:
        return median(self.values)


def node_name(event: LogEvent) -> str:
    """HTP writes `conv:OpId_30 (cycles)`, the CPU library `_conv`."""
    match = _HTP.fullmatch(event.identifier.strip())
    return match["name"] if match else event.identifier.strip().removeprefix("_")


def node_times(log: ProfilingLog, nets: Sequence[Net] = ()) -> list[NodeTime]:
    """All nodes, the costliest first; a node that a library made several of counts as their sum."""
    known = {node.name: (node.op, node.source) for net in nets for node in net.nodes}
    values: dict[tuple[str, str], list[float]] = {}
    for record in log.executions():
        for key, value in _sums(record).items():
            values.setdefault(key, []).append(value)
    found = [
        NodeTime(name, unit, tuple(each), *known.get(name, ("", ""))) for (name, unit), each in values.items()
    ]
    return sorted(found, key=lambda node: -node.typical)


def by_source(nodes: Sequence[NodeTime]) -> list[NodeTime]:
    """Nodes of the source model, each with all that was made of it."""
    groups: dict[tuple[str, str], list[NodeTime]] = {}
    for node in nodes:
        groups.setdefault((node.source or node.name, node.unit), []).append(node)
    found: list[NodeTime] = []
    for (source, unit), parts in groups.items():
        count = min(len(part.values) for part in parts)
        sums = tuple(sum(part.values[i] for part in parts) for i in range(count))
        ops = ", ".join(dict.fromkeys(part.op for part in parts if part.op))
        found.append(NodeTime(source, unit, sums, ops, source))
    return sorted(found, key=lambda node: -node.typical)


def totals(log: ProfilingLog) -> dict[str, list[float]]:
    """Times of whole executions by what measured them: our own clock, and the backend's roots."""
    found: dict[str, list[float]] = {}
    for record in log.executions():
        if record.stop:
            found.setdefault("NetRun (us)", []).append(record.stop - record.start)
        for event in record.events:
            unit = UNITS.get(event.unit, "")
            if unit in ("us", "cycles"):
                name = event.identifier if f"({unit})" in event.identifier else f"{event.identifier} ({unit})"
                found.setdefault(name, []).append(event.value)
    return found


def _sums(record: LogRecord) -> Mapping[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for event in (node for root in record.events for node in _nodes(root)):
        name = node_name(event)
        if name not in _DUMMY:
            key = (name, UNITS.get(event.unit, ""))
            sums[key] = sums.get(key, 0.0) + event.value
    return sums


def _nodes(event: LogEvent) -> Iterator[LogEvent]:
    """Nodes of an execution: those below a node tell what it waited for, and are not its parts."""
    if event.type == NODE:
        yield event
        return
    for child in event.children:
        yield from _nodes(child)
