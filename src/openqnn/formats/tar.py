"""Tar archives of weights: written member by member from memory, and indexed without reading the contents."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from openqnn.errors import ModelError

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: where its bytes begin in the archive, and how many there are."""

    name: str
    offset: int
    size: int


def write_tar(file: BinaryIO, members: Iterable[tuple[str, memoryview]]) -> None:
    """Plain ustar records with neutral owners and dates, so that the same weights make the same file.

    A name of more than 100 characters, which ustar cannot hold, gets an extended header of POSIX tar.
    """
    with tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, copybufsize=_CHUNK) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = data.nbytes, 0o644, 0
            archive.addfile(info, io.BufferedReader(_Memory(data), _CHUNK))


def tar_members(path: str | os.PathLike[str]) -> list[Member]:
    """The files in an archive, in order."""
    try:
        with tarfile.open(path, "r:") as archive:
            entries = [Member(e.name, e.offset_data, e.size) for e in archive if e.isreg()]
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except (tarfile.TarError, OSError) as error:
        hint = "give the .bin file that the converter wrote beside the .cpp"
        raise ModelError(
            f"{path} is not an archive of weights, or not a whole one: {error}", hint=hint
        ) from error
    return entries


class _Memory(io.RawIOBase):
    """A read-only file over memory; io.BytesIO would copy it first."""

    def __init__(self, data: memoryview) -> None:
        self._data = data.cast("B") if data.nbytes else memoryview(b"")
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        count = min(len(buffer), len(self._data) - self._at)
        buffer[:count] = self._data[self._at : self._at + count]
        self._at += count
        return count
