"""Named pipes: a command that reads one waits for somebody who may never write."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

from openqnn.errors import InputError

_OF_THE_SHELL = ("/dev/", "/proc/")  # <(...), and the standard streams
_commands: list[None] = []  # those that are running: a command may run another


@contextmanager
def refusing_pipes() -> Generator[None]:
    """Reading a named pipe is an error, whichever option or file names it; writing to one is not."""
    _hook()
    _commands.append(None)
    try:
        yield
    finally:
        _commands.pop()


@cache
def _hook() -> None:
    sys.addaudithook(_look)  # the one place that all of Python's ways to open a file pass


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if not _commands or event != "open":
        return
    path, _, flags = arguments
    if not isinstance(path, str | bytes) or not isinstance(flags, int):
        return  # a descriptor that is open already
    if flags & (os.O_WRONLY | os.O_RDWR) or os.fsdecode(path).startswith(_OF_THE_SHELL):
        return
    try:
        waits = stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # whoever opens it tells why it cannot be
    if waits:
        raise InputError(
            f"{os.fsdecode(path)} is a pipe, and may never be written to",
            hint="copy it to a file first; what a shell's <(...) gives is read",
        )
