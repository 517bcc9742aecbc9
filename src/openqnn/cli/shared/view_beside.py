"""The viewer's page beside a report: the graph that it speaks of, in which its names are looked up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openqnn.errors import OutputError
from openqnn.formats.atomic import is_stream, replacing

if TYPE_CHECKING:
    from openqnn.ir import Graph
    from openqnn.viewer.view import Overlay, View

MARK: Final = "<title>OpenQNN viewer</title>"
END: Final = ".model.html"


def view_beside(report: str | os.PathLike[str]) -> Path:
    """Where the page of a report's graph stands: report.html has report.model.html beside it."""
    place = Path(report)
    return place.with_name(f"{place.stem}{END}")


def is_view_page(path: Path) -> bool:
    """Whether a file is a page of the viewer, which may be replaced by another."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return MARK in file.read(4096)
    return False


def check_beside(report: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Before the work is done: the page replaces nothing of the user's unasked."""
    place = view_beside(report)
    if is_stream(report) or overwrite or not place.exists() or is_view_page(place):
        return
    raise OutputError(
        f"{place} exists and is not a page of the viewer: the report's names lead there",
        hint="give the report another name",
    )


def write_beside(
    report: str | os.PathLike[str], views: Sequence[View], overlays: Sequence[Overlay] = ()
) -> str:
    """Writes the page, coloured by the first overlay, and gives the name by which the report links to it:
    none where the report goes into a stream."""
    from openqnn.viewer.page import html_page

    if is_stream(report) or not views:
        return ""
    place = view_beside(report)
    with replacing(place) as file:
        file.write(html_page(views, overlays).encode())
    return place.name


def write_graph_beside(
    report: str | os.PathLike[str], graph: Graph, title: str, overlays: Sequence[Overlay] = ()
) -> str:
    """Writes the page of one QNN graph beside a report, and gives the name for links to it."""
    from openqnn.viewer.from_graph import view_from_graph

    return write_beside(report, [view_from_graph(graph, title, "QNN graph")], overlays)
