"""openqnn view: models in the browser, or as one HTML file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.serve_pages import serve_pages
from openqnn.cli.shared.view_beside import is_view_page
from openqnn.errors import OutputError, UsageError
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.view import ViewOptions

if TYPE_CHECKING:
    from openqnn.viewer.server import Answer, Pages, Query
    from openqnn.viewer.view import View


def run_view(arguments: Namespace) -> int | Report:
    options = read_options(arguments, ViewOptions)
    if options.html:
        _check_page(Path(options.html))
    if options.passes:
        _check_passes(options)
    shown = _passes(options) if options.passes else _side_by_side(options)
    if not options.html:
        return serve_pages(shown.pages, options.port, not options.no_browser)
    from openqnn.formats.atomic import replacing

    page = shown.whole()
    with replacing(options.html) as file:
        file.write(page.encode("utf-8"))
    nodes = " and ".join(f"{count:,}" for count in shown.nodes)
    record = {"output": options.html, "nodes": list(shown.nodes), "bytes": len(page)}
    return Report(record, lambda: print(f"{options.html}: {nodes} nodes, {len(page):,} bytes"))


@dataclass(frozen=True, slots=True)
class Shown:
    """What is to be looked at: the page in one file, and the pages of a server."""

    whole: Callable[[], str]
    pages: Pages
    nodes: tuple[int, ...]


def _side_by_side(options: ViewOptions) -> Shown:
    from openqnn.viewer.open_views import side_by_side
    from openqnn.viewer.page import html_page
    from openqnn.viewer.read_overlays import read_overlays
    from openqnn.viewer.weight_answers import PATH, WeightAnswers

    overlays = [overlay for path in options.overlays for overlay in read_overlays(path)]
    settings = options.settings()
    files = [_views(model, settings, options.converted) for model in options.models]
    views = [view for file in files for view in file] if options.converted else side_by_side(files)
    weights = WeightAnswers(views)

    def pages(path: str, query: Query) -> str | Answer | None:
        if path == PATH:
            return weights(query)
        return html_page(views, overlays, served=True) if path == "/" else None

    return Shown(lambda: html_page(views, overlays), pages, tuple(len(view.nodes) for view in views))


def _passes(options: ViewOptions) -> Shown:
    from openqnn.viewer.page import html_of
    from openqnn.viewer.pass_views import log_passes, pass_page_data
    from openqnn.viewer.read_overlays import read_overlays

    overlays = [overlay for path in options.overlays for overlay in read_overlays(path)]
    (model,) = options.models
    log = log_passes(model, options.settings())
    data = pass_page_data(model, log, overlays)
    page = lambda: html_of(data)
    nodes = tuple(len(pane["nodes"]) for pane in data["panes"])
    return Shown(page, lambda path, _: page() if path == "/" else None, nodes)


def _check_passes(options: ViewOptions) -> None:
    if len(options.models) != 1:
        raise UsageError("--passes shows one model at a time", hint="give a single MODEL")
    if options.converted:
        raise UsageError("--passes and --converted exclude each other", hint="leave one of them out")


def _check_page(target: Path) -> None:
    """A page of the viewer may be replaced, other files of the user's not."""
    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint="give the name of a file")
    if target.exists() and not is_view_page(target):
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
    (ViewOptions, OwnOps),
    run_view,
    examples=(
        "openqnn view model.onnx --converted",
        "openqnn view before.dlc after.dlc",
        "openqnn view model.oqnn --html model.html --no_browser",
    ),
)
