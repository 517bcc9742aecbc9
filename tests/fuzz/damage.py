"""Damaged files of every kind, by number: the same number gives the same damage."""

from __future__ import annotations

import random
from collections.abc import Callable

_WORDS = [
    b"0", b"-1", b"1e999", b"nan", b"null", b"true", b'""', b"[]", b"{}", b"9" * 40, b"9" * 5000, b"\\ud800",
    b"\x00", b"\xff\xfe", b"[" * 3000, b"{\"a\":" * 2000, b"../x", b"/etc/passwd", b"\x1b[31m", b"4294967296",
    b"-9223372036854775809",
]  # fmt: skip


def damaged(data: bytes, number: int) -> bytes:
    """The bytes with one to four damages."""
    chance = random.Random(number)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(_DAMAGES)(data, chance)
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 8))):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def _zero(data: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 16, 512))
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _drop(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 8, 100)) :]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at : at + chance.choice((1, 8, 100))] * 3 + data[at:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_WORDS) + data[at:]


def _replace(data: bytes, chance: random.Random) -> bytes:
    """A word in the place of a number or a name, where there is one."""
    at = chance.randrange(len(data) + 1)
    end = at
    while end < len(data) and chr(data[end]).isalnum():
        end += 1
    return data[:at] + chance.choice(_WORDS) + data[end:]


_DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    _flip,
    _flip,
    _zero,
    _cut,
    _drop,
    _repeat,
    _insert,
    _replace,
]
