"""The .oqnn file: a graph's text and its constants, laid out so that they can be mapped.

    8 bytes   magic
    u64       length of the header
    header    JSON: {"text": ..., "constants": {name: [type, stored shape, axis order, offset, CRC-32]},
              "packages": [XML of custom ops, where the graph has any], "checksum": CRC-32 of all}
    data      constants, each at a multiple of 64 bytes; offsets count from the first multiple behind the
    header

A constant that is a transposed view is stored as the array that it views, with the axis order that gives it
back: no weight is copied to be written, and none is read before it is used.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import ml_dtypes  # registers bfloat16 and its kin with numpy by name
import numpy as np
from numpy.typing import NDArray

from openqnn.errors import ModelError
from openqnn.formats.atomic import replacing
from openqnn.formats.beside import check_regular
from openqnn.formats.mapped import map_file

Array: TypeAlias = NDArray[Any]
MAGIC = b"OQNN\x00\x01\r\n"
ALIGN = 64
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# What a header of the wrong kind, or with numbers out of all bounds, makes json and numpy raise.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGN) * ALIGN


def _stored(array: Array) -> tuple[Array, list[int]]:
    """An array in C order, and the axis order that turns it back into the given one."""
    outermost = sorted(range(array.ndim), key=lambda a: -abs(array.strides[a]))
    base = array.transpose(outermost)
    if base.flags.c_contiguous:
        return base, [outermost.index(a) for a in range(array.ndim)]
    return np.ascontiguousarray(array), list(range(array.ndim))


def write_oqnn(
    path: str | os.PathLike[str],
    text: str,
    constants: Mapping[str, Array],
    packages: Sequence[str] = (),
) -> None:
    stored = {name: _stored(array) for name, array in constants.items()}
    table: dict[str, Any] = {}
    offset = 0
    for name, (array, order) in stored.items():
        table[name] = [array.dtype.name, list(array.shape), order, offset, zlib.crc32(_bytes(array))]
        offset = _aligned(offset + array.nbytes)
    more = {"packages": list(packages)} if packages else {}
    checksum = _checksum(text + "".join(packages), table)
    header = json.dumps({"text": text, "constants": table, **more, "checksum": checksum}).encode()
    with replacing(path) as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for array, _ in stored.values():
            _write_aligned(file, array)


def _write_aligned(file: BinaryIO, array: Array) -> None:
    at = file.tell()
    file.write(b"\0" * (_aligned(at) - at))
    file.write(_bytes(array))


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(text: str, table: Mapping[str, Any]) -> int:
    """What the header says, in numbers: JSON may be written in more than one way."""
    return zlib.crc32(json.dumps([text, table]).encode())


def is_oqnn(path: str | os.PathLike[str]) -> bool:
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_oqnn(path: str | os.PathLike[str]) -> tuple[str, dict[str, Array], list[str]]:
    """The text, the constants as views into the mapped file, and declarations of custom ops."""
    check_regular(path)
    try:
        data = map_file(path)
    except (OSError, ValueError) as e:
        raise ModelError(f"{path}: cannot be read: {e}") from e
    if bytes(data[: len(MAGIC)]) != MAGIC:
        hint = "models of other kinds are converted first: `openqnn convert`, or openqnn.convert(...)"
        raise ModelError(f"{path}: not an OpenQNN graph file", hint=hint)
    start = len(MAGIC) + 8
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = cast("dict[str, Any]", json.loads(bytes(data[start:end])))
        entries = cast("dict[str, Any]", header["constants"])
        text, packages = str(header["text"]), [str(p) for p in header.get("packages", [])]
        if header.get("checksum", checked := _checksum(text + "".join(packages), entries)) != checked:
            raise ValueError("its text does not have its checksum")
        constants = {name: _view(data, _aligned(end), name, entry) for name, entry in entries.items()}
        return text, constants, packages
    except _DAMAGE as e:
        raise ModelError(
            f"{path}: the file is damaged or truncated: {e}", hint="convert the model again"
        ) from e


def _view(data: memoryview, base: int, name: str, entry: list[Any]) -> Array:
    kind, shape, order, offset = entry[:4]
    dtype = _dtype(str(kind))
    count = math.prod(shape)
    if min(shape, default=0) < 0 or offset < 0:
        raise ValueError(f"a constant has shape {shape} at {offset}")
    array = np.frombuffer(data, dtype, count, base + int(offset)) if count else np.zeros(0, dtype)
    if len(entry) > 4 and zlib.crc32(_bytes(array)) != entry[4]:
        raise ValueError(f"constant '{name}' does not have its checksum")
    return cast(Array, array.reshape(shape)).transpose(order)


def _dtype(name: str) -> np.dtype[Any]:
    """The type of a constant's elements; ValueError for one that no tensor has."""
    dtype = _BFLOAT16 if name == "bfloat16" else np.dtype(name)
    if dtype != _BFLOAT16 and (dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype.name != name):
        raise ValueError(f"no tensor has elements of type '{name}'")
    return dtype
