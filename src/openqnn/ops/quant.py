"""Between real numbers and stored integers: real = scale * (stored + offset)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Array, DType, Encoding, Node, Value
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import FREE, Moves, flag, op, result, tensor
from openqnn.ops.shape_rules import same


def encoding_of(n: Node, value: Value) -> Encoding:
    if value.encoding is None:
        raise ShapeError(f"{n.where}: '{value.name}' is {value.dtype.label} but has no encoding")
    return value.encoding


def _is_native(e: Encoding, dtype: DType) -> bool:
    """Whether ONNX has the encoding: all bits of an 8 or 16 bit type, zero points inside its range."""
    bits = dtype.numpy.itemsize * 8
    low = -(1 << (bits - 1)) if dtype.signed else 0
    inside = all(low <= -o < low + (1 << bits) for o in e.offset)
    return inside and bits <= 16 and e.bitwidth == bits and e.blocks is None


def _native(e: Encoding, b: Body, dtype: DType) -> tuple[str, str, int]:
    """Scale, zero point and axis as ONNX writes them."""
    pick = slice(None) if e.axis is not None else 0
    scale, zero = np.asarray(e.scale, np.float32), -np.asarray(e.offset, np.int64)
    return b.const(scale[pick]), b.const(zero.astype(dtype.numpy)[pick]), e.axis if e.axis is not None else 1


def _steps(e: Encoding, value: Value) -> Array:
    return e.steps(value.shape) if e.axis is not None else np.asarray(e.scale[0], np.float64)


def _offsets(e: Encoding, value: Value) -> Array:
    """Offsets shaped to line up with the data."""
    shape = [1] * value.rank
    if e.axis is not None:
        shape[e.axis] = len(e.offset)
    return np.asarray(e.offset, np.float64).reshape(shape if e.axis is not None else ())


def dequantize(n: Node, b: Body, x: str, value: Value) -> str:
    """Stored integers of `value` as float32."""
    e, dtype = encoding_of(n, value), value.dtype
    if _is_native(e, dtype):
        scale, zero, axis = _native(e, b, dtype)
        return b.op("DequantizeLinear", x, scale, zero, axis=axis)
    wide = b.op("Add", b.cast(x, np.float64), b.const(_offsets(e, value)))
    return b.cast(b.op("Mul", wide, b.const(_steps(e, value))), np.float32)


def quantize(n: Node, b: Body, x: str, value: Value) -> str:
    """Float32 as the stored integers of `value`: halves to even, saturated to the bit width."""
    e, dtype = encoding_of(n, value), value.dtype
    if _is_native(e, dtype):
        scale, zero, axis = _native(e, b, dtype)
        return b.op("QuantizeLinear", x, scale, zero, axis=axis)
    steps = b.op("Round", b.op("Div", b.cast(x, np.float64), b.const(_steps(e, value))))
    stored = b.op("Sub", steps, b.const(_offsets(e, value)))
    low = -(1 << (e.bitwidth - 1)) if dtype.signed else 0
    bounds = (b.const(float(v), np.float64) for v in (low, low + (1 << e.bitwidth) - 1))
    # By way of 64 bits: a direct cast of a float above 2^31 to an unsigned type is undefined.
    return b.cast(b.cast(b.op("Clip", stored, *bounds), np.int64), dtype.numpy)


def _convert_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """Any of the two sides may be real already."""
    source, target = n.x(0), n.out
    if source.dtype is target.dtype and source.encoding == target.encoding:
        return b.op("Identity", x[0])
    real = dequantize(n, b, x[0], source) if source.dtype.is_fixed else _as_float32(b, x[0], source.dtype)
    if target.dtype.is_fixed:
        return quantize(n, b, real, target)
    return real if target.dtype is DType.FLOAT_32 else b.cast(real, target.dtype.numpy)


def _as_float32(b: Body, x: str, dtype: DType) -> str:
    return x if dtype is DType.FLOAT_32 else b.cast(x, np.float32)


def _whole_tensor(n: Node, perm: Sequence[int]) -> bool:
    """Encodings along an axis stay with the axis order that they were made for."""
    return all(v.encoding is None or v.encoding.axis is None for v in (n.x(0), n.out))


@op
class Quantize:
    """Real numbers to the stored integers of the output's encoding."""

    in0 = tensor()
    out0 = result(FREE)
    infer = same
    lower = _convert_onnx
    moves = Moves.ELEMENTWISE
    can_move = _whole_tensor
    on_stored = True


@op
class Dequantize:
    """Stored integers to the real numbers that the input's encoding gives them."""

    in0 = tensor()
    out0 = result(FREE)
    infer = same
    lower = _convert_onnx
    moves = Moves.ELEMENTWISE
    can_move = _whole_tensor
    on_stored = True


@op
class Convert:
    """Changes the type or encoding and keeps the real numbers."""

    in0 = tensor()
    out0 = result(FREE)
    dynamic_input_data = flag(False)
    dynamic_output_data = flag(False)
    infer = same
    lower = _convert_onnx
    moves = Moves.ELEMENTWISE
    can_move = _whole_tensor
    on_stored = True
