"""The weights of a .caffemodel, by layer: just enough of protobuf's wire format, with the numbers mapped."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from openqnn.errors import ModelError
from openqnn.formats.mapped import map_file
from openqnn.formats.protobuf_wire import Span, read_varint
from openqnn.formats.protobuf_wire import wire_fields as fields
from openqnn.frontends.frontend import Source, head_of
from openqnn.ir import Array

# Numbers of fields in Caffe's published schema.
LAYER, OLD_LAYER = 100, 2
NAME, BLOBS = 1, 7
OLD_NAME, OLD_BLOBS = 4, 6
OLD_SIZES: Final = (1, 2, 3, 4)
DATA, SHAPE, DOUBLE_DATA = 5, 7, 8
DIM = 1
MOST_AXES = 32
LONGEST = 1 << 12  # bytes of a name


_HEAD = 1 << 12
_BEHIND_NAME = (b"\xa2\x06", b"\x12", b"\x1a", b"\x28")  # a layer of either form, an input, force_backward


def is_caffemodel(source: Source) -> bool:
    """Whether a file begins with a network's name and what may stand behind it. Never raises."""
    head = head_of(source, _HEAD)
    if len(head) < 4 or head[0] != 0x0A or head[1] > 127:
        return False
    name, behind = head[2 : 2 + head[1]], head[2 + head[1] :]
    return name.isascii() and name.decode().isprintable() and behind.startswith(_BEHIND_NAME)


def read_caffemodel(path: Path) -> dict[str, list[Array]]:
    """The blobs of every layer that has some, by the layer's name; ModelError where the file is damaged."""
    try:
        if not path.stat().st_size:
            raise ModelError(f"{path}: the file is empty")
        mapped = map_file(path)
    except (OSError, ValueError) as e:
        raise ModelError(f"{path}: cannot be read: {e}") from e
    try:
        found = dict(_layers(mapped))
    except ModelError as e:
        raise ModelError(f"{path}: no weights of Caffe: {e.message}", hint=e.hint) from e
    if not found:
        raise ModelError(f"{path}: no layer in it has weights", hint="is it a .caffemodel?")
    return found


def _layers(data: memoryview) -> Iterator[tuple[str, list[Array]]]:
    for number, _, span in fields(data, 0, len(data)):
        if number not in (LAYER, OLD_LAYER):
            continue
        wanted = (NAME, BLOBS) if number == LAYER else (OLD_NAME, OLD_BLOBS)
        name, blobs = "", list[Array]()
        for inner, _, part in fields(data, span.start, span.end):
            if inner == wanted[0]:
                name = bytes(data[part.start : part.end][:LONGEST]).decode("utf-8", "replace")
            if inner == wanted[1]:
                blobs.append(_blob(data, part))
        if blobs:
            yield name, blobs


def _blob(data: memoryview, span: Span) -> Array:
    shape: list[int] | None = None
    sizes, parts = dict[int, int](), list[Array]()
    for number, _, part in fields(data, span.start, span.end):
        if number in OLD_SIZES:
            sizes[number] = read_varint(data, part.start, part.end)[0]
        elif number == SHAPE:
            shape = list(_dims(data, part))
        elif number in (DATA, DOUBLE_DATA):
            parts.append(_values(data, part, number))
    array = parts[0] if len(parts) == 1 else np.concatenate([*parts, np.zeros(0, np.float32)])
    if shape is None:
        shape = [sizes.get(n, 1) for n in OLD_SIZES] if sizes else [array.size]
    if prod(shape) != array.size or len(shape) > MOST_AXES:
        raise ModelError(f"a blob of shape {shape} has {array.size} values")
    return array.astype(np.float32, copy=False).reshape(shape)


def _values(data: memoryview, part: Span, number: int) -> Array:
    """A view of the file."""
    kind = np.dtype("<f4" if number == DATA else "<f8")
    if (part.end - part.start) % kind.itemsize:
        raise ModelError(f"a blob at byte {part.start} is no whole number of values")
    return np.frombuffer(data[part.start : part.end], kind)


def _dims(data: memoryview, span: Span) -> Iterator[int]:
    """Dimensions, packed or one by one."""
    for number, _, part in fields(data, span.start, span.end):
        at = part.start
        while number == DIM and at < part.end:
            value, at = read_varint(data, at, part.end)
            yield value
