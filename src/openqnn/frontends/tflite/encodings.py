"""Encodings of TFLite tensors: what stored integers stand for, and what of it QNN can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from openqnn.errors import ModelError
from openqnn.frontends.tflite.model import Blockwise, Quantization, Tensor
from openqnn.frontends.tflite.stored_numbers import bits_of
from openqnn.ir import MODEL, Array, DType, Encoding, Given

STORED: Final = {  # activations that can be stored integers, and their types in QNN
    "INT8": (DType.INT_8, DType.SFIXED_8), "UINT8": (DType.UINT_8, DType.UFIXED_8),
    "INT16": (DType.INT_16, DType.SFIXED_16), "UINT16": (DType.UINT_16, DType.UFIXED_16),
}  # fmt: skip
_SIGNED = ("INT8", "INT16", "INT32", "INT64", "INT4", "INT2")
_WIDEST = 32  # bits of an encoding
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Real:
    """A constant's real numbers, the encoding that they have, and what was lost of it."""

    data: Array
    given: Given | None = None
    note: str = ""


def is_quantized(tensor: Tensor) -> bool:
    """Whether a tensor is stored integers that stand for real numbers."""
    kinds = (*STORED, *_SIGNED, "UINT4")
    return tensor.quantization is not None and tensor.type in kinds


def encoding_of(tensor: Tensor) -> Encoding | None:
    """The encoding of a quantized tensor; None for one of blocks, or of more bits than QNN has."""
    q = tensor.quantization
    if not isinstance(q, Quantization) or bits_of(tensor.type) > _WIDEST:
        return None
    scales = tuple(float(s) for s in q.scale)
    offsets = tuple(-int(z) for z in q.zero)
    symmetric = tensor.type in _SIGNED and not any(offsets)
    return Encoding(scales, offsets, bits_of(tensor.type), q.axis if q.per_axis else None, symmetric)


def given_of(tensor: Tensor) -> Given | None:
    """What the model says about a tensor, in the storage that it has there."""
    encoding = encoding_of(tensor)
    if encoding is None or encoding.bitwidth < _LEAST:
        return None
    return Given(MODEL, encoding.bitwidth, encoding=encoding, signed=tensor.type in _SIGNED)


def real_constant(tensor: Tensor, tensors: Sequence[Tensor]) -> Real:
    """The numbers that a constant stands for; those of a plain one are what is stored."""
    data, q = tensor.data, tensor.quantization
    assert data is not None
    if q is None or not is_quantized(tensor):
        return Real(data)
    if isinstance(q, Blockwise):
        real = _of_blocks(tensor, q, tensors)
        return Real(
            real,
            Given(MODEL, max(bits_of(tensor.type), _LEAST)),
            "its scales are per block: the numbers stay, the encoding does not",
        )
    scale, zero = (_lined_up(v, q, data.ndim) for v in (q.scale.astype(np.float32), q.zero.astype(np.int64)))
    real = (data.astype(np.int64) - zero).astype(np.float32) * scale
    return Real(real.astype(np.float32), given_of(tensor))


def _lined_up(values: Array, q: Quantization, rank: int) -> Array:
    if not q.per_axis:
        return values.reshape(())
    return values.reshape([-1 if axis == q.axis else 1 for axis in range(rank)])


def _of_blocks(tensor: Tensor, q: Blockwise, tensors: Sequence[Tensor]) -> Array:
    """Blocks lie along the last axis; their scales are a tensor of their own."""
    assert tensor.data is not None
    if not 0 <= q.scales < len(tensors) or tensors[q.scales].data is None or q.size < 1:
        raise ModelError(f"tensor '{tensor.name}': the scales of its blocks are missing")
    scales = tensors[q.scales].data
    zeros = tensors[q.zeros].data if 0 <= q.zeros < len(tensors) else None
    rows = tensor.data.reshape(-1, tensor.data.shape[-1]).astype(np.float32)
    assert scales is not None
    if scales.size * q.size != rows.size:
        raise ModelError(f"tensor '{tensor.name}': {scales.size} scales do not fit blocks of {q.size}")
    grid = scales.astype(np.float32).reshape(-1, 1)
    blocks = rows.reshape(-1, q.size)
    if zeros is not None:
        if zeros.size not in (1, scales.size):
            raise ModelError(
                f"tensor '{tensor.name}': {zeros.size} zero points do not fit {scales.size} scales"
            )
        blocks = blocks - zeros.astype(np.float32).reshape(-1, 1)
    return (blocks * grid).reshape(tensor.data.shape)
