"""Folders of a run: a folder with date and time below the mode's, a link to the latest, options and a log."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from openqnn.errors import OutputError
from openqnn.formats.atomic import replacing

LATEST = "latest"
WITHOUT_LATEST = ("wrapper",)


class RunFolder:
    """The folder of one run of one mode."""

    def __init__(self, working: str, mode: str, name: str = "") -> None:
        self.mode = mode
        self.home = Path(working) / mode
        self.path = self._made(name or datetime.now().strftime("%Y-%m-%d_%H-%M-%S"), bool(name))

    def _made(self, name: str, chosen: bool) -> Path:
        for number in range(1, 1000):
            path = self.home / (name if number == 1 else f"{name}_{number}")
            try:
                path.mkdir(parents=True, exist_ok=chosen)
            except FileExistsError:
                continue
            except OSError as error:
                raise OutputError(f"{path}: cannot be made ({error.strerror})") from error
            return path
        raise OutputError(f"{self.home / name}: there are too many runs of this second")

    def write_options(self, options: Mapping[str, Any], name: str = "") -> None:
        with replacing(self.path / f"{name or self.mode}_options.json") as file:
            file.write(json.dumps(options, indent=2).encode())

    def link_latest(self) -> None:
        """`latest` stands for this run; what somebody put there himself stays."""
        link = self.home / LATEST
        if self.mode in WITHOUT_LATEST or (link.exists() and not link.is_symlink()):
            return
        with suppress(OSError):  # a file system without links
            fresh = self.home / f".{LATEST}.{os.getpid()}"
            fresh.symlink_to(self.path.name, target_is_directory=True)
            fresh.replace(link)

    @contextmanager
    def logged(self) -> Generator[None]:
        """What is printed is in log.txt, too, however the block ends."""
        with (
            (self.path / "log.txt").open("a", encoding="utf-8") as log,
            redirect_stdout(_Tee(sys.stdout, log)),
            redirect_stderr(_Tee(sys.stderr, log)),
        ):
            yield
        self.link_latest()


class _Tee(io.TextIOBase):
    """A stream that writes to two."""

    def __init__(self, shown: TextIO, log: TextIO) -> None:
        self.shown, self.log = shown, log

    def write(self, text: str) -> int:
        self.log.write(text)
        return self.shown.write(text)

    def flush(self) -> None:
        self.log.flush()
        self.shown.flush()

    def isatty(self) -> bool:
        return False
