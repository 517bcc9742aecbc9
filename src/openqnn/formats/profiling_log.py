"""Profiling logs as libQnnSystem writes them, and ONNX Runtime's profiling CSV, read without a library.

A log is one or several blocks: a length of four bytes, and a flatbuffer without identifier. What its fields
are was found by writing logs with known values.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from os import PathLike
from pathlib import Path

from openqnn.errors import InputError
from openqnn.formats.flatbuffer import Flatbuffer, FlatbufferError, FlatTable

EXECUTE, FINALIZE, EXECUTE_ASYNC, CREATE_FROM_BINARY, DEINIT = 1, 2, 3, 4, 5
CONTEXT_CREATE, COMPOSE_GRAPHS, EXECUTE_IPS, LIB_LOAD = 6, 7, 8, 10
NODE, TRACE = 404, 600
UNITS = {1: "us", 2: "bytes", 3: "cycles", 4: "count", 5: "object", 6: ""}
CSV_HEADER = (
    "Msg Timestamp", "Message", "Time", "Unit of Measurement", "Timing Source", "Event Level",
    "Event Identifier",
)  # fmt: skip
MESSAGES = {
    100: "INIT", 300: "FINALIZE", 400: "EXECUTE", 404: "NODE", 405: "EXECUTE QUEUE WAIT",
    406: "EXECUTE PREPROCESS", 407: "EXECUTE DEVICE", 408: "EXECUTE POSTPROCESS", 500: "DE-INIT",
    600: "TRACE",
}  # fmt: skip
CSV_UNITS = {1: "US", 2: "BYTES", 3: "CYCLES", 4: "COUNT", 5: "OBJECT", 6: "BACKEND"}
_DEEPEST = 64  # levels of events: a damaged log may refer to itself
_MOST = 2_000_000  # events
_FLOAT, _OBJECT = 3, 4  # kinds of values


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One measurement. `content` is an opaque object's bytes, and `object_name` what it is called."""

    type: int
    unit: int
    value: float
    identifier: str
    children: tuple[LogEvent, ...] = ()
    timestamp: int = 0
    object_name: str = ""
    content: bytes = b""

    def walk(self) -> Iterator[LogEvent]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One call of the library: what it was, on which graph, from when to when in microseconds."""

    method: int
    graph: str
    start: int
    stop: int
    events: tuple[LogEvent, ...]


@dataclass(frozen=True, slots=True)
class ProfilingLog:
    """A log's content, and who wrote it when."""

    path: str
    records: tuple[LogRecord, ...]
    app: str = ""
    app_version: str = ""
    backend_version: str = ""
    wall: int = 0
    steady: int = 0

    def executions(self) -> list[LogRecord]:
        return [record for record in self.records if record.method in (EXECUTE, EXECUTE_ASYNC)]


def read_profiling_log(path: str | PathLike[str]) -> ProfilingLog:
    """A log of libQnnSystem, or a CSV of ONNX Runtime."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    if not data:
        raise InputError(f"{file}: the file is empty", hint="was the run that made it cut short?")
    if data.lstrip(b"\xef\xbb\xbf").startswith(CSV_HEADER[0].encode()):
        return _from_csv(file, data)
    return _from_blocks(file, data)


# -- libQnnSystem's own ---------------------------------------------------------------------------------


def _from_blocks(file: Path, data: bytes) -> ProfilingLog:
    logs: list[ProfilingLog] = []
    at = 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        if not size and logs:
            break
        end = at + 4 + size
        if end > len(data) or size < 8:
            raise _damaged(file, f"a block of {size} bytes at {at}, and {len(data)} bytes in the file")
        try:
            logs.append(_block(file, Flatbuffer(data, at + 4, end), first=not logs))
        except (FlatbufferError, RecursionError) as error:
            raise _damaged(file, str(error)) from error
        at = end
    if not logs:
        raise _damaged(file, "no block in it")
    return replace(logs[0], records=tuple(record for log in logs for record in log.records))


def _block(file: Path, buffer: Flatbuffer, first: bool) -> ProfilingLog:
    """A block. Only the first has a header: a writer that adds call by call adds a block each time."""
    root = buffer.root()
    header = root.table(0)
    if header is None and first:
        raise FlatbufferError("no header in it")
    left = [_MOST]
    records = tuple(_record(table, left) for table in root.tables(1))
    if header is None:
        return ProfilingLog(str(file), records)
    versions = (header.text(number) for number in (4, 5))
    return ProfilingLog(
        str(file), records, header.text(6), *versions, wall=header.u64(1), steady=header.u64(2)
    )


def _record(table: FlatTable, left: list[int]) -> LogRecord:
    times = table.table(2)
    start, stop = (times.u64(0), times.u64(1)) if times else (0, 0)
    events = tuple(_event(event, left, 0) for event in table.tables(4))
    return LogRecord(table.u8(1), table.text(5), start, stop, events)


def _event(table: FlatTable, left: list[int], depth: int) -> LogEvent:
    left[0] -= 1
    if depth > _DEEPEST or left[0] < 0:
        raise FlatbufferError("events without end")
    children = tuple(_event(child, left, depth + 1) for child in table.tables(4))
    kind = table.u32(5)
    value: float = table.u64(2)
    if kind == _FLOAT:
        (value,) = struct.unpack("<f", table.u32(7).to_bytes(4, "little"))
    name, content = (table.text(9), table.raw(8)) if kind == _OBJECT else ("", b"")
    return LogEvent(table.u32(1), table.u32(3), value, table.text(0), children, table.u64(10), name, content)


def _damaged(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} is no profiling log, or is damaged: {why}",
        hint="it takes what libQnnSystem writes (qnn-profiling-data.log) or ONNX Runtime's profiling CSV",
    )


# -- ONNX Runtime's CSV ---------------------------------------------------------------------------------


def _from_csv(file: Path, data: bytes) -> ProfilingLog:
    rows = list(csv.reader(StringIO(data.decode("utf-8-sig", errors="replace"))))
    found: list[tuple[LogEvent, str, list[LogEvent]]] = []
    for number, row in enumerate(rows, 1):
        if not row or row[0] == CSV_HEADER[0]:  # ONNX Runtime appends, and may write the head again
            continue
        if len(row) != len(CSV_HEADER):
            raise InputError(f"{file}, line {number}: {len(row)} columns in place of {len(CSV_HEADER)}")
        event = _csv_event(file, number, row)
        if row[5].strip() == "ROOT" or not found:
            found.append((event, row[1].strip(), []))
        else:
            found[-1][2].append(event)
    roots = [(replace(event, children=tuple(parts)), message) for event, message, parts in found]
    return ProfilingLog(str(file), tuple(_csv_records(roots)), app="onnxruntime")


def _csv_event(file: Path, number: int, row: Sequence[str]) -> LogEvent:
    units = {word: unit for unit, word in CSV_UNITS.items()}
    kinds = {word: kind for kind, word in MESSAGES.items()}
    try:
        value = float(row[2])
        stamp = int(float(row[0]))
    except ValueError as error:
        raise InputError(f"{file}, line {number}: {error}") from error
    kind = kinds.get(row[1].strip(), 0)
    return LogEvent(kind, units.get(row[3].strip(), 6), value, row[6].strip(), timestamp=stamp)


def _csv_records(roots: Sequence[tuple[LogEvent, str]]) -> Iterator[LogRecord]:
    """Events of one call. Those of the backend's own kinds come before the one that names the call."""
    methods = {"EXECUTE": EXECUTE, "FINALIZE": FINALIZE, "DE-INIT": DEINIT, "INIT": CREATE_FROM_BINARY}
    group: list[LogEvent] = []
    current = 0
    for event, message in roots:
        method = next((m for word, m in methods.items() if message.startswith(word)), 0)
        again = event.identifier in {each.identifier for each in group}
        if group and (again or (current and method != current)):
            yield LogRecord(current or EXECUTE, "", 0, 0, tuple(group))
            group, current = [], 0
        group.append(event)
        current = current or method
    if group:
        yield LogRecord(current or EXECUTE, "", 0, 0, tuple(group))
