"""Taking fields out of JSON: each mistake is one error with the file, the tensor and the field."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from openqnn.errors import InputError
from openqnn.formats.encodings.record import TensorEncoding
from openqnn.formats.json_text import parse_json

Json: TypeAlias = Any
INT_BITS = range(2, 33)
FLOAT_BITS = (16, 32)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file we are: for messages."""

    path: str | os.PathLike[str]
    tensor: str = ""

    def fail(self, what: str, field: str = "", hint: str = "") -> NoReturn:
        tensor = f"tensor '{self.tensor}': " if self.tensor else ""
        where = f"field '{field}': " if field else ""
        raise InputError(f"{self.path}: {tensor}{where}{what}", hint=hint)

    def at(self, tensor: str) -> Place:
        return Place(self.path, tensor)


def load_json(path: str | os.PathLike[str]) -> dict[str, Json]:
    """The object that a file holds; a name that appears twice in one object is an error."""
    place = Place(path)

    def distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            place.fail(f"'{next(n for n in names if names.count(n) > 1)}' appears twice")
        return found

    try:
        content = parse_json(Path(path).read_text(encoding="utf-8-sig"), distinct)
    except OSError as e:
        place.fail(f"cannot be read: {e.strerror or e}")
    except UnicodeDecodeError:
        place.fail("is not a text file")
    except ValueError as e:
        place.fail(f"is no JSON: {e}")
    if not isinstance(content, dict):
        place.fail("is no encodings file: expected an object with encodings")
    return cast("dict[str, Json]", content)


def objects(place: Place, content: Json, what: str) -> list[dict[str, Json]]:
    """A list of objects."""
    if not isinstance(content, list):
        place.fail(f"expected a list of {what}, found {shown(content)}")
    for item in cast("list[Json]", content):
        if not isinstance(item, dict):
            place.fail(f"expected an object, found {shown(item)}")
    return cast("list[dict[str, Json]]", content)


def shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one entry, taken out by type. What is close to a known name is taken for a misprint."""

    place: Place
    values: Mapping[str, Json]
    known: tuple[str, ...]

    def __post_init__(self) -> None:
        for key in self.values:
            near = [] if key in self.known else difflib.get_close_matches(key, self.known, 1, 0.8)
            if near and near[0] not in self.values:
                self.place.fail("unknown", key, hint=f"did you mean '{near[0]}'?")

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def get(self, key: str) -> Json:
        if key not in self:
            self.place.fail("missing", key)
        return self.values[key]

    def fail(self, key: str, expected: str) -> NoReturn:
        self.place.fail(f"expected {expected}, found {shown(self.values[key])}", key)

    def text(self, key: str) -> str:
        value = self.get(key)
        return value if isinstance(value, str) and value else self.fail(key, "a text")

    def choice(self, key: str, choices: Sequence[str]) -> str:
        value = self.get(key)
        if not isinstance(value, str) or value not in choices:
            self.fail(key, f"one of {', '.join(choices)}")
        return value

    def integer(self, key: str) -> int:
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != _whole(value):
            self.fail(key, "a whole number")
        return int(value)

    def number(self, key: str) -> float:
        value = self.get(key)
        return float(value) if is_number(value) else self.fail(key, "a finite number")

    def numbers(self, key: str) -> list[float]:
        """A flat list of numbers; a single one stands for itself."""
        value = self.get(key)
        items = cast("list[Json]", value if isinstance(value, list) else [value])
        if not items or not all(is_number(v) for v in items):
            self.fail(key, "finite numbers")
        return [float(v) for v in items]

    def nested(self, key: str) -> tuple[list[float], tuple[int, ...]]:
        """Numbers in nested lists of one shape, and that shape: () for a single number."""
        flat: list[float] = []
        shape = self._walk(key, self.get(key), flat)
        return flat, shape

    def _walk(self, key: str, value: Json, flat: list[float]) -> tuple[int, ...]:
        if not isinstance(value, list):
            flat.append(float(value) if is_number(value) else self.fail(key, "finite numbers"))
            return ()
        shapes = {self._walk(key, v, flat) for v in cast("list[Json]", value)}
        if len(shapes) != 1:
            self.place.fail("its lists are empty or of different lengths", key)
        return (len(cast("list[Json]", value)), *shapes.pop())

    def flag(self, key: str) -> bool:
        """True or False, also as a text, which is how version 0.6.1 has it."""
        value = self.get(key)
        words = {"true": True, "false": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        return self.fail(key, '"True" or "False"')


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: float) -> float:
    return round(value) if math.isfinite(value) else math.nan


def plain(value: float) -> float:
    """Whole numbers as such: files have -128.0 where -128 is meant."""
    return int(value) if value == _whole(value) else value


def check(place: Place, entry: TensorEncoding, *, bits: str, scale: str, offset: str) -> TensorEncoding:
    """The entry, when its numbers make sense; `bits`, `scale` and `offset` are the fields of the version."""
    if entry.is_float and entry.bitwidth not in FLOAT_BITS:
        place.fail(f"floats of {entry.bitwidth} bits are not known to QNN, only of 16 and 32", bits)
    if not entry.is_float and entry.bitwidth not in INT_BITS:
        place.fail(f"{entry.bitwidth} bits; expected 2 to 32", bits)
    if any(s <= 0 for s in entry.scales):
        place.fail(f"scales are positive, found {min(entry.scales):g}", scale)
    if len(entry.scales) != len(entry.offsets):
        place.fail(f"{len(entry.scales)} scales but {len(entry.offsets)} offsets", offset)
    last = (1 << entry.bitwidth) - 1
    for found in entry.unsigned_offsets:
        if not -last <= found <= 0:
            place.fail(
                f"zero is not among the integers of {entry.bitwidth} bits (offset {plain(found)})", offset
            )
    return entry
