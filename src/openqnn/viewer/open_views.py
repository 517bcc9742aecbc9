"""Views of any file: each graph that it holds is one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openqnn.analysis.sources import HOLDS_SEVERAL, NET_JSON, read_nets
from openqnn.api.files import CONTEXT, open_graph
from openqnn.emit.graph_from_net import graph_of
from openqnn.errors import ModelError
from openqnn.formats.oqnn import is_oqnn
from openqnn.ir import Graph
from openqnn.qnn.net import Net
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.from_onnx import view_from_onnx
from openqnn.viewer.view import View

KINDS = {".dlc": "DLC", ".so": "model library", ".c": "Saver bundle", ".json": "model_net.json"}
SAVER = "saver_output.c"


def open_views(path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> list[View]:
    """The graphs of a file, or what else it tells of graphs. `settings` are those of `convert`, for models
    that nothing else reads."""
    place = Path(path)
    if not place.exists():
        raise ModelError(f"{place}: no such file")
    return [replace(view, file=str(place.absolute())) for view in _views(place, settings)]


def side_by_side(files: Sequence[Sequence[View]]) -> list[View]:
    """The graphs of several files in the order of panes: where all hold as many, the first of each, then the
    second of each."""
    if len({len(views) for views in files}) == 1:
        return [view for turn in zip(*files, strict=True) for view in turn]
    return [view for views in files for view in views]


def _views(place: Path, settings: Mapping[str, Any] | None) -> list[View]:
    if place.is_dir():
        return _folder_views(place)
    if is_oqnn(place):
        return [view_from_graph(open_graph(place), place.name, "OpenQNN graph")]
    if place.suffix == NET_JSON:
        return _json_views(place)
    if place.suffix in HOLDS_SEVERAL:
        return _record_views(place)
    if place.suffix == CONTEXT:
        from openqnn.viewer.readers.context import context_views

        return context_views(place)
    found = _source_views(place)
    return found or [view_from_graph(open_graph(place, **(settings or {})), place.name, "converted")]


def _folder_views(folder: Path) -> list[View]:
    """A SavedModel, a Saver bundle, or what a debugger left."""
    from openqnn.frontends.tensorflow.kinds import kind_of
    from openqnn.viewer.readers.debugger import debugger_view, result_file

    if kind_of(folder):
        return _source_views(folder)
    if (folder / SAVER).is_file():
        return _record_views(folder / SAVER)
    result = result_file(folder)
    if result is not None:
        return [debugger_view(result)]
    raise ModelError(
        f"{folder}: there is nothing in this folder that can be shown",
        hint="SavedModels, Saver bundles and results of debuggers are folders; of others name the file",
    )


def _record_views(path: Path) -> list[View]:
    """The graphs of a file that has them as QNN's records."""
    nets = read_nets(path)
    titles = [path.name if len(nets) == 1 else f"{path.name}: {net.name}" for net in nets]
    return [
        view_from_graph(_told_graph(net, KINDS[path.suffix]), t, KINDS[path.suffix])
        for net, t in zip(nets, titles, strict=True)
    ]


def _told_graph(net: Net, kind: str) -> Graph:
    """The graph of a record; encodings of which it tells no more came from the file."""
    graph = graph_of(net)
    for value in graph.values():
        if value.encoding is not None:
            graph.provenance.setdefault(value.name, f"the {kind}")
    return graph


def _json_views(path: Path) -> list[View]:
    """A net.json, an encodings file, or what a debugger found."""
    from openqnn.viewer.diff_runs.result_views import are_differences, result_views
    from openqnn.viewer.readers.debugger import debugger_view, is_debugger_result
    from openqnn.viewer.readers.encodings import are_encodings, encodings_view

    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: no JSON: {error}") from error
    if are_encodings(content):
        return [encodings_view(path)]
    if is_debugger_result(content):
        return [debugger_view(path)]
    if are_differences(content):
        return result_views(path)
    return _record_views(path)


def _source_views(path: Path) -> list[View]:
    """A model as its framework wrote it, and what else is told by content; nothing where it is of no kind
    that is known."""
    from openqnn.frontends import caffe, tflite
    from openqnn.frontends.tensorflow import kinds
    from openqnn.frontends.torch.archive import ArchiveKind, kind_of
    from openqnn.viewer.readers import caffe as caffe_reader
    from openqnn.viewer.readers import context, debugger, encodings, profile, pt2, saved_model
    from openqnn.viewer.readers import tflite as tflite_reader

    if path.suffix == ".onnx":
        return [view_from_onnx(path), *context.epcontext_views(path)]
    if tflite.recognizes(path):
        return tflite_reader.tflite_views(path)
    if kinds.kind_of(path) in ("saved_model", "frozen"):
        return saved_model.saved_model_views(path)
    if caffe.recognizes(path):
        return [caffe_reader.caffe_view(path)]
    if kind_of(path) is ArchiveKind.EXPORTED:
        return [pt2.pt2_view(path)]
    if path.suffix == ".encodings":
        return [encodings.encodings_view(path)]
    if profile.is_profile(path):
        return [profile.profile_view(path)]
    if path.name == debugger.NAMED[-1]:
        return [debugger.debugger_view(path)]
    return []
