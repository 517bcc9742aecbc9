"""Protobuf's wire format: the fields of a message, by number and place, without a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openqnn.errors import ModelError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Span:
    """A range of bytes in the file."""

    start: int
    end: int


def read_varint(buffer: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number and the place behind it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ModelError(f"the file is damaged or truncated at byte {at}")


def wire_fields(buffer: memoryview, start: int, end: int) -> Iterator[tuple[int, int, Span]]:
    """Number, start of the tag and content of every field of a message."""
    at = start
    while at < end:
        tag_at = at
        key, at = read_varint(buffer, at, end)
        kind = key & 7
        if kind == _VARINT:
            content, at = at, read_varint(buffer, at, end)[1]
        elif kind == _BYTES:
            length, content = read_varint(buffer, at, end)
            at = content + length
        elif kind in (_FIXED64, _FIXED32):
            content, at = at, at + (8 if kind == _FIXED64 else 4)
        else:
            raise ModelError(f"the file is damaged: unknown field type {kind} at byte {tag_at}")
        if at > end:
            raise ModelError(f"the file is truncated: a field at byte {tag_at} needs {at - end} more bytes")
        yield key >> 3, tag_at, Span(content, at)
