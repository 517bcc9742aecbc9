"""A profiling log as text and as CSV, in the words that scripts search in qnn-profile-viewer's output."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from io import StringIO
from statistics import fmean

from openqnn.formats.profiling_log import (
    COMPOSE_GRAPHS,
    CONTEXT_CREATE,
    CREATE_FROM_BINARY,
    CSV_HEADER,
    CSV_UNITS,
    DEINIT,
    EXECUTE,
    EXECUTE_ASYNC,
    EXECUTE_IPS,
    FINALIZE,
    LIB_LOAD,
    MESSAGES,
    NODE,
    UNITS,
    LogEvent,
    LogRecord,
    ProfilingLog,
)

TITLE = "Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:"
HOST_CYCLES = (
    "cycles of a log that was made on a PC are time of that machine (the simulator counts the host's clock),"
    " and tell nothing about a chip"
)
SECTIONS = (
    ("Lib-Load Stats:", (LIB_LOAD,)),
    ("Init Stats:", (CONTEXT_CREATE, CREATE_FROM_BINARY)),
    ("Compose Graphs Stats:", (COMPOSE_GRAPHS,)),
    ("Finalize Stats:", (FINALIZE,)),
    ("De-Init Stats:", (DEINIT,)),
)
NAMES = {
    CONTEXT_CREATE: "CONTEXT CREATE", COMPOSE_GRAPHS: "COMPOSE GRAPHS", FINALIZE: "FINALIZE",
    EXECUTE: "EXECUTE", EXECUTE_ASYNC: "EXECUTE", CREATE_FROM_BINARY: "INIT", DEINIT: "DE-INIT",
    EXECUTE_IPS: "EXECUTE IPS", LIB_LOAD: "BACKEND LIB LOAD",
}  # fmt: skip
_Reduce = Callable[[Sequence[float]], float]


def profile_text(log: ProfilingLog, version: str) -> str:
    """What qnn-profile-viewer prints."""
    lines = [*_head(log, version), "", TITLE, "-" * len(TITLE)]
    for title, methods in SECTIONS:
        records = [record for record in log.records if record.method in methods]
        if records:
            lines += [title, "-" * len(title), *_calls(records), ""]
    executions = log.executions()
    for word, reduce in (("Average", fmean), ("Min", min), ("Max", max)):
        if executions:
            title = f"Execute Stats ({word}):"
            lines += [title, "-" * len(title), *_executions(executions, reduce), ""]
    if executions:
        title = "Execute Stats (Overall):"
        rate = inferences_per_second(log)
        lines += [title, "-" * len(title)]
        lines += [f"    NetRun IPS:  {rate:.4f} inf/sec" if rate else "    NetRun IPS:  not in this log", ""]
    if has_cycles(log):
        lines.append(f"Note: {HOST_CYCLES}.")
    return "\n".join(lines) + "\n"


def profile_csv(log: ProfilingLog) -> str:
    """A line for each event, in the columns of ONNX Runtime's and the SDK's files."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for record in log.records:
        if record.stop:
            name = NAMES.get(record.method, "NONE")
            row = (record.start, name, record.stop - record.start, "US", "NETRUN", "ROOT", record.graph)
            writer.writerow(row)
        for root in record.events:
            for event in root.walk():
                level = "ROOT" if event is root else "SUB-EVENT"
                message = MESSAGES.get(event.type, "BACKEND")
                stamp = event.timestamp or record.start
                unit = CSV_UNITS.get(event.unit, "BACKEND")
                writer.writerow(
                    (stamp, message, _number(event.value), unit, "BACKEND", level, event.identifier)
                )
    return text.getvalue()


def has_cycles(log: ProfilingLog) -> bool:
    """Cycles of executions: those of a compilation are the cost model's, and no time of any machine."""
    events = (event for record in log.executions() for root in record.events for event in root.walk())
    return any(UNITS.get(event.unit) == "cycles" for event in events)


def inferences_per_second(log: ProfilingLog) -> float | None:
    """Executions over the time of all of them, files that are read and written included."""
    spans = [r.stop - r.start for r in log.records if r.method == EXECUTE_IPS and r.stop > r.start]
    count = len(log.executions())
    if not spans or not count:
        return None
    return count / (sum(spans) / 1e6)


def _head(log: ProfilingLog, version: str) -> list[str]:
    made = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(log.wall / 1e6)) if log.wall else "unknown"
    return [
        f"Input Log File Location: {log.path}",
        f"Log File Created: {made}",
        "Time Scale: 1e-06",
        f"Epoch Timestamp: {log.wall} Steady Clock Timestamp: {log.steady}",
        "Generated using:",
        f"qnn-profile-viewer openqnn {version}",
        f"{log.app or 'unknown'} {log.app_version}".rstrip(),
        f"Backend {log.backend_version}".rstrip(),
    ]


def _calls(records: Sequence[LogRecord]) -> list[str]:
    lines: list[str] = []
    graphs = list(dict.fromkeys(record.graph for record in records))
    for index, graph in enumerate(graphs):
        if graph:
            lines.append(f"Graph {index} ({graph}):")
        for record in (each for each in records if each.graph == graph):
            if record.stop:
                lines.append(f"    NetRun:  {record.stop - record.start} us")
            lines += [line for event in record.events for line in _event(event, 4)]
    return lines


def _executions(records: Sequence[LogRecord], reduce: _Reduce) -> list[str]:
    lines = ["Total Inference Time:", "-" * 21]
    graphs = list(dict.fromkeys(record.graph for record in records))
    for index, graph in enumerate(graphs):
        of_graph = [record for record in records if record.graph == graph]
        lines.append(f"Graph {index} ({graph}):")
        spans = [record.stop - record.start for record in of_graph if record.stop]
        if spans:
            lines.append(f"    NetRun:  {_whole(reduce(spans))} us")
        lines += _reduced([record.events for record in of_graph], reduce, 4)
    return lines


def _reduced(groups: Sequence[Sequence[LogEvent]], reduce: _Reduce, indent: int) -> list[str]:
    """Events of several executions, one line for those that are called alike."""
    found: dict[tuple[str, int, int], list[LogEvent]] = {}
    for events in groups:
        seen: dict[str, int] = {}
        for event in events:
            number = seen[event.identifier] = seen.get(event.identifier, 0) + 1
            found.setdefault((event.identifier, event.unit, number), []).append(event)
    lines: list[str] = []
    for events in found.values():
        value = reduce([event.value for event in events])
        lines.append(_line(events[0], _whole(value), indent))
        lines += _reduced([event.children for event in events], reduce, indent + 4)
    return lines


def _event(event: LogEvent, indent: int) -> list[str]:
    below = [line for child in event.children for line in _event(child, indent + 4)]
    return [_line(event, _number(event.value), indent), *below]


def _line(event: LogEvent, value: str, indent: int) -> str:
    """A number in the words of the original: the backend's events have its name around them."""
    unit = UNITS.get(event.unit, "")
    if event.content:
        value, unit = str(len(event.content)), "bytes"
    name = event.identifier if event.type == NODE or indent > 4 else f"Backend ({event.identifier})"
    return f"{' ' * indent}{name}: {value} {unit}".rstrip()


def _whole(value: float) -> str:
    return str(round(value))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
