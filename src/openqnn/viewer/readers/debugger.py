"""Results of the accuracy debuggers as views: every layer or tensor, coloured by its errors.

There are three: debug.json of `openqnn debug`, summary.json of a verification, and summary.csv of that or of
tensor inspection.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openqnn.analysis.accuracy.verifiers import VERIFIERS
from openqnn.errors import InputError
from openqnn.viewer.readers.tensor_words import shortened
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor

KIND = "debugger result"
NAMED = ("debug.json", "summary.json", "summary.csv")
"""Files of results in a folder, in the order in which they are looked for."""
_NO_FIGURES = ("rank", "Size", "place")
DECIBELS = "_db"


def is_debugger_result(content: Any) -> bool:
    if isinstance(content, dict):
        return {"layers", "outputs", "broken"} <= set(content)
    rows = isinstance(content, list) and bool(content) and isinstance(content[0], dict)
    return rows and {"Name", "LayerType"} <= set(content[0])


def result_file(folder: Path) -> Path | None:
    """The result in a folder that a debugger wrote: its own, or that of its newest verification."""
    places = [folder, folder / "latest", folder / "verification" / "latest"]
    return next((p / name for p in places for name in NAMED if (p / name).is_file()), None)


def debugger_view(path: Path) -> View:
    """A list in the order of the file: layers by suspicion, tensors by the graph."""
    content = _content(path)
    if isinstance(content, dict):
        rows = [_plain(row) for row in content["layers"] if isinstance(row, dict)]
        facts = {"model": str(content.get("model", "")), "samples": str(content.get("samples", ""))}
        facts |= {"broken": ", ".join(map(str, content["broken"])) or "no layer"}
        facts |= {f"note {i}": str(note) for i, note in enumerate(content.get("notes", ()), 1)}
        return _view(path, rows, facts, "tensor", "op")
    return _view(path, content, {"tensors": f"{len(content):,}"}, "Name", "LayerType")


def _content(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        content = list(csv.DictReader(text.splitlines())) if path.suffix == ".csv" else json.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: no result can be read: {error}") from error
    if not is_debugger_result(content):
        raise InputError(f"{path}: it is no result of a debugger", hint="debug.json and summary.json are")
    return content


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A layer with its findings as text."""
    found = {name: value for name, value in row.items() if name != "findings" and value is not None}
    for number, finding in enumerate(row.get("findings", ())[:3], 1):
        if isinstance(finding, dict):
            found[f"cause {number}"] = "; ".join(str(v) for v in finding.values() if v)
    return found


def _view(path: Path, rows: Sequence[Mapping[str, Any]], facts: dict[str, str], name: str, op: str) -> View:
    nodes = [_node(row, name, op) for row in rows if row.get(name)]
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        for title, value in row.items():
            number = _number(value)
            if number is not None and title not in _NO_FIGURES and row.get(name):
                figures.setdefault(title, {})[str(row[name])] = number
    overlays = tuple(
        Overlay(
            title.removesuffix(DECIBELS),
            values,
            "dB" if title.endswith(DECIBELS) else "",
            title.endswith(DECIBELS) or _more_is_better(title),
        )
        for title, values in figures.items()
    )
    return View(f"{path.parent.name}/{path.name}", KIND, tuple(nodes), facts, overlays)


def _more_is_better(title: str) -> bool:
    """Whether equal tensors have the largest value, as a share of what is right has it, and not the least."""
    verifier = VERIFIERS.get(title.lower())
    return verifier is not None and verifier.best > 0


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _node(row: Mapping[str, Any], name: str, op: str) -> ViewNode:
    """A row of the result; what is a figure of its own stands in an overlay."""
    own = str(row[name])
    params = {
        key: shortened(str(value))
        for key, value in row.items()
        if key not in (name, op, "source", "dims", "Tensor_dims") and value not in ("", None)
        if key in _NO_FIGURES or _number(value) is None
    }
    dims = row.get("dims", row.get("Tensor_dims", ()))
    shape = tuple(int(d) for d in dims if isinstance(d, int)) if isinstance(dims, list) and dims else None
    tensor = ViewTensor(own, str(row.get("type", "")), shape)
    return ViewNode(
        own, str(row.get(op, "")) or "tensor", str(row.get("source", "")), params, outputs=(tensor,),
        keys=(own, str(row.get("node", own))),
    )  # fmt: skip
