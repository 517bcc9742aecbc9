"""The viewer's page: one HTML file with everything in it, that asks for nothing from any other address."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from openqnn.viewer.bundle_scripts import page_script
from openqnn.viewer.group_records import group_records
from openqnn.viewer.group_tree import group_tree
from openqnn.viewer.match_views import match_views, with_scopes
from openqnn.viewer.view import Overlay, View, ViewTensor

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
SERVED_POLICY = (
    f"{POLICY}; base-uri 'none'; connect-src 'self'"  # statistics of weights are asked for one by one
)


def html_page(
    views: Sequence[View], overlays: Sequence[Overlay] = (), *, served: bool = False, home: bool = False
) -> str:
    """The page of one or several views side by side. One that is served asks for the statistics of
    weights; one with `home` leads back to the start page of its server."""
    data = page_data(views, overlays, embed=not served) | ({"home": True} if home else {})
    return html_of(data, served=served)


def html_of(data: Mapping[str, Any], *, served: bool = False) -> str:
    """The page around data for its script."""
    body = _static("viewer.html")
    for name, text in (
        ("POLICY", SERVED_POLICY if served else POLICY),
        ("STYLE", _static("viewer.css")),
        ("SCRIPT", page_script()),
        ("DATA", _for_script(data)),
    ):
        body = body.replace(f"@@{name}@@", text, 1)
    return body


def page_data(
    views: Sequence[View], overlays: Sequence[Overlay] = (), *, embed: bool = True
) -> dict[str, Any]:
    """What the page's script reads: panes with groups and edges, and what differs from pane to pane."""
    panes = [pane_record(view, overlays, embed=embed) for view in with_scopes(views)]
    title = _first_shown(views, overlays, panes)
    diffs = [match_views(a, b) for a, b in pairwise(views)]
    return {"panes": panes, "diffs": diffs} | ({"shown": title} if title else {})


def _first_shown(
    views: Sequence[View], overlays: Sequence[Overlay], panes: Sequence[Mapping[str, Any]]
) -> str:
    """The overlay that is chosen at the start: the first of those that were given, or what a list tells."""
    there = {overlay["title"] for pane in panes for overlay in pane["overlays"]}
    lists = [view for view, pane in zip(views, panes, strict=True) if view.overlays and not pane["edges"]]
    told = (*(o.title for o in overlays), *(view.overlays[0].title for view in lists))
    return next((title for title in told if title in there), "")


def pane_record(view: View, overlays: Sequence[Overlay] = (), *, embed: bool = True) -> dict[str, Any]:
    """A view as JSON; with `embed` the statistics of its weights are part of it."""
    edges = view.edges()
    nodes = [node.record() for node in view.nodes]
    if embed:
        _embed_figures(view, nodes)
    return {
        "title": view.title,
        "kind": view.kind,
        "facts": view.facts,
        "nodes": nodes,
        "edges": edges,
        "groups": group_records(group_tree(view), len(view.nodes), edges),
        "marks": view.mark_records(),
        "overlays": [overlay.record() for overlay in (*view.overlays, *_fitting(view, overlays))],
    }


def _embed_figures(view: View, nodes: Sequence[dict[str, Any]]) -> None:
    for node, record in zip(view.nodes, nodes, strict=True):
        for side in ("inputs", "outputs"):
            tensors: tuple[ViewTensor, ...] = getattr(node, side)
            for tensor, told in zip(tensors, record[side], strict=True):
                if tensor.weight is not None:
                    told["statistics"] = tensor.figures()


def _fitting(view: View, overlays: Sequence[Overlay]) -> list[Overlay]:
    """Overlays with the names that the view's nodes have; those that speak of none of them are left out."""
    names: dict[str, str] = {}
    for node in reversed(view.nodes):  # libraries know a node by a name that C takes
        names |= {
            re.sub(r"\W", "_", node.name).lstrip("_"): node.name,
            re.sub(r"\W", "_", node.name): node.name,
        }
    for node in reversed(view.nodes):
        names |= dict.fromkeys(node.keys, node.name)
    names |= {node.name: node.name for node in view.nodes}
    return [found for overlay in overlays if (found := overlay.renamed(names)).is_about_something]


def _for_script(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element around it, whatever a model's author named a tensor."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _static(name: str) -> str:
    return files("openqnn.viewer").joinpath("static", name).read_text(encoding="utf-8")
