"""The encodings that QuantizeLinear and DequantizeLinear nodes say, and the numbers that they compute."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnx

from openqnn.ir import MODEL, Array, Encoding, Given


def integer_type(dtype: np.dtype[np.generic]) -> tuple[bool, int] | None:
    """Whether it is signed, and its bits; None for a type that is no integer."""
    found = re.fullmatch(r"(u?)int(\d+)", dtype.name)
    return (not found[1], int(found[2])) if found else None


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name), default)


def said_by(
    node: onnx.NodeProto, scale: Array, zero: Array | None, dtype: np.dtype[np.generic], rank: int | None
) -> Given | None:
    """The encoding of a node's integers; None for one that QNN does not have. `rank` is of known data."""
    kind = integer_type(dtype)
    scales = np.asarray(scale, np.float64).ravel()
    zeros = np.zeros(scales.shape, np.int64) if zero is None else zero.astype(np.int64).ravel()
    if kind is None or scales.shape != zeros.shape or not np.all(np.isfinite(scales) & (scales > 0)):
        return None
    axis: int | None = None
    if scales.size != 1:
        if scale.ndim != 1 or rank is None:
            return None
        axis = attribute(node, "axis", 1) % max(rank, 1)
    signed, bits = kind
    offsets = tuple(int(-z) for z in zeros)
    encoding = Encoding(tuple(scales.tolist()), offsets, bits, axis, signed and not zeros.any())
    return Given(MODEL, bits, encoding=encoding, signed=signed)


def spread(values: Array, shape: Sequence[int], axis: int, block: int) -> Array:
    """Scales or zero points lined up with the data: of the whole, along an axis, or of blocks."""
    if block:
        return np.repeat(values, block, axis=axis)[tuple(slice(0, d) for d in shape)]
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def real_numbers(node: onnx.NodeProto, stored: Array, scale: Array, zero: Array | None) -> Array:
    """What integers stand for, computed as ONNX does."""
    axis, block = attribute(node, "axis", 1) % max(stored.ndim, 1), attribute(node, "block_size", 0)
    whole = stored.astype(np.int64)
    if zero is not None:
        whole = whole - spread(zero.astype(np.int64), stored.shape, axis, block)
    lined = spread(scale, stored.shape, axis, block)
    return (whole.astype(np.float32) * lined.astype(np.float32)).astype(scale.dtype)


def stored_integers(node: onnx.NodeProto, real: Array, scale: Array, zero: Array) -> Array:
    """Real numbers as integers: halves to even, saturated."""
    axis, block = attribute(node, "axis", 1) % max(real.ndim, 1), attribute(node, "block_size", 0)
    kind = integer_type(zero.dtype)
    assert kind is not None
    lined = spread(scale, real.shape, axis, block).astype(np.float32)
    steps = np.rint(real.astype(np.float32) / lined).astype(np.float64)
    steps += spread(zero.astype(np.float64), real.shape, axis, block)
    low = -(1 << (kind[1] - 1)) if kind[0] else 0
    return np.clip(steps, low, low + (1 << kind[1]) - 1).astype(np.int64).astype(zero.dtype)
