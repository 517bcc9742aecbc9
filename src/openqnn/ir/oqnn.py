"""Saving and loading graphs as .oqnn files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from openqnn.errors import ModelError, UsageError
from openqnn.formats.mapped import check_unchanged, files_behind
from openqnn.formats.oqnn import read_oqnn, write_oqnn
from openqnn.ir.graph import BUILTIN_PACKAGE, Graph
from openqnn.ir.graph_text import INLINE_ELEMENTS, parse_graph, print_graph

# Writers of other files by suffix, as module and function, which are imported when asked for.
WRITERS: Mapping[str, tuple[str, str]] = {
    ".dlc": ("openqnn.api.files", "save_dlc"),
    ".onnx": ("openqnn.emit.qdq_model", "save_qdq_model"),
}
_COMPILED = "compile it: `openqnn compile`, or openqnn.compile(graph).save(...)"
_CONVERTED = "qnn-onnx-converter writes model sources, and qnn-model-lib-generator builds libraries of them"
# What these names stand for is not made by writing the graph down; nothing could read it under them.
_FOREIGN = "OpenQNN reads such models, and writes none"
_MADE_OTHERWISE = dict.fromkeys((".tflite", ".pt", ".pt2", ".pth", ".pb", ".h5", ".keras"), _FOREIGN) | {
    ".bin": _COMPILED,
    ".cpp": _CONVERTED,
    ".so": _CONVERTED,
}


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph with its constants; the file appears whole or not at all."""
    check_name(path)
    if Path(path).suffix in WRITERS:
        module, function = WRITERS[Path(path).suffix]
        getattr(import_module(module), function)(graph, path)
        return
    check_unchanged(files_behind(v.data for v in graph.constants() if v.data is not None))
    large = {v.name: v.data for v in graph.constants() if v.data is not None and v.size > INLINE_ELEMENTS}
    has_custom = any(node.package != BUILTIN_PACKAGE for node in graph.nodes)
    packages: list[str] = _store().declaration_texts(graph) if has_custom else []
    write_oqnn(path, print_graph(graph), large, packages)


def _store() -> Any:
    """Custom ops are declared where ops are, above this layer; graphs of QNN's own ops never ask."""
    return import_module("openqnn.ops.custom_store")


def check_name(path: str | os.PathLike[str]) -> None:
    """UsageError where a name is that of another kind of file."""
    if Path(path).suffix in _MADE_OTHERWISE:
        hint = _MADE_OTHERWISE[Path(path).suffix]
        raise UsageError(f"{path}: a graph is saved as .oqnn, .dlc or .onnx", hint=hint)


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Reads it back; constants stay in the mapped file."""
    text, constants, packages = read_oqnn(path)
    try:
        if packages:
            _store().declare_texts(packages, str(path))
        return parse_graph(text, constants)
    except ModelError as e:
        raise ModelError(f"{path}: {e.message}", hint=e.hint or "convert the model again") from e
