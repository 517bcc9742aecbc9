"""Timelines of HTP in a profiling log: what libQnnHtp's cost model expects each unit to do, and when.

With optrace the library adds one to the log when it compiles a graph for a chip that it has costs of. The
object holds a Chrome trace as text, and the graph's name: that was found by looking at objects of graphs
whose content was known.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.errors import InputError
from openqnn.formats.profiling_log import TRACE, ProfilingLog

_HEAD = struct.Struct("<7Q")  # a version, its size, how long the text and the name are
_OP_BITS = 0xFFFF_FFFF  # an operation's number carries that of the QNN node that it was made of
ENDS = {2: "Input", 3: "Output"}
_NAME = re.compile(r"^(0x[0-9a-fA-F]+): '((?:[^'\\]|\\.)*)',\s*$", re.MULTILINE)
_GRAPH = re.compile(r'^qnn_graph_name = "(.*)"\s*$', re.MULTILINE)
_TABLE, _TABLE_END = "qnn_name_translations = {", "\n}"
_OPERATION = re.compile(r"^\t(0x[0-9a-fA-F]+): \{$", re.MULTILINE)
_INPUT = re.compile(r"\((0x[0-9a-fA-F]+),\d+\),")
_OP_NAME = re.compile(r"'operation':'([^']*)'")
_BEFORE, _AFTER = "graph_before_optimization", "graph_after_optimization"
_MARK = b"# python_pprint_graph_summary"


@dataclass(frozen=True, slots=True)
class HtpStep:
    """What one unit does for a while, in cycles. `operation` is HTP's own, `node` the QNN node's number."""

    name: str
    track: str
    start: int
    length: int
    operation: int
    traffic: Mapping[str, int]

    @property
    def node(self) -> int:
        return self.operation & _OP_BITS


@dataclass(frozen=True, slots=True)
class HtpTimeline:
    """The timeline of one graph. `memory` has the bytes of fast memory in use, by cycles."""

    graph: str
    steps: tuple[HtpStep, ...]
    tracks: tuple[str, ...]
    memory: tuple[tuple[int, int], ...]
    chip: str
    megahertz: float
    setup: Mapping[str, Any]

    @property
    def cycles(self) -> int:
        return max((step.start + step.length for step in self.steps), default=0)


@dataclass(frozen=True, slots=True)
class Schematic:
    """What is read of a schematic: the nodes of the QNN graph by number, what each of them does, and what
    HTP's operations read."""

    graph: str
    nodes: Mapping[int, str]
    ops: Mapping[int, str]
    inputs: Mapping[int, tuple[int, ...]]


def timelines_in(log: ProfilingLog) -> list[HtpTimeline]:
    """All timelines of a log."""
    events = [e for record in log.records for root in record.events for e in root.walk()]
    objects = [event.content for event in events if event.type == TRACE and event.content]
    return [read_timeline(content, log.path) for content in objects]


def read_timeline(content: bytes, source: str) -> HtpTimeline:
    """The timeline in an opaque object; InputError where it is none."""
    try:
        _, _, size, _, _, length, name = _HEAD.unpack_from(content)
        if size != len(content) or _HEAD.size + length + name > size:
            raise ValueError(f"it says {size} bytes, and has {len(content)}")
        record = json.loads(content[_HEAD.size : _HEAD.size + length])
        graph = content[_HEAD.size + length :][:name].rstrip(b"\0").decode("utf-8", "replace")
        return _timeline(graph, record)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{source}: the timeline in it is in a form that is not known: {error}",
            hint="those of libQnnHtp's cost model are read; those of a device only Qualcomm's reader reads",
        ) from error


def _timeline(graph: str, record: Mapping[str, Any]) -> HtpTimeline:
    events: list[Mapping[str, Any]] = record["traceEvents"]
    named = [e for e in events if e["ph"] == "M" and e["name"] == "thread_name"]
    tracks = {int(e["tid"]): str(e["args"]["name"]).rstrip(":") for e in named}
    steps = tuple(
        HtpStep(
            str(e["name"]), tracks.get(int(e["tid"]), str(e["tid"])), int(e["ts"]), int(e["dur"]),
            int(e["args"]["id"], 16), _traffic(e["args"].get("bw_info", {})),
        )
        for e in events if e["ph"] == "X"
    )  # fmt: skip
    usage = [e for e in events if e["ph"] == "C" and e["name"] == "TCM usage"]
    setup: Mapping[str, Any] = record.get("Hextimate Configuration", {})
    return HtpTimeline(
        graph,
        steps,
        tuple(tracks.values()),
        tuple((int(e["ts"]), int(e["args"]["Bytes"])) for e in usage),
        str(setup.get("soc_type", "")),
        float(setup.get("sim_core_freq", 0)) or 1000.0,
        setup,
    )


def _traffic(found: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(found.get(name, 0)) for name in ("dram_read", "dram_write", "vtcm_read", "vtcm_write")}


def read_schematic(path: str | Path) -> Schematic:
    """A schematic as libQnnHtp leaves it."""
    file = Path(path)
    try:
        return parse_schematic(file.read_bytes(), str(file))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error


def parse_schematic(content: bytes, source: str) -> Schematic:
    """A schematic is in Python's own notation: lines of it are searched, and none is run."""
    text = content.decode("utf-8", "replace")
    graph = _GRAPH.search(text)
    if not content.startswith(_MARK) or graph is None:
        raise InputError(
            f"{source} is no schematic of HTP, or is cut short",
            hint="libQnnHtp leaves GRAPH_schematic.bin in the working folder when it compiles with optrace",
        )
    _, _, rest = text.partition(_TABLE)
    nodes = {int(number, 16): name for number, name in _NAME.findall(rest.partition(_TABLE_END)[0] + "\n")}
    inputs = {
        number: tuple(int(each, 16) for each in _INPUT.findall(body)) for number, body in _part(text, _AFTER)
    }
    ops = {number: _op(body) for number, body in _part(text, _BEFORE) if number in nodes}
    return Schematic(graph[1], ENDS | nodes, ENDS | ops, inputs)


def _part(text: str, name: str) -> Iterator[tuple[int, str]]:
    """The operations of a graph of the schematic: number and text of each."""
    part = text.partition(f":::BEGIN:{name}:::")[2].partition(f":::END:{name}:::")[0]
    starts = list(_OPERATION.finditer(part))
    ends = [found.start() for found in starts[1:]] + [len(part)]
    for found, end in zip(starts, ends, strict=True):
        yield int(found[1], 16), part[found.end() : end]


def _op(body: str) -> str:
    """QNN's name of an operation, which HTP writes as q::QNN_Conv2d."""
    found = _OP_NAME.search(body)
    return found[1].removeprefix("q::").removeprefix("QNN_") if found else ""
