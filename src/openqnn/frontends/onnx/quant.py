"""Quantization. Known scales become encodings of fixed-point values, as QNN has them; scales that are
computed at run time, or given per block, are spelled out in float arithmetic.

Outside of Quantize and Dequantize a quantized tensor is the plain integer tensor that ONNX says it is: a
Cast, which works on the stored integers, stands between. A Dequantize right behind a Quantize of the same
encoding skips both.
"""

from __future__ import annotations

import numpy as np

from openqnn.frontends.compositions import as_float
from openqnn.frontends.onnx.element_types import onnx_dtype
from openqnn.frontends.onnx.table import MICROSOFT, translates
from openqnn.frontends.translation import Translation, narrow_type
from openqnn.ir import Array, DType, Encoding, Value

FIXED = {
    DType.INT_8: DType.SFIXED_8, DType.INT_16: DType.SFIXED_16, DType.INT_32: DType.SFIXED_32,
    DType.UINT_8: DType.UFIXED_8, DType.UINT_16: DType.UFIXED_16,
}  # fmt: skip


def _zeros(zero: Value | None, shape: tuple[int, ...]) -> Array | None:
    """The zero points, which are 0 where none are given; None when they are not known."""
    if zero is None:
        return np.zeros(shape, np.int64)
    return None if zero.data is None else zero.data.ravel().astype(np.int64)


def _encoding(dtype: DType, scale: Value, zero: Value | None, axis: int) -> Encoding | None:
    """The encoding of a scale and a zero point, None when they are not known or not as QNN has them."""
    if scale.data is None or dtype not in FIXED:
        return None
    scales = np.asarray(scale.data, np.float64).ravel()
    zeros = _zeros(zero, scales.shape)
    if zeros is None:
        return None
    if scales.shape != zeros.shape or not scales.size or not np.all(np.isfinite(scales) & (scales > 0)):
        return None
    if scale.rank > 1 and scales.size > 1:
        return None  # one scale per block, or no sense at all
    offsets = tuple(int(z) for z in -zeros)
    where = axis if scale.rank == 1 and scales.size > 1 else None
    symmetric = dtype.signed and not zeros.any()
    return Encoding(tuple(scales.tolist()), offsets, dtype.bits, where, symmetric)


def _lined_up(t: Translation, v: Value, x: Value, axis: int) -> Value:
    """A scale or zero point shaped so that it broadcasts along its axis."""
    if v.size == 1:
        return t.reshape(v, ())
    if v.rank != 1 or v.shape[0] != x.shape[axis]:
        t.refuse(f"{list(v.shape)} scales or zero points do not fit axis {axis} of {list(x.shape)}")
    return t.reshape(v, tuple(d if i == axis else 1 for i, d in enumerate(x.shape)))


def _stored(t: Translation, x: Value, encoding: Encoding) -> Value:
    """An integer tensor as the fixed-point value of that encoding."""
    dtype = FIXED[x.dtype]
    if x.data is not None:
        return Value(x.name, dtype, x.shape, encoding, x.data)
    node = x.producer
    if node is not None and node.op == "Cast" and node.x(0).dtype is dtype and node.x(0).encoding == encoding:
        return node.x(0)
    return t.cast(x, dtype=dtype, encoding=encoding)


def dequantized(t: Translation, x: Value, scale: Value, zero: Value | None, axis: int = 1) -> Value:
    """The real numbers of a quantized tensor, in the type of the scale."""
    axis = t.axis(axis, x.rank) if scale.rank == 1 and scale.size > 1 else 0
    _check_range(t, x.dtype)
    if zero is not None and zero.shape != scale.shape and zero.size != scale.size:
        t.refuse(f"zero points {list(zero.shape)} do not fit scales {list(scale.shape)}")
    encoding = _encoding(x.dtype, scale, zero, axis)
    if encoding is not None and (encoding.axis is None or len(encoding.scale) == x.shape[axis]):
        return t.dequantize(_stored(t, x, encoding), narrow_type(scale.dtype))
    real = t.cast(x, DType.FLOAT_32)
    if zero is not None:
        real = t.sub(real, _lined_up(t, t.cast(zero, DType.FLOAT_32), x, axis))
    real = t.mul(real, _lined_up(t, t.cast(scale, DType.FLOAT_32), x, axis))
    return t.cast(real, scale.dtype)


def _check_range(t: Translation, dtype: DType) -> None:
    if dtype not in FIXED:
        t.refuse(f"{dtype.label} is no type of quantized data", hint="use 8, 16 or 32 bit integers")


def quantized(
    t: Translation, x: Value, scale: Value, zero: Value | None, dtype: DType, axis: int = 1
) -> Value:
    """Real numbers as integers: halves to even, saturated."""
    axis = t.axis(axis, x.rank) if scale.rank == 1 and scale.size > 1 else 0
    _check_range(t, dtype)
    encoding = _encoding(dtype, scale, zero, axis)
    if encoding is not None and (encoding.axis is None or len(encoding.scale) == x.shape[axis]):
        fixed = t.quantize(as_float(t, x), FIXED[dtype], encoding)
        return t.cast(fixed, dtype=dtype)
    steps = t.div(t.cast(x, DType.FLOAT_32), _lined_up(t, t.cast(scale, DType.FLOAT_32), x, axis))
    steps = t.round(steps)
    if zero is not None:
        steps = t.add(steps, _lined_up(t, t.cast(zero, DType.FLOAT_32), x, axis))
    return saturated(t, steps, dtype)


def saturated(t: Translation, x: Value, dtype: DType) -> Value:
    """Whole numbers in float, cut to the range of an integer type."""
    if not dtype.is_integer:
        t.refuse(f"quantized numbers are integers, not {dtype.label}")
    info = np.iinfo(dtype.numpy)
    return t.cast(t.minimum(t.maximum(x, float(info.min)), float(info.max)), dtype)


# -- blocks --------------------------------------------------------------------------------------------------


def _blocks(t: Translation, x: Value, scale: Value, axis: int, block: int) -> tuple[int, ...]:
    """The shape in which the blocks of an axis have an axis of their own."""
    whole = scale.rank == x.rank and block > 0 and scale.shape[axis] * block == x.shape[axis]
    if not whole:
        t.refuse(f"blocks of {block} with scales {list(scale.shape)} do not divide {list(x.shape)} evenly")
    return (*x.shape[:axis], scale.shape[axis], block, *x.shape[axis + 1 :])


def _per_block(t: Translation, v: Value, axis: int) -> Value:
    return t.reshape(t.cast(v, DType.FLOAT_32), (*v.shape[: axis + 1], 1, *v.shape[axis + 1 :]))


def _dequantized_blocks(
    t: Translation, x: Value, scale: Value, zero: Value | None, axis: int, block: int
) -> Value:
    axis = t.axis(axis, x.rank)
    real = t.reshape(t.cast(x, DType.FLOAT_32), _blocks(t, x, scale, axis, block))
    real = real if zero is None else t.sub(real, _per_block(t, zero, axis))
    return t.reshape(t.mul(real, _per_block(t, scale, axis)), x.shape)


def _quantized_blocks(
    t: Translation, x: Value, scale: Value, zero: Value | None, dtype: DType, axis: int, block: int
) -> Value:
    axis = t.axis(axis, x.rank)
    data = t.reshape(t.cast(x, DType.FLOAT_32), _blocks(t, x, scale, axis, block))
    steps = t.round(t.div(data, _per_block(t, scale, axis)))
    steps = steps if zero is None else t.add(steps, _per_block(t, zero, axis))
    return t.reshape(saturated(t, steps, dtype), x.shape)


# -- the ops -------------------------------------------------------------------------------------------------


@translates("DequantizeLinear")
@translates("DequantizeLinear", domain=MICROSOFT)  # of 16 bits, where ONNX had none yet
def dequantize_linear(
    t: Translation, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0,
) -> Value:  # fmt: skip
    target = onnx_dtype(output_dtype, "the result") if output_dtype else scale.dtype
    if block_size:
        real = _dequantized_blocks(t, x, scale, zero, axis, block_size)
    else:
        real = dequantized(t, x, scale, zero, axis)
    return t.cast(real, target)


@translates("QuantizeLinear")
@translates("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(
    t: Translation, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0, saturate: int = 1,
) -> Value:  # fmt: skip
    dtype = (
        onnx_dtype(output_dtype, "the result")
        if output_dtype
        else zero.dtype
        if zero is not None
        else DType.UINT_8
    )
    if block_size:
        return _quantized_blocks(t, x, scale, zero, dtype, axis, block_size)
    return quantized(t, x, scale, zero, dtype, axis)
