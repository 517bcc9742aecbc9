"""ELF libraries as far as they can be told without loading them: machine, symbols given and wanted."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from openqnn.errors import LibraryError

MACHINES: Final = {3: "32-bit x86", 40: "32-bit Arm", 62: "x86_64", 164: "Hexagon", 183: "aarch64"}
_DYNSYM = 11
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_WEAK = 2


@dataclass(frozen=True, slots=True)
class ElfLibrary:
    """What a library is for, and the names that it gives to others and wants of them."""

    machine: str
    given: tuple[str, ...]
    wanted: tuple[str, ...]


def read_elf(path: str | os.PathLike[str]) -> ElfLibrary:
    """LibraryError where the file is no 64-bit ELF library, or a damaged one."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise LibraryError(f"{path}: cannot be read: {e.strerror or e}") from e
    if data[:4] != b"\x7fELF":
        raise LibraryError(f"{path}: it is not a Linux library", hint="give the .so that make built")
    machine = MACHINES.get(int.from_bytes(data[18:20], "little"), "another machine")
    if data[4] != 2:
        return ElfLibrary(machine, (), ())
    try:
        given, wanted = _symbols(data)
    except (struct.error, IndexError, ValueError) as e:
        raise LibraryError(f"{path}: the file is damaged or cut off: {e}", hint="build it again") from e
    return ElfLibrary(machine, tuple(given), tuple(wanted))


def _symbols(data: bytes) -> tuple[list[str], list[str]]:
    place = struct.unpack_from("<Q", data, 40)[0]
    size, count = struct.unpack_from("<HH", data, 58)
    sections: list[tuple[int, ...]] = [_SECTION.unpack_from(data, place + i * size) for i in range(count)]
    table = next((s for s in sections if s[1] == _DYNSYM), None)
    if table is None:
        return [], []
    texts = sections[table[6]][4]
    given, wanted = list[str](), list[str]()
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
        if name and (section or info >> 4 != _WEAK):
            end = data.index(b"\0", texts + name)
            (given if section else wanted).append(data[texts + name : end].decode("ascii", "replace"))
    return given, wanted
