"""Weights in the order that a library reads them.

Weights are often transposed views of the source file. Copying such a view element by element meets the cache
where it hurts most: at strides that are powers of two. Tiles that fit into it take a fraction of the time.
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from openqnn.qnn.net import Array

_SMALL = 1 << 16  # bytes: below, it does not matter
_LARGE = 1 << 22  # bytes: from here on, numpy asks for huge pages
_TILE = 128
_WIDE = 1 << 12  # elements of a row of tiles that no longer fit into the cache
_PAD = 16  # elements that keep the rows of a tile from meeting in one place of the cache


def contiguous(array: Array) -> Array:
    """The array itself where its elements are in order, or a copy in which they are."""
    if array.flags.c_contiguous or array.nbytes < _SMALL:
        return np.ascontiguousarray(array)
    slim = array.squeeze()
    order = sorted(range(slim.ndim), key=lambda axis: -slim.strides[axis])
    source = slim.transpose(order)
    last_comes_first = order[0] == slim.ndim - 1 and source.flags.c_contiguous
    if not last_comes_first or math.prod(source.shape[2:]) > _WIDE:
        return np.ascontiguousarray(array)
    made = _memory(array)
    _turn(source, made.reshape(slim.shape).transpose(order))
    return made


def _turn(source: Array, target: Array) -> None:
    """Copy into memory where the first axis comes last."""
    rows, columns, *rest = source.shape
    inner = math.prod(rest)
    step = max(1, _TILE // inner)
    tile = np.empty((_TILE, step * inner + _PAD), source.dtype)
    for row in range(0, rows, _TILE):
        for column in range(0, columns, step):
            place = slice(row, row + _TILE), slice(column, column + step)
            part = source[place]
            copy = tile[: len(part), : part.shape[1] * inner].reshape(part.shape)
            copy[...] = part
            target[place] = copy


def _memory(array: Array) -> Array:
    """Room for the array's elements.

    The kernel may have to put huge pages together first, which takes longer than the copy.
    """
    if array.nbytes < _LARGE or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(array.shape, array.dtype)
    memory = mmap.mmap(-1, array.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, array.dtype).reshape(array.shape)
