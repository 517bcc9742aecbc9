"""The start page of `qnn-netron`: the models of a folder, to be opened alone or side by side."""

from __future__ import annotations

from html import escape
from pathlib import Path

from openqnn.errors import OpenQnnError
from openqnn.viewer.open_views import open_views, side_by_side
from openqnn.viewer.page import html_page
from openqnn.viewer.server import Answer, Query
from openqnn.viewer.weight_answers import PATH as WEIGHT
from openqnn.viewer.weight_answers import WeightAnswers

SUFFIXES = (".onnx", ".oqnn", ".dlc", ".so", ".bin", ".tflite", ".pt2", ".prototxt", "_net.json")
MOST = 500
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:60rem}li{list-style:none;padding:2px 0}"
)


class FolderPages:
    """Files are asked for by their number in the list, so that no address can name another file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: tuple[tuple[Path, ...], WeightAnswers] | None = None
        self.files = sorted(p for p in folder.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file())[:MOST]

    def __call__(self, path: str, query: Query) -> str | Answer | None:
        if path == "/":
            return self._start(query)
        if path == "/view":
            return self._view(query)
        if path == WEIGHT:
            return self._weight(query)
        return None

    def _start(self, query: Query) -> str:
        rows = [
            f'<li><label><input type="checkbox" name="file" value="{number}"> '
            f"{escape(str(file.relative_to(self.folder)))} ({file.stat().st_size:,} bytes)</label></li>"
            for number, file in enumerate(self.files)
        ]
        token = escape(query["token"][0], quote=True)
        body = "".join(rows) or "<p>There is no model in this folder.</p>"
        return _document(
            "OpenQNN viewer",
            f"<h1>{escape(str(self.folder))}</h1><p>Choose one file to look at it, or several to compare.</p>"
            f'<form action="/view"><input type="hidden" name="token" value="{token}"><ul>{body}</ul>'
            "<button>Open</button></form>",
        )

    def _view(self, query: Query) -> str:
        chosen = self._chosen(query)
        if not chosen:
            return _document("Nothing chosen", "<p>Choose at least one file, and go back for that.</p>")
        try:
            views = side_by_side([open_views(file) for file in chosen])
        except OpenQnnError as error:
            return _document("This file cannot be shown", f"<pre>{escape(str(error))}</pre>")
        self._opened = (chosen, WeightAnswers(views))
        return html_page(views, served=True)

    def _weight(self, query: Query) -> Answer | None:
        """Statistics of a file's weight; the files that were opened last are held."""
        chosen = self._chosen(query)
        if not chosen:
            return None
        if self._opened is None or self._opened[0] != chosen:
            try:
                views = side_by_side([open_views(file) for file in chosen])
            except OpenQnnError:
                return None
            self._opened = (chosen, WeightAnswers(views))
        return self._opened[1](query)

    def _chosen(self, query: Query) -> tuple[Path, ...]:
        numbers = [int(text) for text in query.get("file", []) if text.isdecimal() and len(text) < 6]
        return tuple(self.files[number] for number in numbers if number < len(self.files))


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{body}</body></html>"
    )
