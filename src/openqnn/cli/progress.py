"""Progress of long work on stderr, for people; silent and free of cost when nobody watches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Stages:
    """A progress bar for each stage of the work."""

    def __init__(self, quiet: bool = False) -> None:
        self._progress = None if quiet or not sys.stderr.isatty() else _bars()
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Stages:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, stage: str, done: int, total: int) -> None:
        if self._progress is None:
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done)


def _bars() -> Progress:
    from rich.console import Console  # takes a good part of a small model's conversion to import
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
