"""Context binaries inside other files: ExecuTorch's .pte, LiteRT's compiled .tflite, EPContext models.

These formats hold a binary as it is, so it is found by its own header, whatever is around it: four words that
every context of QNN 2.24 and later begins with, then the place and size of its content, which tell its end.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openqnn.errors import ModelError

_HEADER = struct.Struct("<QQQ")
_WORDS = struct.pack(">IIII", 2, 3, 0, 1)
_OLDER = struct.pack(">IIII", 2, 2, 0, 0)
_HOLDERS = {b"ET12": "an ExecuTorch program", b"ET13": "an ExecuTorch program", b"TFL3": "a TFLite model"}
_METADATA = len(_WORDS) + _HEADER.size


@dataclass(frozen=True, slots=True)
class EmbeddedContext:
    """A context binary from `start` on, `size` bytes long."""

    start: int
    size: int


def holder_of(path: str | os.PathLike[str]) -> str:
    """What kind of file it is, where it is one that may hold contexts."""
    with Path(path).open("rb") as file:
        return _HOLDERS.get(file.read(8)[4:], "")


def embedded_contexts(data: bytes) -> Iterator[EmbeddedContext]:
    """Each context in the bytes of a file, in order."""
    place = data.find(_WORDS)
    while place >= 0:
        found = _at(data, place)
        if found is not None:
            yield found
        place = data.find(_WORDS, place + (found.size if found is not None else 1))


def _at(data: bytes, place: int) -> EmbeddedContext | None:
    """The context that begins here, if what its header says can be."""
    if place + _METADATA > len(data):
        return None
    metadata, start, size = _HEADER.unpack_from(data, place + len(_WORDS))
    whole = start + size
    inside = _METADATA + metadata <= start and metadata > 0 and size > 0 and place + whole <= len(data)
    return EmbeddedContext(place, whole) if inside else None


def contexts_in(path: str | os.PathLike[str]) -> list[bytes]:
    """The context binaries in a file; ModelError where there is none."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    found = [data[each.start : each.start + each.size] for each in embedded_contexts(data)]
    if found:
        return found
    if _WORDS in data:
        raise ModelError(
            f"{path}: the context binary in it is cut off", hint="the copy may be incomplete: fetch it again"
        )
    if _OLDER in data:
        raise ModelError(f"{path} has a context of an SDK before 2.24, whose header does not tell its size")
    what = _HOLDERS.get(data[4:8], "the file")
    raise ModelError(f"{path} holds no QNN context: {what} has no context binary in it")
