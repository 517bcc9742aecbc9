"""Flatbuffers read without their schema: tables by the numbers of their fields, every step within bounds."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_U16, _U32, _I32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<Q")


class FlatbufferError(ValueError):
    """The bytes are no flatbuffer, or a part of one."""


@dataclass(frozen=True, slots=True)
class Flatbuffer:
    """Bytes from `start` to `end`; offsets count from the beginning of `data`."""

    data: bytes
    start: int
    end: int

    def root(self) -> FlatTable:
        return FlatTable(self, self.start + self.u32(self.start))

    def u8(self, at: int) -> int:
        self._check(at, 1)
        return self.data[at]

    def u16(self, at: int) -> int:
        self._check(at, 2)
        return int(_U16.unpack_from(self.data, at)[0])

    def u32(self, at: int) -> int:
        self._check(at, 4)
        return int(_U32.unpack_from(self.data, at)[0])

    def i32(self, at: int) -> int:
        self._check(at, 4)
        return int(_I32.unpack_from(self.data, at)[0])

    def u64(self, at: int) -> int:
        self._check(at, 8)
        return int(_U64.unpack_from(self.data, at)[0])

    def bytes_at(self, at: int, length: int) -> bytes:
        self._check(at, length)
        return self.data[at : at + length]

    def _check(self, at: int, length: int) -> None:
        if at < self.start or at + length > self.end:
            raise FlatbufferError(f"offset {at} with {length} bytes is outside")


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table; a field that is not there has its default."""

    buffer: Flatbuffer
    at: int

    def field(self, number: int) -> int | None:
        """Where a field's bytes are; None where the table has none."""
        vtable = self.at - self.buffer.i32(self.at)
        size, slot = self.buffer.u16(vtable), 4 + 2 * number
        if slot + 2 > size:
            return None
        offset = self.buffer.u16(vtable + slot)
        return self.at + offset if offset else None

    def u8(self, number: int) -> int:
        at = self.field(number)
        return 0 if at is None else self.buffer.u8(at)

    def u32(self, number: int) -> int:
        at = self.field(number)
        return 0 if at is None else self.buffer.u32(at)

    def u64(self, number: int) -> int:
        at = self.field(number)
        return 0 if at is None else self.buffer.u64(at)

    def text(self, number: int) -> str:
        raw = self.raw(number)
        return raw.decode("utf-8", errors="replace")

    def raw(self, number: int) -> bytes:
        """A string or a vector of bytes."""
        at = self.field(number)
        if at is None:
            return b""
        start = at + self.buffer.u32(at)
        return self.buffer.bytes_at(start + 4, self.buffer.u32(start))

    def table(self, number: int) -> FlatTable | None:
        at = self.field(number)
        return None if at is None else FlatTable(self.buffer, at + self.buffer.u32(at))

    def tables(self, number: int) -> list[FlatTable]:
        """A vector of tables."""
        at = self.field(number)
        if at is None:
            return []
        start = at + self.buffer.u32(at)
        count = self.buffer.u32(start)
        self.buffer.bytes_at(start + 4, 4 * count)
        places = (start + 4 + 4 * index for index in range(count))
        return [FlatTable(self.buffer, place + self.buffer.u32(place)) for place in places]
