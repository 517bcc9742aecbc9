"""ELF libraries as far as they can be told without loading them: machine, symbols given and wanted."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from openqnn.errors import LibraryError

MACHINES: Final = {3: "32-bit x86", 40: "32-bit Arm", 62: "x86_64", 164: "Hexagon", 183: "aarch64"}
_DYNAMIC, _DYNSYM = 6, 11  # kinds of sections
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY = struct.Struct("<qQ")
_NEEDED = 1
_WEAK = 2


@dataclass(frozen=True, slots=True)
class ElfLibrary:
    """What a library is for, the libraries it needs, the names that it gives to others and wants of them."""

    machine: str
    given: tuple[str, ...]
    wanted: tuple[str, ...]
    needed: tuple[str, ...] = ()


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
        sections = _sections(data)
        given, wanted = _symbols(data, sections)
        needed = tuple(_libraries(data, sections))
    except (struct.error, IndexError, ValueError) as e:
        raise LibraryError(f"{path}: the file is damaged or cut off: {e}", hint="build it again") from e
    return ElfLibrary(machine, tuple(given), tuple(wanted), needed)


def _sections(data: bytes) -> list[tuple[int, ...]]:
    place = struct.unpack_from("<Q", data, 40)[0]
    size, count = struct.unpack_from("<HH", data, 58)
    return [_SECTION.unpack_from(data, place + i * size) for i in range(count)]


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode("ascii", "replace")


def _libraries(data: bytes, sections: list[tuple[int, ...]]) -> list[str]:
    table = next((s for s in sections if s[1] == _DYNAMIC), None)
    if table is None:
        return []
    texts = sections[table[6]][4]
    entries = [_ENTRY.unpack_from(data, at) for at in range(table[4], table[4] + table[5], _ENTRY.size)]
    return [_text(data, texts + value) for tag, value in entries if tag == _NEEDED]


def _symbols(data: bytes, sections: list[tuple[int, ...]]) -> tuple[list[str], list[str]]:
    table = next((s for s in sections if s[1] == _DYNSYM), None)
    if table is None:
        return [], []
    texts = sections[table[6]][4]
    given, wanted = list[str](), list[str]()
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
        if name and (section or info >> 4 != _WEAK):
            (given if section else wanted).append(_text(data, texts + name))
    return given, wanted
