"""Why a library does not load, and what to do about it: the loader's messages in words."""

from __future__ import annotations

import platform
import re
import struct
from pathlib import Path

_MACHINES = {3: "32-bit x86", 40: "32-bit Arm", 62: "x86_64", 164: "Hexagon", 183: "aarch64"}
_ELF = b"\x7fELF"
_HEADER = struct.Struct("<4sB27xQ14xHH")  # magic, class, and the table of segments: offset, entry size, count
_SEGMENT = struct.Struct("<8xQ16xQ")  # offset and size in the file
_64_BITS = 2
CUT_OFF = "file too short"
"""The loader's own words for a file that ends too early."""
_PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        r"version `GLIBC_([\d.]+)' not found",
        "it needs glibc {0}, and this machine has {glibc}",
        "use a newer Linux, or a container with one (Ubuntu 22.04 or later)",
    ),
    (
        r"version `((?:GLIBCXX|CXXABI)_[\d.]+)' not found",
        "it needs a newer libstdc++ ({0})",
        "apt-get install libstdc++6, or use a newer Linux",
    ),
    (
        r"^([^:/]+\.so[\w.]*): cannot open shared object file",
        "it depends on {0}, which is not installed",
        "install the package that has {0}, or add its folder to LD_LIBRARY_PATH",
    ),
    (
        r"undefined symbol: (\S+)",
        "it wants the symbol {0}, which no library here has",
        "do not mix libraries of different QNN versions in one folder or in LD_LIBRARY_PATH",
    ),
    (
        r"(?:invalid ELF header|file too short|file data|ELF load command)",
        "the file is damaged or cut off",
        "install it again",
    ),
    (r"[Pp]ermission denied", "it may not be read", "check the rights of the file and its folders"),
    (
        r"[Cc]annot allocate memory|cannot map zero-fill pages",
        "there is not enough memory to load it",
        "free memory, or allow more (ulimit -v, the limit of the container)",
    ),
    (r"failed to map segment", "the system does not let it be executed", "is its folder mounted noexec?"),
)


def explain_load(path: str, error: str) -> tuple[str, str]:
    """The loader's message in words, and what to do; the message itself where it is not a known one."""
    foreign = _foreign(Path(path))
    if foreign:
        return foreign
    for pattern, reason, advice in _PATTERNS:
        found = re.search(pattern, error)
        if found:
            return reason.format(*found.groups(), glibc=glibc()), advice.format(*found.groups())
    return error, "see what `ldd` says about the file"


def is_cut_off(path: Path) -> bool:
    """Whether segments end behind the file: the loader maps them all the same, and dies of a bus error."""
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return False  # the loader says so itself
        magic, kind, offset, size, count = _HEADER.unpack(head)
        if magic != _ELF or kind != _64_BITS:
            return False
        if offset > path.stat().st_size:
            return True
        file.seek(offset)
        table = file.read(size * count)
    if len(table) < size * count or size < _SEGMENT.size:
        return True
    ends = (sum(_SEGMENT.unpack_from(table, i * size)) for i in range(count))
    return max(ends, default=0) > path.stat().st_size


def glibc() -> str:
    """The version of the C library, or what is there instead."""
    name, version = platform.libc_ver()
    return version if name == "glibc" else "no glibc"


def _foreign(path: Path) -> tuple[str, str] | None:
    """What the loader calls a missing file or a wrong class: a library for another machine, or no library."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        return f"the file cannot be read: {error.strerror}", "check the path and the rights of the file"
    if head[:4] != _ELF:
        return "it is not a Linux library", "give the file for Linux on this machine"
    machine = _MACHINES.get(int.from_bytes(head[18:20], "little"), "another machine")
    if machine != platform.machine():
        return (
            f"it is for {machine}, and this machine is {platform.machine()}",
            f"use the SDK's libraries for {platform.machine()} (lib/x86_64-linux-clang on PCs)",
        )
    return None
