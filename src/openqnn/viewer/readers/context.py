"""Compiled graphs as views: context binaries, and EPContext models that hold one.

A compiled graph has no nodes that could be shown: there are its boundary, its sizes and its settings.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path

from openqnn.analysis.context_summary import ContextSummary, read_context, summarise_context
from openqnn.emit.epcontext import read_epcontext
from openqnn.errors import ModelError
from openqnn.ir import DType
from openqnn.qnn.context_info import ContextInfo, GraphInfo, IoTensor
from openqnn.viewer.readers.tensor_words import begins_with, ends_with, record_tensor
from openqnn.viewer.view import View, ViewNode

KIND = "context binary"


def context_views(path: Path, title: str = "") -> list[View]:
    """A view of each graph of a binary."""
    info = read_context(path)
    summary = summarise_context(info)
    return [_view(info, graph, summary, title or path.name) for graph in info.graphs]


def epcontext_views(path: Path) -> list[View]:
    """Views of the graphs in a model's context binary; none where the model has no such node."""
    try:
        held = read_epcontext(path)
    except ModelError as error:
        if "no EPContext node" in str(error):
            return []
        raise
    try:
        binary = held.binary()
    except ModelError as error:
        raise ModelError(f"{path}: {error.message}", hint=error.hint) from error
    with tempfile.TemporaryDirectory(prefix="openqnn-") as folder:
        file = Path(folder) / "context.bin"
        file.write_bytes(binary)
        views = context_views(file, f"{path.name}: context")
    sdk = {"SDK of the EPContext node": held.sdk_version} if held.sdk_version else {}
    return [dataclasses.replace(view, facts={**view.facts, **sdk}) for view in views]


def _view(info: ContextInfo, graph: GraphInfo, summary: ContextSummary, title: str) -> View:
    inputs = tuple(record_tensor(item.tensor) for item in graph.inputs)
    outputs = tuple(record_tensor(item.tensor) for item in graph.outputs)
    facts = _facts(info, graph, summary)
    compiled = ViewNode(graph.name, "Compiled", "", dict(_settings(graph)), inputs, outputs, (graph.name,))
    nodes = [*(begins_with(t) for t in inputs), compiled, *(ends_with(t) for t in outputs)]
    return View(f"{title}: {graph.name}", KIND, tuple(nodes), facts)


def _facts(info: ContextInfo, graph: GraphInfo, summary: ContextSummary) -> dict[str, str]:
    known = {
        "graph": graph.name, "backend": summary.backend, "target": summary.target,
        "library": summary.build_id, "core API": summary.core_api, "backend API": summary.backend_api,
        "blob version": summary.blob_version, "bytes": f"{summary.bytes:,}",
        "graphs in the binary": f"{len(info.graphs):,}",
        "bytes of inputs": f"{_bytes(graph.inputs):,}", "bytes of outputs": f"{_bytes(graph.outputs):,}",
    }  # fmt: skip
    return {name: text for name, text in known.items() if text} | dict(_settings(graph))


def _bytes(items: Sequence[IoTensor]) -> int:
    total = 0
    for item in items:
        try:
            width = DType(item.tensor.dtype).numpy.itemsize
        except ValueError:
            return 0
        total += prod(item.tensor.dims) * width
    return total


def _settings(graph: GraphInfo) -> list[tuple[str, str]]:
    """What HTP says of how it compiled the graph, with its sizes."""
    blob = graph.htp
    if blob is None:
        return []
    found: list[tuple[str, str]] = []
    for field in dataclasses.fields(blob):
        value = getattr(blob, field.name)
        parts = dataclasses.fields(value) if dataclasses.is_dataclass(value) else None
        rows = [(field.name, value)] if parts is None else [(p.name, getattr(value, p.name)) for p in parts]
        found += [(name.replace("_", " "), f"{number:,}") for name, number in rows if number is not None]
    return found
