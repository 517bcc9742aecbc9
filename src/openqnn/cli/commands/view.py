"""openqnn view: models in the browser, or as one HTML file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.serve_pages import serve_pages
from openqnn.errors import OutputError
from openqnn.options.field import read_options
from openqnn.options.view import ViewOptions

if TYPE_CHECKING:
    from openqnn.viewer.view import View

PAGE_MARK = "<title>OpenQNN viewer</title>"


def run_view(arguments: Namespace) -> int | Report:
    from openqnn.viewer.open_views import read_overlay
    from openqnn.viewer.page import html_page

    options = read_options(arguments, ViewOptions)
    settings = options.settings()
    if options.html:
        _check_page(Path(options.html))
    overlays = [read_overlay(path) for path in options.overlays]
    views = [view for model in options.models for view in _views(model, settings, options.converted)]
    page = html_page(views, overlays)
    if not options.html:
        return serve_pages(
            lambda path, _: page if path == "/" else None, options.port, not options.no_browser
        )
    from openqnn.formats.atomic import replacing

    with replacing(options.html) as file:
        file.write(page.encode("utf-8"))
    nodes = " and ".join(f"{len(view.nodes):,}" for view in views)
    record = {"output": options.html, "nodes": [len(view.nodes) for view in views], "bytes": len(page)}
    return Report(record, lambda: print(f"{options.html}: {nodes} nodes, {len(page):,} bytes"))


def _check_page(target: Path) -> None:
    """A page of the viewer may be replaced, other files of the user's not."""
    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint="give the name of a file")
    if target.exists() and PAGE_MARK not in target.read_text(encoding="utf-8", errors="replace")[:4096]:
        raise OutputError(f"{target} exists and is not a page of this viewer", hint="give another name")


def _views(model: str, settings: dict[str, Any], converted: bool) -> list[View]:
    from openqnn.api.files import open_graph
    from openqnn.viewer.from_graph import view_from_graph
    from openqnn.viewer.match_views import SOURCES
    from openqnn.viewer.open_views import open_views

    views = open_views(model, settings)
    if converted and views[0].kind in SOURCES:
        views.append(
            view_from_graph(open_graph(model, **settings), f"{Path(model).stem} as QNN", "QNN graph")
        )
    return views


COMMAND = Command(
    "view",
    "Show models in the browser: graph, tensors, overlays, and what differs between several.",
    (ViewOptions,),
    run_view,
)
