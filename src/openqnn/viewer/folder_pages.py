"""The files of a folder, opened alone or side by side, for the server of `qnn-netron`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openqnn.errors import InputError, OpenQnnError
from openqnn.viewer.open_views import open_views, side_by_side
from openqnn.viewer.page import html_page
from openqnn.viewer.server import Answer, Query
from openqnn.viewer.weight_answers import PATH as WEIGHT
from openqnn.viewer.weight_answers import WeightAnswers


class FolderPages:
    """Files are asked for by their number in the list, so that no address can name another file."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self._opened: tuple[tuple[Path, ...], WeightAnswers] | None = None

    def __call__(self, path: str, query: Query) -> str | Answer | None:
        if path == "/view":
            return self._view(query)
        if path == WEIGHT:
            return self._weight(query)
        return None

    def _view(self, query: Query) -> str:
        chosen = self._chosen(query)
        if not chosen:
            raise InputError("nothing was chosen: choose at least one file")
        views = side_by_side([open_views(file) for file in chosen])
        self._opened = (chosen, WeightAnswers(views))
        return html_page(views, served=True, home=True)

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
