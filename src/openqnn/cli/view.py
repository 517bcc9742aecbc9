"""openqnn view and qnn-netron: models in the browser."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.tool import Tool
from openqnn.errors import InputError, OutputError
from openqnn.options.field import read_options
from openqnn.options.view import NetronOptions, ViewOptions

if TYPE_CHECKING:
    from openqnn.viewer.server import Pages
    from openqnn.viewer.view import View

PAGE_MARK = "<title>OpenQNN viewer</title>"


def run_view(arguments: Namespace) -> int:
    from openqnn.viewer.open_views import read_overlay
    from openqnn.viewer.page import html_page

    options = read_options(arguments, ViewOptions)
    settings: dict[str, Any] = {
        "input_shapes": dict(options.input_shapes), "dims": dict(options.dims), "batch": options.batch
    }  # fmt: skip
    if options.html:
        _check_page(Path(options.html))
    overlays = [read_overlay(path) for path in options.overlays]
    views = [view for model in options.models for view in _views(model, settings, options.converted)]
    page = html_page(views, overlays)
    if not options.html:
        return _serve(lambda path, _: page if path == "/" else None, options.port, not options.no_browser)
    from openqnn.formats.atomic import replacing

    with replacing(options.html) as file:
        file.write(page.encode("utf-8"))
    nodes = " and ".join(f"{len(view.nodes):,}" for view in views)
    print(f"{options.html}: {nodes} nodes, {len(page):,} bytes")
    return 0


def _check_page(target: Path) -> None:
    """A page of the viewer may be replaced, other files of the user's not."""
    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint="give the name of a file")
    if target.exists() and PAGE_MARK not in target.read_text(encoding="utf-8", errors="replace")[:4096]:
        raise OutputError(f"{target} exists and is not a page of this viewer", hint="give another name")


def _views(model: str, settings: dict[str, Any], converted: bool) -> list[View]:
    from openqnn.api.files import open_graph
    from openqnn.viewer.from_graph import view_from_graph
    from openqnn.viewer.match_views import SOURCE
    from openqnn.viewer.open_views import open_views

    views = open_views(model, settings)
    if converted and views[0].kind == SOURCE:
        views.append(
            view_from_graph(open_graph(model, **settings), f"{Path(model).stem} as QNN", "QNN graph")
        )
    return views


def run_netron(arguments: Namespace, _: str) -> int:
    from openqnn.viewer.folder_pages import FolderPages

    options = read_options(arguments, NetronOptions)
    folder = Path(options.work_dir or ".")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", hint="-w names the folder in which models are")
    return _serve(FolderPages(folder.resolve()), options.port, not options.no_browser)


def _serve(pages: Pages, port: int, browser: bool) -> int:
    """Serve until Ctrl-C, which is how it is meant to end."""
    import webbrowser

    from openqnn.viewer.server import ViewServer

    try:
        server = ViewServer(pages, port)
    except OSError as error:
        raise OutputError(
            f"port {port} cannot be opened: {error.strerror}", hint="leave --port out"
        ) from error
    print(f"{server.address}\nCtrl-C ends it.", flush=True)
    if browser:
        webbrowser.open(server.address)
    try:
        server.serve()
    except KeyboardInterrupt:
        return 0
    return 0


TOOLS = (
    Tool(
        "qnn-netron",
        "Look at the models of a folder in the browser, alone or side by side with what differs.",
        "[-w DIR]",
        (NetronOptions,),
        run_netron,
    ),
)
