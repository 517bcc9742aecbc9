"""Numbers as TFLite stores them: types that numpy lacks are unpacked, sparse tensors made dense."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from openqnn.errors import ModelError
from openqnn.ir import Array, Shape

NUMPY: Final[dict[str, DTypeLike]] = {
    "FLOAT32": np.float32, "FLOAT16": np.float16, "INT32": np.int32, "UINT8": np.uint8, "INT64": np.int64,
    "BOOL": np.bool_, "INT16": np.int16, "INT8": np.int8, "FLOAT64": np.float64, "UINT64": np.uint64,
    "UINT32": np.uint32, "UINT16": np.uint16, "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT8_E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
PACKED: Final = {"INT4": (4, True), "UINT4": (4, False), "INT2": (2, True)}  # bits, and whether signed
LARGEST = 1 << 38  # bytes of a tensor that a sparse one may become


def numpy_type(kind: str) -> np.dtype[Any] | None:
    """The array type of a tensor type; packed integers take a byte each. None for one that numpy lacks."""
    if kind in PACKED:
        return np.dtype(np.int8 if PACKED[kind][1] else np.uint8)
    return np.dtype(NUMPY[kind]) if kind in NUMPY else None


def bits_of(kind: str) -> int:
    found = numpy_type(kind)
    return PACKED[kind][0] if kind in PACKED else found.itemsize * 8 if found is not None else 0


def decoded(stored: Array, kind: str, shape: Shape) -> Array:
    """Bytes as an array of that type and shape; ModelError where they are too few or too many."""
    dtype, count = numpy_type(kind), prod(shape)
    if dtype is None:
        return np.frombuffer(stored.tobytes(), np.uint8)  # text: only who reads it needs to know more
    expected = -(-count * bits_of(kind) // 8)
    if stored.size != expected or min(shape, default=0) < 0:
        raise ModelError(f"{stored.size:,} bytes are stored, {expected:,} are expected for {list(shape)}")
    if kind in PACKED:
        return _unpacked(stored, *PACKED[kind], count).reshape(shape)
    return stored.view(dtype).reshape(shape)


def _unpacked(stored: Array, bits: int, signed: bool, count: int) -> Array:
    """Low bits come first."""
    parts = [(stored >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    found = np.stack(parts, axis=1).ravel()[:count].astype(np.uint8)
    if not signed:
        return found
    half = 1 << (bits - 1)
    return ((found ^ half).astype(np.int16) - half).astype(np.int8)


# -- sparse --------------------------------------------------------------------------------------------------


def densified(stored: Array, kind: str, shape: Shape, sparsity: dict[str, Any]) -> Array:
    """A dense array from the levels of a sparse one: all places of an axis, or those that are listed."""
    dtype = numpy_type(kind)
    order = [int(i) for i in sparsity["traversal_order"]]
    blocks = [int(i) for i in sparsity["block_map"]]
    levels = sparsity["dim_metadata"]
    rank = len(shape)
    if dtype is None or not _is_sparsity(shape, order, blocks, len(levels)):
        raise ModelError("its sparsity does not fit its shape")
    places = _places(levels, stored.size * 8)
    values = (
        decoded(stored, kind, (len(places),))
        if bits_of(kind) >= 8
        else _unpacked(stored, *PACKED[kind], len(places))
    )
    sizes = _block_sizes(levels, order, blocks, rank)
    full = np.zeros((len(places), rank), np.int64)
    for level, axis in enumerate(order):
        full[:, axis if axis < rank else blocks[axis - rank]] += places[:, level] * (
            sizes[axis] if axis < rank else 1
        )
    if np.any(full >= np.asarray(shape)):
        raise ModelError("its sparsity leads outside of its shape")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(full.T)] = values
    return dense


def _is_sparsity(shape: Shape, order: list[int], blocks: list[int], levels: int) -> bool:
    rank = len(shape)
    ordered = sorted(order) == list(range(rank + len(blocks))) == list(range(levels))
    sized = min(shape, default=1) >= 1 and prod(shape) * 8 <= LARGEST
    return ordered and sized and all(0 <= b < rank for b in blocks)


def _block_sizes(
    levels: Sequence[dict[str, Any]], order: list[int], blocks: list[int], rank: int
) -> list[int]:
    sizes = [1] * rank
    for level, axis in enumerate(order):
        if axis >= rank:
            sizes[blocks[axis - rank]] = int(levels[level]["dense_size"])
    return sizes


def _places(levels: Sequence[dict[str, Any]], most: int) -> Array:
    """The coordinates of every stored value, one row each, in the order of the levels."""
    rows = np.zeros((1, 0), np.int64)
    for level in levels:
        if level["format"] == 0:
            size = int(level["dense_size"])
            if size < 1 or size * len(rows) > most:
                raise ModelError("its sparsity asks for more values than there are")
            new = np.tile(np.arange(size), len(rows))
            rows = np.column_stack([np.repeat(rows, size, axis=0), new])
            continue
        segments = _numbers(level["array_segments"])
        indices = _numbers(level["array_indices"])
        counts = np.diff(segments)
        whole = len(segments) == len(rows) + 1 and len(indices) == (segments[-1] if len(segments) else 0)
        if not whole or np.any(counts < 0) or np.any(indices < 0) or (len(segments) and segments[0] != 0):
            raise ModelError("its sparsity is not consistent")
        rows = np.column_stack([np.repeat(rows, counts, axis=0), indices])
    return rows


def _numbers(vector: dict[str, Any] | None) -> Array:
    return np.zeros(0, np.int64) if vector is None else vector["values"].astype(np.int64)
