"""Files mapped into memory, of which weights are read when they are needed, and whether they changed.

A file that is replaced by renaming leaves the mapping as it was. One that is overwritten in place does not:
the system ends a process that reads beyond a new end, and what lies before it are other numbers.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

from openqnn.errors import ModelError


class MappedFile(NamedTuple):
    """A file as it was when it was mapped."""

    path: Path
    device: int
    number: int
    size: int
    changed: int


_files: WeakKeyDictionary[mmap.mmap, MappedFile] = WeakKeyDictionary()


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, read when they are looked at; OSError, or ValueError for an empty file."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _files[mapped] = MappedFile(
        Path(path).absolute(), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    )
    return memoryview(mapped)


def files_behind(arrays: Iterable[NDArray[Any]]) -> tuple[MappedFile, ...]:
    """The mapped files that arrays are views of."""
    return tuple(dict.fromkeys(file for array in arrays if (file := _file_behind(array))))


def _file_behind(array: NDArray[Any]) -> MappedFile | None:
    base: Any = array
    while not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        if base is None:
            return None
    return _files.get(base)


def check_unchanged(files: Iterable[MappedFile]) -> None:
    """ModelError for a file that somebody has written into since it was mapped."""
    for file in files:
        try:
            found = os.stat(file.path)
        except OSError:
            continue  # its name is gone, and the mapping has what was there
        same = (found.st_dev, found.st_ino) == (file.device, file.number)
        if same and (found.st_size, found.st_mtime_ns) != (file.size, file.changed):
            raise ModelError(
                f"{file.path} was overwritten while its weights were in use: the numbers are lost",
                hint="load it again; `mv` replaces a file without harm, `cp` writes into it",
            )
