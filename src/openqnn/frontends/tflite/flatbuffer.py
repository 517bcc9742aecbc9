"""Reads a flatbuffer by TFLite's published schema, and checks every offset and length before it follows one.

`schema.txt` has the schema: enumerations with their names in order, and tables with their fields in order. A
field is its name, a code for its type and its default: a letter of `struct` for a number, `s` for text,
`@Table` for a table, `@` alone for a union, whose type stands in the field before, `[` before any of them for
a vector, and `-` for a field that is not used any more.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import numpy as np

from openqnn.errors import ModelError
from openqnn.ir import Array

SCHEMA_FILE: Final = Path(__file__).with_name("schema.txt")
MAGIC: Final = b"TFL3"  # behind the first offset
DAMAGED: Final = "the file may be damaged or truncated; export it again"
_OVERLAP = 64  # how often a byte may be read: parts of a whole file do not overlap

Record: TypeAlias = "dict[str, Any]"
_UNIONS = {
    "details": "QuantizationDetails", "array_segments": "SparseIndexVector",
    "array_indices": "SparseIndexVector", "builtin_options": "BuiltinOptions",
    "builtin_options2": "BuiltinOptions2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table: `table` is "" for numbers and text, and for a union, whose code is "@" too."""

    name: str
    code: str
    vector: bool
    table: str
    default: Any


@dataclass(frozen=True)
class Schema:
    """Enumerations, and tables by name; None stands for a field that is not used any more."""

    enums: dict[str, tuple[str, ...]]
    tables: dict[str, tuple[Field | None, ...]]

    def name_of(self, enum: str, number: int) -> str:
        names = self.enums[enum]
        return names[number] if 0 <= number < len(names) else f"{enum} {number}"


@cache
def schema() -> Schema:
    enums: dict[str, tuple[str, ...]] = {}
    tables: dict[str, tuple[Field | None, ...]] = {}
    for line in SCHEMA_FILE.read_text(encoding="utf-8").splitlines():
        kind, name, *rest = line.split(" ")
        if kind == "enum":
            enums[name] = tuple(rest)
        else:
            tables[name] = tuple(None if text == "-" else _field(text) for text in rest)
    return Schema(enums, tables)


def _field(text: str) -> Field:
    name, kind = text.split(":")
    kind, _, default = kind.partition("=")
    vector = kind.startswith("[")
    code = kind.lstrip("[")[:1]
    number: Any = 0.0 if code in "fd" else code == "?" and default == "True" if code == "?" else 0
    if default and code != "?":
        number = float(default) if code in "fd" else int(default)
    empty = None if code in "s@" else number
    return Field(name, code, vector, kind.lstrip("[@") if code == "@" else "", empty)


def read_flatbuffer(data: Array) -> Record:
    """The Model of a file's bytes, as nested dicts; vectors of numbers are views of the bytes."""
    if data.size < 8 or data[4:8].tobytes() != MAGIC:
        raise ModelError("its first bytes are not those of one", hint=DAMAGED)
    return _Reader(data).table("Model", 0)


class _Reader:
    def __init__(self, data: Array) -> None:
        self.data = data
        self.bytes = memoryview(cast(Any, data))
        self.size = data.size
        self.left = _OVERLAP * data.size + (1 << 20)

    def _take(self, code: str, at: int) -> Any:
        self._inside(at, struct.calcsize("<" + code))
        return struct.unpack_from("<" + code, self.bytes, at)[0]

    def _inside(self, at: int, size: int) -> None:
        self.left -= size
        if at < 0 or at + size > self.size or self.left < 0:
            raise ModelError(f"an offset leads outside of the file, to byte {at:,}", hint=DAMAGED)

    def _follow(self, at: int) -> int:
        offset = self._take("I", at)
        if offset == 0:
            raise ModelError(f"the offset at byte {at:,} is zero", hint=DAMAGED)
        return at + offset

    def table(self, name: str, at: int) -> Record:
        """The table that the offset at a place leads to."""
        place = self._follow(at)
        rows = place - self._take("i", place)
        count = (self._take("H", rows) - 4) // 2
        record: Record = {}
        for index, field in enumerate(schema().tables[name]):
            if field is None:
                continue
            offset = self._take("H", rows + 4 + 2 * index) if index < count else 0
            record[field.name] = (
                self._value(field, place + offset, record) if offset else self._default(field)
            )
        return record

    def _default(self, field: Field) -> Any:
        if not field.vector:
            return field.default
        return np.zeros(0, np.dtype("<" + field.code)) if field.code not in "s@" else []

    def _value(self, field: Field, at: int, record: Record) -> Any:
        if field.vector:
            return self._vector(field, at)
        if field.code == "s":
            return self._text(at)
        if field.code != "@":
            return self._take(field.code, at)
        table = field.table or self._member(field.name, record)
        return self.table(table, at) if table else None

    def _member(self, union: str, record: Record) -> str:
        """The table that a union holds; "" for none, and for one that is newer than the schema."""
        names, kind = schema().enums[_UNIONS[union]], record[f"{union}_type"]
        return names[kind] if 0 < kind < len(names) else ""

    def _vector(self, field: Field, at: int) -> Any:
        place = self._follow(at)
        length = self._take("I", place)
        if field.code in "s@":
            self._inside(place + 4, 4 * length)
            starts = range(place + 4, place + 4 + 4 * length, 4)
            return [self.table(field.table, p) if field.table else self._text(p) for p in starts]
        dtype = np.dtype("<" + field.code)
        self._inside(place + 4, 0)
        if place + 4 + length * dtype.itemsize > self.size:
            raise ModelError(f"a vector of {length:,} numbers goes beyond the end of the file", hint=DAMAGED)
        return self.data[place + 4 : place + 4 + length * dtype.itemsize].view(dtype)

    def _text(self, at: int) -> str:
        place = self._follow(at)
        length = self._take("I", place)
        self._inside(place + 4, length)
        return bytes(self.bytes[place + 4 : place + 4 + length]).decode("utf-8", "replace")
