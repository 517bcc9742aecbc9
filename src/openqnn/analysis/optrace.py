"""Timelines of HTP as a Chrome trace, and summed up by operation as the analysis summary (QHAS) has it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.errors import InputError, OpenQnnWarning
from openqnn.formats.htp_timeline import ENDS, HtpStep, HtpTimeline, Schematic
from openqnn.formats.json_text import parse_json

NOTE = (
    "expected by libQnnHtp's cost model when it compiled the graph: no device was measured. Time is cycles"
    " over the clock that the model assumes"
)
FEATURES = {
    "enable_input_output_flow_events": True,
    "memory_info": True,
    "qhas_json": True,
    "htp_json": True,
    "enable_sequencer_flow_events": False,
    "runtrace": False,
    "traceback": False,
    "qhas_schema": False,
}
"""The features of the reader's configuration, and whether there is something for them here."""
_TRAFFIC = ("dram_read", "dram_write", "vtcm_read", "vtcm_write")


@dataclass(frozen=True, slots=True)
class TraceChoices:
    """What goes into the trace."""

    flows: bool = False
    memory: bool = True


def features(path: str) -> dict[str, bool]:
    """The reader's configuration: {"features": {NAME: true or false}}.

    Unknown names are errors, and a feature that there is nothing for is told.
    """
    try:
        said = parse_json(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    table = said.get("features") if isinstance(said, dict) and set(said) == {"features"} else None
    if not isinstance(table, dict):
        raise InputError(f"{path}: expected an object with 'features' and nothing else")
    found: dict[str, bool] = {}
    for name, value in table.items():
        if name not in FEATURES:
            raise InputError(f"{path}: features.{name} is not known", hint=f"there are {', '.join(FEATURES)}")
        if not isinstance(value, bool):
            raise InputError(f"{path}: features.{name} is {value!r}, and must be true or false")
        found[name] = value
        if value and not FEATURES[name]:
            why = "the timeline of a cost model has nothing for it"
            warnings.warn(f"{path}: features.{name} has no effect: {why}", OpenQnnWarning, stacklevel=2)
    return found


def optrace_chrome(
    timelines: Sequence[HtpTimeline],
    schematics: Mapping[str, Schematic],
    choices: TraceChoices | None = None,
) -> dict[str, Any]:
    """A process for each graph, a thread for each unit. Schematics by graph have the names of QNN nodes."""
    chosen = choices or TraceChoices()
    events: list[dict[str, Any]] = []
    for process, timeline in enumerate(timelines, 1):
        schematic = schematics.get(timeline.graph, Schematic(timeline.graph, ENDS, ENDS, {}))
        threads = {track: number for number, track in enumerate(timeline.tracks)}
        events += _heads(timeline, process)
        for step in timeline.steps:
            events.append(_bar(step, timeline, process, threads.get(step.track, 0), schematic.nodes))
        if chosen.memory:
            events += _memory(timeline, process)
        if chosen.flows:
            events += _flows(timeline, process, threads, schematic)
    chips = {timeline.graph: dict(timeline.setup) for timeline in timelines}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"note": NOTE, "cost_model": chips}}


def _heads(timeline: HtpTimeline, process: int) -> list[dict[str, Any]]:
    title = f"{timeline.graph} on {timeline.chip}"
    found: list[dict[str, Any]] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
    ]
    for number, track in enumerate(timeline.tracks):
        common = {"ph": "M", "pid": process, "tid": number}
        found.append({**common, "name": "thread_name", "args": {"name": track}})
        found.append({**common, "name": "thread_sort_index", "args": {"sort_index": number}})
    return found


def _bar(
    step: HtpStep, timeline: HtpTimeline, process: int, thread: int, known: Mapping[int, str]
) -> dict[str, Any]:
    told: dict[str, Any] = {"qnn_op": known.get(step.node, ""), "htp_op_id": hex(step.operation)}
    told |= {"cycles": step.length, **{name: size for name, size in step.traffic.items() if size}}
    return {
        "ph": "X", "pid": process, "tid": thread, "name": step.name, "cat": known.get(step.node, "htp"),
        "ts": _microseconds(step.start, timeline), "dur": _microseconds(step.length, timeline), "args": told,
    }  # fmt: skip


def _memory(timeline: HtpTimeline, process: int) -> list[dict[str, Any]]:
    return [
        {
            "ph": "C", "pid": process, "name": "VTCM in use", "ts": _microseconds(at, timeline),
            "args": {"bytes": size},
        }
        for at, size in timeline.memory
    ]  # fmt: skip


def _flows(
    timeline: HtpTimeline, process: int, threads: Mapping[str, int], schematic: Schematic
) -> list[dict[str, Any]]:
    """An arrow from the end of what makes a tensor to the start of what reads it."""
    longest: dict[int, HtpStep] = {}
    for step in timeline.steps:
        if step.operation not in longest or step.length > longest[step.operation].length:
            longest[step.operation] = step
    found: list[dict[str, Any]] = []
    for operation, step in longest.items():
        for maker in (longest[m] for m in schematic.inputs.get(operation, ()) if m in longest):
            number = len(found) + process * 1_000_000
            common = {"cat": "tensor", "name": "tensor", "pid": process, "id": number}
            end = min(maker.start + max(maker.length - 1, 0), step.start)
            found.append({
                **common, "ph": "s", "tid": threads.get(maker.track, 0), "ts": _microseconds(end, timeline),
            })  # fmt: skip
            found.append({
                **common, "ph": "f", "bp": "e", "tid": threads.get(step.track, 0),
                "ts": _microseconds(step.start, timeline),
            })  # fmt: skip
    return found


def _microseconds(cycles: int, timeline: HtpTimeline) -> float:
    return round(cycles / timeline.megahertz, 4)


def tables(timeline: HtpTimeline, schematic: Schematic) -> dict[str, Any]:
    """Everything that is in a timeline, step by step, in cycles."""
    steps = [
        {
            "name": step.name, "unit": step.track, "start": step.start, "cycles": step.length,
            "htp_op_id": hex(step.operation), "qnn_op": schematic.nodes.get(step.node, ""), **step.traffic,
        }
        for step in timeline.steps
    ]  # fmt: skip
    return {"graph": timeline.graph, "note": NOTE, "cost_model": dict(timeline.setup), "steps": steps}


# -- the analysis summary -----------------------------------------------------------------------------------


def optrace_summary(timeline: HtpTimeline, schematic: Schematic | None = None) -> dict[str, Any]:
    """The rows that Qualcomm's reader sums up beside its trace, as far as the cost model has them."""
    known = schematic or Schematic(timeline.graph, ENDS, ENDS, {})

    def node(step: HtpStep) -> str:
        return known.nodes.get(step.node, "unknown")

    def node_type(step: HtpStep) -> str:
        return known.ops.get(step.node, "unknown")

    return {
        "version": {"major": 1, "minor": 0, "patch": 0},
        "type_code": "QHAS",
        "model_id": timeline.graph,
        "note": NOTE,
        "data": {
            "htp_overall_summary": {"data": [_overall(timeline)]},
            "qnn_op_types": {"data": _rows(timeline, node_type, "op")},
            "qnn_op_instances_nodes": {"data": _rows(timeline, node, "qnn_op")},
            "htp_op_types": {"data": _rows(timeline, lambda step: step.name, "op")},
            "htp_op_instances": {"data": _rows(timeline, lambda step: hex(step.operation), "op")},
        },
    }


def _overall(timeline: HtpTimeline) -> dict[str, Any]:
    cycles = timeline.cycles
    seconds = cycles / timeline.megahertz / 1e6
    sums = _traffic(timeline.steps)
    resources: list[dict[str, Any]] = []
    for number, track in enumerate(timeline.tracks):
        used = _covered([step for step in timeline.steps if step.track == track])
        share = round(100 * used / cycles, 2) if cycles else 0.0
        resources.append({"type": track, "tid": number, "cycles_used": used, "utilization": share})
    busy = _covered(timeline.steps)
    return {
        "time_us": round(seconds * 1e6, 3),
        "inf_per_s": round(1 / seconds, 2) if seconds else None,
        "timeline_cycles": cycles,
        "timeline_utilization_percent": round(100 * busy / cycles, 2) if cycles else 0.0,
        "total_dram": sums["dram_read"] + sums["dram_write"],
        "total_dram_read": sums["dram_read"],
        "total_dram_write": sums["dram_write"],
        "total_vtcm": sums["vtcm_read"] + sums["vtcm_write"],
        "total_vtcm_read": sums["vtcm_read"],
        "total_vtcm_write": sums["vtcm_write"],
        "htp_resources": resources,
    }


def _rows(timeline: HtpTimeline, key: Callable[[HtpStep], str], column: str) -> list[dict[str, Any]]:
    """A row for each group of steps, the busiest first."""
    groups: dict[str, list[HtpStep]] = {}
    for step in timeline.steps:
        groups.setdefault(key(step), []).append(step)
    total = sum(step.length for step in timeline.steps) or 1
    rows: list[dict[str, Any]] = []
    for name, steps in groups.items():
        cycles = sum(step.length for step in steps)
        rows.append({
            column: name, "cycles": cycles, "percent_active_cycles": round(100 * cycles / total, 2),
            "num_htp_ops": len({step.operation for step in steps}), **_traffic(steps),
        })  # fmt: skip
    return sorted(rows, key=lambda row: -row["cycles"])


def _traffic(steps: Iterable[HtpStep]) -> dict[str, int]:
    """Bytes by where they come from and go to; an operation that stands twice in a timeline counts once."""
    largest: dict[tuple[int, str], int] = {}
    for step in steps:
        for name in _TRAFFIC:
            key = step.operation, name
            largest[key] = max(largest.get(key, 0), step.traffic.get(name, 0))
    return {name: sum(size for (_, kind), size in largest.items() if kind == name) for name in _TRAFFIC}


def _covered(steps: Iterable[HtpStep]) -> int:
    """Cycles in which at least one of the steps is under way."""
    covered = end = 0
    for step in sorted(steps, key=lambda step: step.start):
        stop = step.start + step.length
        covered += max(0, stop - max(end, step.start))
        end = max(end, stop)
    return covered
