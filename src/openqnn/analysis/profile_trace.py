"""Profiling logs as timelines: Chrome's JSON, Perfetto's protobuf, and a plain record of everything.

A log has when calls began and ended. Events inside a call have a length and no place: those in microseconds
stand one behind the other from the start of the call, and cycles of nodes share the call by their sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from openqnn.analysis.profile_text import HOST_CYCLES, NAMES, has_cycles
from openqnn.formats.profiling_log import NODE, UNITS, LogEvent, LogRecord, ProfilingLog

_BEGIN, _END = 1, 2
_PROCESS = 1


@dataclass(frozen=True, slots=True)
class Span:
    """A bar of a timeline, in microseconds."""

    track: str
    name: str
    start: float
    length: float
    value: str = ""


def chrome_trace(log: ProfilingLog) -> dict[str, Any]:
    """The form that chrome://tracing and Perfetto open."""
    spans = list(spans_of(log))
    tracks = {name: number for number, name in enumerate(dict.fromkeys(span.track for span in spans), 1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": log.app or "qnn"}}
    ]
    events += [
        {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}}
        for name, number in tracks.items()
    ]
    events += [
        {
            "ph": "X", "pid": 1, "tid": tracks[span.track], "name": span.name, "ts": round(span.start, 3),
            "dur": round(span.length, 3), **({"args": {"value": span.value}} if span.value else {}),
        }
        for span in spans
    ]  # fmt: skip
    note = {"note": HOST_CYCLES} if has_cycles(log) else {}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"log": log.path, **note}}


def perfetto_trace(log: ProfilingLog) -> bytes:
    """The timeline in Perfetto's own form."""
    spans = list(spans_of(log))
    tracks = {name: number for number, name in enumerate(dict.fromkeys(span.track for span in spans), 10)}
    process = _field(1, 1) + _field(6, (log.app or "qnn").encode())
    out = [_packet(_field(60, _field(1, _PROCESS) + _field(3, process)))]
    for name, uuid in tracks.items():
        body = _field(1, uuid) + _field(5, _PROCESS) + _field(2, name.encode())
        out.append(_packet(_field(60, body)))
    edges: list[tuple[float, int, float, Span]] = []
    for span in spans:
        edges.append((span.start, 1, -span.length, span))
        edges.append((span.start + span.length, 0, span.length, span))
    for at, begins, _, span in sorted(edges, key=lambda edge: edge[:3]):
        event = _field(9, _BEGIN if begins else _END) + _field(11, tracks[span.track])
        if begins:
            event += _field(22, b"qnn") + _field(23, span.name.encode())
            if span.value:
                event += _field(4, _field(10, b"value") + _field(6, span.value.encode()))
        out.append(_packet(_field(8, round(at * 1e3)) + _field(11, event)))
    return b"".join(out)


def log_record(log: ProfilingLog) -> dict[str, Any]:
    """Everything that a log has, for JSON."""
    return {
        "app": log.app,
        "app_version": log.app_version,
        "backend_version": log.backend_version,
        "epoch_us": log.wall,
        "records": [
            {
                "method": NAMES.get(record.method, str(record.method)),
                "graph": record.graph,
                "start_us": record.start,
                "stop_us": record.stop,
                "events": [_event_record(event) for event in record.events],
            }
            for record in log.records
        ],
    }


def spans_of(log: ProfilingLog) -> Iterator[Span]:
    """The bars of all calls."""
    first = min((record.start for record in log.records if record.stop), default=0)
    at = 0.0
    for record in log.records:
        if record.stop:
            start, length = float(record.start - first), float(record.stop - record.start)
        else:  # ONNX Runtime's CSV has no time of the call: one call behind the other
            start, length = at, max((e.value for e in record.events if e.unit == 1), default=0.0)
        at = start + length
        name = f"{NAMES.get(record.method, 'call')} {record.graph}".strip()
        if length:
            yield Span("calls", name, start, length)
            yield from _inside(record, start, length)


def _inside(record: LogRecord, start: float, length: float) -> Iterator[Span]:
    for event in record.events:
        if event.unit == 1 and event.value > 0:
            yield Span(event.identifier, event.identifier, start, min(event.value, length))
    nodes = [e for root in record.events for e in root.walk() if e.type == NODE and e.value > 0]
    total = sum(event.value for event in nodes)
    at = start
    for event in nodes:
        share = event.value if event.unit == 1 else length * event.value / total
        share = min(share, start + length - at)
        if share <= 0:
            return
        yield Span("nodes", event.identifier, at, share, f"{event.value:g} {UNITS.get(event.unit, '')}")
        at += share


def _event_record(event: LogEvent) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": event.type,
        "unit": UNITS.get(event.unit, ""),
        "value": event.value,
        "identifier": event.identifier,
    }
    if event.timestamp:
        found["timestamp"] = event.timestamp
    if event.content:
        found["object"] = {"name": event.object_name, "bytes": len(event.content)}
    if event.children:
        found["children"] = [_event_record(child) for child in event.children]
    return found


# -- protobuf: numbers as varints, the rest with its length ---------------------------------------------


def _packet(body: bytes) -> bytes:
    return _field(1, body + _field(10, 1))


def _field(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
