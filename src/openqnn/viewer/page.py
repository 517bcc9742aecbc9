"""The viewer's page: one HTML file with everything in it, that asks for nothing from any address."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from openqnn.viewer.layout import layout
from openqnn.viewer.match_views import match_views
from openqnn.viewer.view import Overlay, View

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def html_page(views: Sequence[View], overlays: Sequence[Overlay] = ()) -> str:
    """The page of one or several views side by side."""
    data = _for_script(page_data(views, overlays))
    body = _static("viewer.html")
    for name, text in (
        ("POLICY", POLICY),
        ("STYLE", _static("viewer.css")),
        ("SCRIPT", _static("viewer.js")),
        ("DATA", data),
    ):
        body = body.replace(f"@@{name}@@", text, 1)
    return body


def page_data(views: Sequence[View], overlays: Sequence[Overlay] = ()) -> dict[str, Any]:
    """What the page's script reads: panes with places and edges, and what differs from pane to pane."""
    panes = [_pane(view, overlays) for view in views]
    return {"panes": panes, "diffs": [match_views(a, b) for a, b in pairwise(views)]}


def _pane(view: View, overlays: Sequence[Overlay]) -> dict[str, Any]:
    edges = view.edges()
    places = layout(len(view.nodes), edges)
    return {
        "title": view.title,
        "kind": view.kind,
        "facts": view.facts,
        "nodes": [node.record() for node in view.nodes],
        "edges": edges,
        "places": [[round(x, 1), round(y, 1)] for x, y in places.places],
        "size": [places.width, places.height],
        "overlays": [overlay.record() for overlay in (*view.overlays, *overlays) if overlay.values],
    }


def _for_script(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element around it, whatever a model's author named a tensor."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _static(name: str) -> str:
    return files("openqnn.viewer").joinpath("static", name).read_text(encoding="utf-8")
