"""Keep what a C library prints away from the user's stdout and stderr.

The vendor libraries print progress on the C level, below `sys.stdout`; only redirecting the file descriptors
catches that. The redirection is for the whole process, so it is shared: the first caller puts it up, the last
one takes it down, and calls from several threads run side by side.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

from openqnn.worker.c_function import c_function

_STREAMS = (1, 2)
_fflush = c_function("fflush")


class _Redirection:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._saved: dict[int, int] = {}
        self._file: int | None = None

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._put_up()

    def leave(self) -> str:
        """Undo one `enter`; the last one gets the text that was printed."""
        with self._lock:
            self._depth -= 1
            return self._take_down() if self._depth == 0 else ""

    def _put_up(self) -> None:
        flush()
        if self._file is None:
            self._file = scratch_file()
        for stream in _STREAMS:
            try:
                self._saved[stream] = os.dup(stream)
            except OSError:
                continue  # a daemon may have closed it: then nothing can leak through it either
            os.dup2(self._file, stream)

    def _take_down(self) -> str:
        flush()
        for stream, saved in self._saved.items():
            os.dup2(saved, stream)
            os.close(saved)
        self._saved.clear()
        assert self._file is not None
        text = read(self._file)
        if text:
            empty(self._file)
        return text


_redirection = _Redirection()


@contextmanager
def captured_output(printed: deque[str]) -> Generator[None, None, None]:
    """Redirect file descriptors 1 and 2, then append the lines printed on them to `printed`."""
    _redirection.enter()
    try:
        yield
    finally:
        printed.extend(_redirection.leave().splitlines())


def scratch_file() -> int:
    """The descriptor of a file without a name, for output that somebody else writes."""
    descriptor, name = tempfile.mkstemp(prefix="openqnn-")
    os.unlink(name)
    return descriptor


def empty(file: int) -> None:
    """Forget what was written. Writers share the offset, so that they start over as well."""
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)


def read(file: int) -> str:
    """All that was written; the writers' position stays where it is."""
    size = os.fstat(file).st_size
    if not size:
        return ""
    if hasattr(os, "pread"):
        return os.pread(file, size, 0).decode(errors="replace")
    place = os.lseek(file, 0, os.SEEK_CUR)
    os.lseek(file, 0, os.SEEK_SET)
    text = os.read(file, size).decode(errors="replace")
    os.lseek(file, place, os.SEEK_SET)
    return text


def flush() -> None:
    """Empty Python's and C's buffers, so that each text goes where it was meant to go."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:  # pyright: ignore[reportUnnecessaryComparison]
            stream.flush()
    _fflush(None)
