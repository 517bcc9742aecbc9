"""Overlays from files: results of our commands, profiling logs, encodings, and numbers or words by node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from openqnn.errors import InputError, OpenQnnError
from openqnn.viewer.view import Overlay

if TYPE_CHECKING:
    from openqnn.analysis.quant_report import QuantReport

Rows: TypeAlias = Sequence[Mapping[str, Any]]

LARGEST = 256 << 20  # bytes of a file
HINT = 'it is {"node": 0.5}, what a command of openqnn printed with --json, debug.json, or a profiling log'


def read_overlays(path: str | os.PathLike[str]) -> list[Overlay]:
    """What a file says of nodes: one overlay, or several where it has several numbers for each."""
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST:
            raise InputError(f"{path}: no overlay can be read: it is larger than {LARGEST >> 20} MB")
        data = place.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: no overlay can be read: {error.strerror}", hint=HINT) from error
    content = _parsed(place, data)
    found = _of_log(place) if content is None else _of_content(place, content)
    found = [overlay for overlay in found if overlay.is_about_something]
    if not found:
        raise InputError(f"{path}: there is no number for any node", hint=HINT)
    return found


def _parsed(path: Path, data: bytes) -> Any:
    """The content of JSON and of partition.yaml; None for what is neither."""
    try:
        text = data.decode("utf-8-sig")
        if path.suffix in (".yaml", ".yml"):
            from openqnn.formats.yaml_text import parse_yaml

            return parse_yaml(text)
        return json.loads(text)
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None
    except Exception as error:  # yaml has its own kinds
        raise InputError(f"{path}: no overlay can be read: {error}", hint=HINT) from error


def _of_log(path: Path) -> list[Overlay]:
    from openqnn.analysis.profile_nodes import node_times
    from openqnn.formats.profiling_log import read_profiling_log

    try:
        times = node_times(read_profiling_log(path))
    except OpenQnnError as error:
        raise InputError(f"{path}: no overlay can be read: {error}", hint=HINT) from error
    rows = [{"name": time.name, "unit": time.unit, "median": time.typical} for time in times]
    return _of_profile(path, {"nodes": rows})


def _of_content(path: Path, content: Any) -> list[Overlay]:
    if not isinstance(content, dict):
        return []
    for fits, read in READERS:
        if fits(content):
            return read(path, content)
    if "results" not in content and content and all(_is_node_data(value) for value in content.values()):
        several = len(content) > 1
        return [
            _named(f"{path.stem}, {name}" if several else path.stem, each) for name, each in content.items()
        ]
    return [_named(path.stem, content)]


def _named(title: str, content: Mapping[str, Any]) -> Overlay:
    """Numbers, or where there are none words, by node."""
    values, labels = dict[str, float](), dict[str, str]()
    _collect(content.get("results", content), values, labels)
    return Overlay(title, values, labels=labels if not values else {})


def _is_node_data(value: Any) -> bool:
    return isinstance(value, dict) and "results" in value


def _collect(content: Any, values: dict[str, float], labels: dict[str, str]) -> None:
    """Model Explorer has `{"results": {node: {"value": number}}}`, perhaps below the name of a graph."""
    for name, value in content.items() if isinstance(content, dict) else ():
        told = value.get("value") if isinstance(value, dict) and "value" in value else value
        if isinstance(told, int | float) and not isinstance(told, bool):
            if isfinite(told):
                values[str(name)] = float(told)
        elif isinstance(told, str):
            labels[str(name)] = told
        elif isinstance(told, dict) and len(name) < 1000:
            _collect(told.get("results", told), values, labels)


def _has_rows(key: str, column: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a file has a list of records with a column of this name."""

    def fits(content: Mapping[str, Any]) -> bool:
        rows = content.get(key)
        return isinstance(rows, list) and any(isinstance(row, dict) and column in row for row in rows)

    return fits


def _numbers(rows: Iterable[Any], name: str, column: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows:
        value = row.get(column) if isinstance(row, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            found[str(row.get(name))] = float(value)
    return found


def _of_debug(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    """Errors as the share of the signal, and as decibels, of which less is worse."""
    rows = content["layers"]
    found: list[Overlay] = []
    for what in ("entire", "isolated", "added"):
        decibels = _numbers(rows, "tensor", f"{what}_db")
        errors = {name: 100 * 10 ** (-value / 20) for name, value in decibels.items()}
        found.append(
            Overlay(f"error, {what}", errors, "%", notes=_findings(rows) if what == "entire" else {})
        )
        found.append(Overlay(f"SQNR, {what}", decibels, "dB", least_is_worst=True))
    return found


def _findings(rows: Rows) -> dict[str, str]:
    """Causes with what is to be done, by tensor."""
    notes: dict[str, str] = {}
    for row in rows:
        told = [f for f in row.get("findings", ()) if isinstance(f, dict)] if isinstance(row, dict) else []
        text = "; ".join(str(f.get("detail") or f.get("cause") or "") for f in told).strip("; ")
        if text:
            notes[str(row.get("tensor"))] = text
    return notes


def _of_estimate(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    rows = content["layers"]
    advice = {
        str(row["name"]): "; ".join(map(str, row["advice"]))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("advice"), list) and row["advice"] and "name" in row
    }
    return [
        Overlay("time, estimate", _numbers(rows, "name", "cycles"), "cycles", notes=advice),
        Overlay("bytes, estimate", _numbers(rows, "name", "bytes"), "B"),
    ]


def quant_overlays(report: QuantReport) -> list[Overlay]:
    """Noise of the tensors of a quantization report: in the whole graph, and by their own encodings."""
    shown = [tensor for tensor in report.tensors if not tensor.is_weight]
    figures = {
        "SQNR, entire": {t.name: t.sqnr for t in shown},
        "SQNR, own encoding": {t.name: t.own_sqnr for t in shown},
        "clipped": {t.name: 100 * t.clipped for t in shown},
    }
    notes = {t.name: t.advice for t in shown if t.advice}
    return [
        Overlay(
            title, {name: value for name, value in values.items() if isfinite(value)},
            "%" if title == "clipped" else "dB", title != "clipped", notes=notes if not index else {},
        )
        for index, (title, values) in enumerate(figures.items())
    ]  # fmt: skip


def record_overlays(content: Mapping[str, Any]) -> list[Overlay]:
    """Overlays from a record that a command would print with --json."""
    return [o for o in _of_content(Path("record.json"), content) if o.is_about_something]


def _of_profile(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    rows = [row for row in content["nodes"] if isinstance(row, dict)]
    found: list[Overlay] = []
    for unit in dict.fromkeys(str(row.get("unit", "")) for row in rows):
        chosen = [row for row in rows if str(row.get("unit", "")) == unit]
        title = f"time, profile ({unit})" if unit else "time, profile"
        found.append(Overlay(title, _numbers(chosen, "name", "median"), unit))
    return found


def _of_lint(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    rows = [row for row in content["findings"] if isinstance(row, dict) and row.get("node")]
    told = [(str(r["node"]), str(r["rule"]), f"{r.get('issue')} {r.get('advice')}") for r in rows]
    return [findings_overlay(told)]


def findings_overlay(findings: Iterable[tuple[str, str, str]]) -> Overlay:
    """Findings of the architecture checker: node, rule, and what is said of it."""
    rules: dict[str, list[str]] = {}
    notes: dict[str, list[str]] = {}
    for node, rule, text in findings:
        rules.setdefault(node, []).append(rule)
        notes.setdefault(node, []).append(text)
    return Overlay(
        "architecture findings",
        {},
        labels={node: ", ".join(dict.fromkeys(found)) for node, found in rules.items()},
        notes={node: " ".join(dict.fromkeys(found)) for node, found in notes.items()},
    )


def _of_partition(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    parts = [part for part in content["parts"] if isinstance(part, dict)]
    labels = {str(node): str(part.get("backend")) for part in parts for node in part.get("nodes") or ()}
    return [Overlay("backend", {}, labels=labels)]


def _of_pins(_: Path, content: Mapping[str, Any]) -> list[Overlay]:
    pins = content["pins"]
    return [Overlay("backend", {}, labels={str(n): str(b) for n, b in pins.items()})]


def _of_encodings(path: Path, _: Mapping[str, Any]) -> list[Overlay]:
    from openqnn.formats.encodings import read_encodings

    entries = read_encodings(path).tensors
    bits = {name: float(entry.bitwidth) for name, entry in entries.items()}
    return [Overlay(f"bit width, {path.stem}", bits)]


Content: TypeAlias = Mapping[str, Any]
READERS: tuple[tuple[Callable[[Content], bool], Callable[[Path, Content], list[Overlay]]], ...] = (
    (lambda content: "activation_encodings" in content or "encodings" in content, _of_encodings),
    (_has_rows("layers", "entire_db"), _of_debug),
    (_has_rows("layers", "cycles"), _of_estimate),
    (_has_rows("nodes", "median"), _of_profile),
    (_has_rows("findings", "rule"), _of_lint),
    (_has_rows("parts", "backend"), _of_partition),
    (lambda content: isinstance(content.get("pins"), dict), _of_pins),
)
