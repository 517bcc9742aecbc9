"""Turn the C structs of a library into graph records: the reverse of `openqnn.qnn.marshal`."""

from __future__ import annotations

import ctypes as c
import math
from typing import Any

import numpy as np

from openqnn.errors import BackendError, ModelError
from openqnn.qnn import abi
from openqnn.qnn.net import Array, NetQuant, NetScalar, NetTensor, TensorKind

_ENCODINGS = {
    4: "BLOCK", 6: "VECTOR", 7: "FLOAT_BLOCK", 8: "BW_AXIS_SCALE_OFFSET_MAPPED",
    9: "BW_BLOCK_MAPPED", 10: "BW_BLOCKWISE_EXPANSION_MAPPED", 11: "BW_FLOAT_BLOCK",
}  # fmt: skip
_MAX_RANK = 32
_LARGE = 1 << 16  # bytes
_FOUR_BITS = (abi.SFIXED_4, abi.UFIXED_4)


def read_tensor(struct: abi.Tensor, borrow: bool = False) -> NetTensor:
    """The record of a tensor. Its data is copied, unless large data may be borrowed from where it is."""
    body = struct.body.v1
    name = text(body.name)
    if body.type not in set(TensorKind):
        raise ModelError(f"tensor '{name}' is of type {body.type}, which is not supported")
    if body.rank > _MAX_RANK:
        raise ModelError(f"tensor '{name}' claims {body.rank} dimensions")
    kind = TensorKind(body.type)
    dims = tuple(body.dims[index] for index in range(body.rank))
    data = _data(body, name, dims, borrow) if kind is TensorKind.STATIC else None
    return NetTensor(name, kind, body.dtype, dims, _quant(body, name, dims), data)


def read_scalar(struct: abi.Scalar) -> NetScalar:
    """The record of a scalar parameter."""
    field = abi.SCALAR_FIELDS.get(struct.dtype)
    if field is None:
        raise ModelError(f"a scalar parameter of type {abi.dtype_name(struct.dtype)} is not supported")
    value = getattr(struct.value, field)
    return NetScalar(struct.dtype, bool(value) if struct.dtype == abi.BOOL_8 else value)


def text(value: bytes | None) -> str:
    """A C string that may be missing."""
    return (value or b"").decode(errors="replace")


def _data(body: abi.TensorV1, name: str, dims: tuple[int, ...], borrow: bool) -> Array | None:
    if body.mem_type != abi.MEMORY_RAW:
        raise ModelError(
            f"tensor '{name}' keeps its data in memory of type {body.mem_type}, not plain memory"
        )
    if not body.buffer.data:
        return None
    try:
        storage = abi.numpy_dtype(body.dtype)
    except BackendError as error:
        raise ModelError(f"tensor '{name}': {error.message}") from error
    address, size = body.buffer.data, body.buffer.size
    if borrow and size >= _LARGE:
        raw = np.frombuffer((c.c_uint8 * size).from_address(address), np.uint8)
    else:
        raw = np.frombuffer(c.string_at(address, size), np.uint8)
    count = math.prod(dims)
    if body.dtype in _FOUR_BITS and raw.size == (count + 1) // 2 != count:
        return raw
    if raw.size != count * storage.itemsize:
        what = f"{abi.dtype_name(body.dtype)} {list(dims)}"
        raise ModelError(f"tensor '{name}' is {what}, but its data has {raw.size} bytes")
    return raw.view(storage).reshape(dims)


def _quant(body: abi.TensorV1, name: str, dims: tuple[int, ...]) -> NetQuant | None:
    params: abi.QuantizeParams = body.quant
    if params.definition != abi.DEFINED:
        return None
    value: Any = params.value
    match params.encoding:
        case abi.ENCODING_TENSOR:
            return NetQuant((value.tensor.scale,), (value.tensor.offset,))
        case abi.ENCODING_TENSOR_BITS:
            item = value.tensor_bits
            return NetQuant((item.scale,), (item.offset,), None, item.bitwidth)
        case abi.ENCODING_AXIS:
            axis = value.axis
            pairs = [(axis.items[i].scale, axis.items[i].offset) for i in range(axis.count)]
            return NetQuant(tuple(s for s, _ in pairs), tuple(o for _, o in pairs), axis.axis)
        case abi.ENCODING_AXIS_BITS:
            axis = value.axis_bits
            scales = tuple(axis.scales[i] for i in range(axis.count))
            offsets = tuple(axis.offsets[i] if axis.offsets else 0 for i in range(axis.count))
            return NetQuant(scales, offsets, axis.axis, axis.bitwidth)
        case abi.ENCODING_EXPANSION:
            return _expansion(value.expansion[0], name, dims, body.dtype)
        case abi.UNDEFINED:
            return None
        case other:
            kind = _ENCODINGS.get(other, str(other))
            raise ModelError(f"tensor '{name}' has an encoding of kind {kind}, which is not supported")


def _expansion(item: abi.BlockwiseExpansion, name: str, dims: tuple[int, ...], dtype: int) -> NetQuant:
    """Scales of channels and the multiples of their blocks; the structure does not say how many channels."""
    if not 0 <= item.axis < len(dims):
        raise ModelError(f"tensor '{name}' has scales along axis {item.axis} of {len(dims)}")
    count = dims[item.axis]
    number = c.c_uint16 if item.multiple_storage == abi.MULTIPLES_16 else c.c_uint8
    multiples = (number * (count * item.blocks)).from_address(item.multiples)
    return NetQuant(
        tuple(item.items[i].scale for i in range(count)), tuple(item.items[i].offset for i in range(count)),
        item.axis, abi.numpy_dtype(dtype).itemsize * 8 - item.multiple_bits, tuple(multiples),
    )  # fmt: skip
