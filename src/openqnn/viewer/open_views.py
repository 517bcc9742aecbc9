"""Views of any file: each graph that it holds is one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openqnn.analysis.context_summary import read_context, summarise_context
from openqnn.analysis.sources import HOLDS_SEVERAL, read_nets
from openqnn.api.files import CONTEXT, open_graph
from openqnn.emit.graph_from_net import graph_of
from openqnn.errors import InputError, ModelError
from openqnn.formats.oqnn import is_oqnn
from openqnn.viewer.from_graph import INPUT, OUTPUT, view_from_graph
from openqnn.viewer.from_onnx import view_from_onnx
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor

KINDS = {".dlc": "DLC", ".so": "model library", ".c": "Saver bundle", ".json": "model_net.json"}


def open_views(path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> list[View]:
    """The graphs of a file. `settings` are those of `convert`, for models with open dimensions."""
    place = Path(path)
    if not place.exists():
        raise ModelError(f"{place}: no such file")
    if is_oqnn(place):
        return [view_from_graph(open_graph(place), place.name, "OpenQNN graph")]
    if place.suffix in HOLDS_SEVERAL:
        nets = read_nets(place)
        titles = [place.name if len(nets) == 1 else f"{place.name}: {net.name}" for net in nets]
        kind = KINDS[place.suffix]
        return [view_from_graph(graph_of(net), t, kind) for net, t in zip(nets, titles, strict=True)]
    if place.suffix == CONTEXT:
        return _context_views(place)
    if place.suffix == ".onnx":
        return [view_from_onnx(place)]
    return [view_from_graph(open_graph(place, **(settings or {})), place.name, "converted")]


def _context_views(path: Path) -> list[View]:
    """A compiled graph has no nodes that could be shown: its boundary, sizes and settings."""
    info = read_context(path)
    summary = summarise_context(info)
    common = {
        "backend": summary.backend,
        "target": summary.target,
        "library": summary.build_id,
        "bytes": f"{summary.bytes:,}",
    }
    found: list[View] = []
    for graph in summary.graphs:
        inputs = tuple(ViewTensor(text.split(" ")[0], text) for text in graph.inputs)
        outputs = tuple(ViewTensor(text.split(" ")[0], text) for text in graph.outputs)
        nodes = [ViewNode(t.name, INPUT, outputs=(t,), keys=(f"{INPUT}:{t.name}",)) for t in inputs]
        nodes.append(ViewNode(graph.name, "Compiled", inputs=inputs, outputs=outputs, keys=(graph.name,)))
        nodes += [ViewNode(t.name, OUTPUT, inputs=(t,), keys=(f"{OUTPUT}:{t.name}",)) for t in outputs]
        facts = common | {name: f"{value:,}" for name, value in graph.settings.items()}
        found.append(View(f"{path.name}: {graph.name}", "context binary", tuple(nodes), facts))
    return found


def read_overlay(path: str | os.PathLike[str]) -> Overlay:
    """Numbers by node from a JSON file: `{node: number}`, or the node data of Google's Model Explorer."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: no overlay can be read: {error}") from error
    values = _numbers(content)
    if not values:
        hint = 'it is an object such as {"conv1": 0.5, "conv2": 3}'
        raise InputError(f"{path}: there is no number for any node", hint=hint)
    return Overlay(Path(path).stem, values)


def _numbers(content: Any) -> dict[str, float]:
    """Model Explorer has `{"results": {node: {"value": number}}}`, perhaps below the name of a graph."""
    if not isinstance(content, dict):
        return {}
    if "results" in content:
        return _numbers(content["results"])
    found: dict[str, float] = {}
    for name, value in content.items():
        number = value.get("value") if isinstance(value, dict) and "value" in value else value
        if isinstance(number, int | float) and not isinstance(number, bool):
            found[str(name)] = float(number)
        elif isinstance(number, dict):
            found |= _numbers(number)
    return found
