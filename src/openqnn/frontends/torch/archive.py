"""Archives that torch writes: which kind a file is, and its entries, as views of the mapped file.

They are zip archives of stored entries. Nothing is unpacked and nothing is unpickled: an entry is a stretch
of the file. Names that leave the archive, entries that lie outside of the file and compressed ones are
refused.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, cast

from openqnn.errors import ModelError
from openqnn.formats.mapped import map_file

_LOCAL = struct.Struct("<4s5H3L2H")
_MOST_ENTRIES = 1 << 20


class ArchiveKind(Enum):
    EXPORTED = "exported program"
    OLD_EXPORTED = "exported program of torch 2.7 or older"
    SCRIPT = "TorchScript"
    PICKLE = "pickle"
    OTHER = "no archive of torch"


@dataclass(frozen=True)
class Archive:
    """An opened archive: its entries by name, without the folder that torch puts around them."""

    path: Path
    kind: ArchiveKind
    entries: Mapping[str, memoryview]

    def entry(self, name: str) -> memoryview:
        if name not in self.entries:
            raise ModelError(f"{self.path}: the archive has no entry '{name}'", hint="export the model again")
        return self.entries[name]


def kind_of(source: Any) -> ArchiveKind:
    """What a file is, by the names of its entries; OTHER where it is nothing of torch's. Never raises."""
    if not isinstance(source, str | os.PathLike):
        return ArchiveKind.OTHER
    path = Path(cast("str | os.PathLike[str]", source))
    try:
        if not path.is_file():
            return ArchiveKind.OTHER
        with path.open("rb") as file:
            head = file.read(16)
        if head[:1] == b"\x80" and b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19" in head:  # torch.save before 1.6
            return ArchiveKind.PICKLE
        if head[:2] != b"PK":
            return ArchiveKind.OTHER
        with zipfile.ZipFile(path) as zipped:
            return _kind(zipped.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, struct.error):
        return ArchiveKind.OTHER


def _kind(names: list[str]) -> ArchiveKind:
    inner = [n.partition("/")[2] for n in names]
    if any(n.startswith("models/") and n.endswith(".json") for n in inner):
        return ArchiveKind.EXPORTED
    if "serialized_exported_program.json" in names or "serialized_exported_program.json" in inner:
        return ArchiveKind.OLD_EXPORTED
    if "data.pkl" in inner:
        return ArchiveKind.SCRIPT if any(n.startswith("code/") for n in inner) else ArchiveKind.PICKLE
    return ArchiveKind.OTHER


def open_archive(path: Path) -> Archive:
    """The entries of an archive as views of the mapped file; ModelError where it is damaged."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as zipped:
            infos = zipped.infolist()
        mapped = map_file(path)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, struct.error) as e:
        raise ModelError(
            f"{path}: not a whole zip archive: {e}", hint="was it downloaded or written to the end?"
        ) from e
    if len(infos) > _MOST_ENTRIES:
        raise ModelError(f"{path}: {len(infos)} entries; no export has that many")
    kind = _kind([i.filename for i in infos])
    return Archive(path, kind, {_inner(path, i): _stretch(path, mapped, i) for i in infos if not i.is_dir()})


def _inner(path: Path, info: zipfile.ZipInfo) -> str:
    """The name inside of the folder; one that leaves the archive is refused."""
    name = PurePosixPath(info.filename)
    if name.is_absolute() or ".." in name.parts or "\\" in info.filename:
        raise ModelError(f"{path}: the entry {info.filename!r} leaves the archive", hint="do not trust it")
    return info.filename.partition("/")[2]


def _stretch(path: Path, mapped: memoryview, info: zipfile.ZipInfo) -> memoryview:
    what = f"{path}: entry {info.filename!r}"
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise ModelError(f"{what} is compressed; torch stores entries as they are", hint="export it again")
    if not 0 <= info.header_offset <= len(mapped) - _LOCAL.size:
        raise ModelError(f"{what} begins outside of the file", hint="export it again")
    header = _LOCAL.unpack_from(mapped, info.header_offset)
    start = info.header_offset + _LOCAL.size + header[9] + header[10]
    if header[0] != b"PK\x03\x04" or start + info.file_size > len(mapped):
        raise ModelError(f"{what} does not lie within the file", hint="export it again")
    return mapped[start : start + info.file_size]
