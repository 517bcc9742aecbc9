"""Results of comparisons as views: the graph, with a mark at every node that differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from openqnn.analysis.sources import read_nets
from openqnn.emit.graph_from_net import graph_of
from openqnn.errors import InputError
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.view import Mark, Overlay, View

FORMAT: Final = "openqnn differences"
KEPT: Final = ("one_net.json", "two_net.json", "output_two_net.json")
_OF_WEIGHTS: Final = ("parameters", "bytes of constants")  # which are not beside the descriptions
TITLES: Final = {"one_net.json": "Inference One", "two_net.json": "Inference Two"}


def are_differences(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and content.get("format") == FORMAT
        and isinstance(content.get("nodes"), list)
    )


def result_views(path: Path) -> list[View]:
    """A view of each model that was kept beside the result; one where both are the same."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no result can be read: {error}") from error
    if not are_differences(found):
        raise InputError(f"{path}: it is no result of a comparison")
    kept = [path.with_name(name) for name in KEPT if path.with_name(name).is_file()]
    if not kept:
        raise InputError(f"{path}: the descriptions of the models are not beside it")
    contents = [file.read_bytes() for file in kept]
    kept = [file for i, file in enumerate(kept) if contents[i] not in contents[:i]]
    return [_view(file, found, path.parent.name, len(kept) > 1) for file in kept]


def _view(file: Path, found: Mapping[str, Any], name: str, several: bool) -> View:
    (net,) = read_nets(file)
    title = f"{name}: {TITLES.get(file.name, 'Outputs')}" if several else f"{name}: {found['use_case']}"
    view = view_from_graph(graph_of(net), title, "comparison")
    own = {node.name for node in view.nodes}
    rows = {row["node"]: row for row in found["nodes"] if row["node"] in own}
    facts = {
        "use case": found["use_case"], "verifier": found["verifier"],
        "accuracy threshold": f"{found['accuracy_threshold']:g}",
        "perf threshold": f"{found['perf_threshold']:g}", "nodes compared": f"{len(rows):,}",
        "nodes that differ": f"{sum(bool(row['kinds']) for row in rows.values()):,}",
    }  # fmt: skip
    of_graph = {name: text for name, text in view.facts.items() if name not in _OF_WEIGHTS}
    facts |= {f"note {i}": note for i, note in enumerate(found["notes"], 1)}
    marks = {node: Mark(tuple(row["kinds"]), tuple(row["lines"])) for node, row in rows.items()}
    return replace(view, facts=facts | of_graph, marks=marks, overlays=(*_overlays(rows), *view.overlays))


def _overlays(rows: Mapping[str, Mapping[str, Any]]) -> list[Overlay]:
    errors = {
        node: max(e for each in row["errors"].values() for e in each if e is not None)
        for node, row in rows.items()
        if any(e is not None for each in row["errors"].values() for e in each)
    }
    times = {node: 100 * row["time"] for node, row in rows.items() if row["time"] is not None}
    found = (Overlay("error between the runs", errors), Overlay("difference of times", times, "%"))
    return [overlay for overlay in found if overlay.values]
