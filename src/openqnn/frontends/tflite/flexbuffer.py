"""FlexBuffers, in which TFLite keeps the options of custom operators: a map of numbers, texts and lists.

The root stands at the end: its value, its type, and how many bytes wide it is. Offsets count backwards.
"""

from __future__ import annotations

import struct
from typing import Any, Final

_INT, _UINT, _FLOAT = 1, 2, 3
_KEY, _TEXT = 4, 5
_INDIRECT: Final = {6: _INT, 7: _UINT, 8: _FLOAT}
_MAP, _VECTOR, _BLOB, _BOOL = 9, 10, 25, 26
_TYPED: Final = {11: _INT, 12: _UINT, 13: _FLOAT, 14: _KEY, 36: _BOOL}
_FORMATS: Final = {
    _INT: {1: "<b", 2: "<h", 4: "<i", 8: "<q"},
    _UINT: {1: "<B", 2: "<H", 4: "<I", 8: "<Q"},
    _FLOAT: {2: "<e", 4: "<f", 8: "<d"},
}


def read_flexbuffer(data: bytes) -> Any:
    """The value that a buffer holds; ValueError where it is none."""
    if len(data) < 3:
        raise ValueError("it is too short")
    width = data[-1]
    if width not in (1, 2, 4, 8):
        raise ValueError(f"its root is {width} bytes wide")
    try:
        return _Reader(data).value(len(data) - 2 - width, width, data[-2])
    except (struct.error, IndexError, KeyError, RecursionError, UnicodeDecodeError) as e:
        raise ValueError(f"it is damaged: {e}") from e


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def _number(self, kind: int, at: int, width: int) -> Any:
        if at < 0:
            raise IndexError("an offset leads outside")
        return struct.unpack_from(_FORMATS[kind][width], self._data, at)[0]

    def _target(self, at: int, width: int) -> int:
        found = at - self._number(_UINT, at, width)
        if not 0 <= found < len(self._data):
            raise IndexError("an offset leads outside")
        return found

    def value(self, at: int, width: int, packed: int) -> Any:
        """What stands at a place; the packed type says how wide that is which it leads to."""
        kind, inner = packed >> 2, 1 << (packed & 3)
        if kind in _FORMATS:
            return self._number(kind, at, width)
        if kind == _BOOL:
            return bool(self._number(_UINT, at, width))
        if not kind:
            return None
        place = self._target(at, width)
        if kind in _INDIRECT:
            return self._number(_INDIRECT[kind], place, inner)
        if kind == _KEY:
            return self._key(place)
        return self._pointed(kind, place, inner)

    def _pointed(self, kind: int, place: int, width: int) -> Any:
        size = self._number(_UINT, place - width, width)
        if size > len(self._data):
            raise IndexError("a list is longer than the buffer")
        if kind in (_TEXT, _BLOB):
            found = self._data[place : place + size]
            return found.decode() if kind == _TEXT else found
        if kind in _TYPED:
            return [self.value(place + i * width, width, _TYPED[kind] << 2) for i in range(size)]
        if kind not in (_MAP, _VECTOR):
            raise KeyError(f"type {kind} is not known")
        types = place + size * width
        values = [self.value(place + i * width, width, self._data[types + i]) for i in range(size)]
        return values if kind == _VECTOR else dict(zip(self._keys(place, width, size), values, strict=True))

    def _keys(self, place: int, width: int, size: int) -> list[str]:
        """A map has, before its size, where its keys are and how wide these are."""
        keys = self._target(place - 3 * width, width)
        step = self._number(_UINT, place - 2 * width, width)
        return [self._key(self._target(keys + i * step, step)) for i in range(size)]

    def _key(self, place: int) -> str:
        return self._data[place : self._data.index(b"\0", place)].decode()
