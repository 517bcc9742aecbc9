"""Weights in the order that a library reads them.

Weights are often transposed views of the source file. Copying such a view element by element meets the cache
where it hurts most: at strides that are powers of two. Tiles that fit into it take a fraction of the time.
"""

from __future__ import annotations

import numpy as np

from openqnn.qnn.net import Array

_SMALL = 1 << 16  # bytes: below, it does not matter
_TILE = 128
_PAD = 16  # elements that keep the rows of a tile from meeting in one place of the cache


def contiguous(array: Array) -> Array:
    """The array itself where its elements are in order, or a copy in which they are."""
    if array.flags.c_contiguous or array.nbytes < _SMALL:
        return np.ascontiguousarray(array)
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    source = array.transpose(order)
    if order[0] != array.ndim - 1 or not source.flags.c_contiguous:
        return np.ascontiguousarray(array)
    turned = _turned(source.reshape(len(source), -1)).reshape(*source.shape[1:], len(source))
    # The last axis is in its place now, and the others move whole rows of it.
    places = [order.index(axis) - 1 for axis in range(array.ndim - 1)]
    return np.ascontiguousarray(turned.transpose(*places, array.ndim - 1))


def _turned(matrix: Array) -> Array:
    """The transposed matrix."""
    made = np.empty(matrix.shape[::-1], matrix.dtype)
    tile = np.empty((_TILE, _TILE + _PAD), matrix.dtype)
    rows, columns = matrix.shape
    for row in range(0, rows, _TILE):
        for column in range(0, columns, _TILE):
            part = matrix[row : row + _TILE, column : column + _TILE]
            copy = tile[: part.shape[0], : part.shape[1]]
            copy[...] = part
            made[column : column + _TILE, row : row + _TILE] = copy.T
    return made
