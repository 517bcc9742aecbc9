"""Standard streams that always take what a command prints: closed, full or narrow ones, and names from files.

A model may name a tensor by an escape sequence, which a terminal would obey; other letters may be missing in
the encoding of a stream. Both are written as escapes.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]")


def harmless_text(text: str) -> str:
    """The text with control characters in words, so that no terminal acts on them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def mend_descriptors() -> None:
    """Open what was closed: another file would get the number, and be written over as the standard stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@contextmanager
def plain_streams() -> Generator[None]:
    """Inside, what is printed is harmless, and nothing that is wrong with stderr stops the work."""
    before = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, PlainStream(sys.stdout, forgiving=False))
    sys.stderr = cast(TextIO, PlainStream(sys.stderr, forgiving=True))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def behind(stream: TextIO) -> TextIO:
    """The stream itself, for who makes the text harmless where it comes from and adds colours."""
    return stream.stream if isinstance(stream, PlainStream) else stream


class PlainStream(io.TextIOBase):
    """A text stream before another one."""

    def __init__(self, stream: TextIO | None, *, forgiving: bool) -> None:
        super().__init__()
        # Python has no stream at all where the descriptor was closed when it started.
        self.stream: Any = io.StringIO() if stream is None else stream
        self._forgiven = (OSError, ValueError) if forgiving else ()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str, /) -> int:
        with suppress(*self._forgiven):
            self.stream.write(harmless_text(text))
        return len(text)

    def flush(self) -> None:
        with suppress(*self._forgiven):
            self.stream.flush()

    def isatty(self) -> bool:
        return bool(self.stream.isatty())

    def fileno(self) -> int:
        return int(self.stream.fileno())

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return str(getattr(self.stream, "encoding", None) or "utf-8")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
