"""Quantized programs: PT2E's quantized_decomposed ops and torchao's affine ones.

The graph is in floating point, and the encodings are given by the names of tensors. A weight that is stored
in integers becomes the real numbers that they stand for. With `keep_nodes` the graph rounds where the program
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from openqnn.frontends.onnx import quant as onnx
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.frontends.translation import NARROW
from openqnn.ir import MODEL, Array, DType, Encoding, Given, Value

PT2E, AO = "quantized_decomposed", "torchao"
_WIDEST = 16  # biases are in 32 bits, which the quantizer finds itself
_RUN_TIME = "its scale is computed at run time: the tensor is in floating point"
_PER_BLOCK = "its scales are per block: the numbers stay, of the encoding the width does"


def _bits(low: int, high: int) -> int:
    return max(1, int(high - low).bit_length())


def _given(
    t: TorchTranslation, name: str, scale: Array, zero: Array, axis: int | None, low: int, high: int
) -> None:
    """What the program says of a tensor; where two speak of it, the first counts."""
    bits, signed = _bits(low, high), low < 0
    scales, zeros = (
        scale.astype(np.float64).ravel(),
        np.broadcast_to(zero, scale.shape).astype(np.int64).ravel(),
    )
    if bits > _WIDEST or not np.all(np.isfinite(scales) & (scales > 0)) or name in t.graph.given:
        return
    # A range of another start than that of its storage: the integers are moved to it.
    start = -(1 << (bits - 1)) if signed else 0
    shift = 0 if high - low < (1 << bits) - 1 else start - low
    offsets = tuple(int(-z - shift) for z in zeros)
    where = axis if scales.size > 1 else None
    encoding = Encoding(tuple(scales.tolist()), offsets, bits, where, signed and not any(offsets))
    found = Given(MODEL, bits, encoding=encoding, signed=signed)
    t.graph.given[name] = found if axis is not None or not any(offsets) else found.unsigned()


def _activation(
    t: TorchTranslation, x: Value, scale: Array, zero: Array, axis: int | None, low: int, high: int
) -> Value:
    if t.keep_nodes:
        kind = {8: DType.INT_8 if low < 0 else DType.UINT_8, 16: DType.INT_16 if low < 0 else DType.UINT_16}
        dtype = kind.get(_bits(low, high))
        if dtype is None:
            t.refuse(f"rounding to {_bits(low, high)} bits")
        factor = t.constant(scale.astype(np.float32).reshape(() if axis is None else (-1,)))
        shift = t.constant(zero.astype(dtype.numpy).reshape(factor.shape))
        stored = onnx.quantized(t, x, factor, shift, dtype, axis or 0)
        return onnx.dequantized(t, stored, factor, shift, axis or 0)
    _given(t, x.name, scale, zero, axis, low, high)
    if x.name in t.graph.given and x.data is None:
        t.graph.given[x.name] = t.graph.given[x.name].unsigned()
    return x


def _weight(
    t: TorchTranslation, x: Value, scale: Array, zero: Array, axis: int | None, low: int, high: int
) -> Value:
    """Stored integers as the real numbers that they stand for."""
    lined = lambda v: v if axis is None else v.reshape([-1 if i == axis else 1 for i in range(x.rank)])
    if x.data is None:
        real = t.cast(x, DType.FLOAT_32)
        real = t.sub(real, t.constant(lined(zero).astype(np.float32)))
        return t.mul(real, t.constant(lined(scale).astype(np.float32)))
    real = (x.data.astype(np.float32) - lined(zero).astype(np.float32)) * lined(scale).astype(np.float32)
    _given(t, x.name, scale, zero, axis, low, high)
    return t.constant(real, x.name)


def _numbers(t: TorchTranslation, term: Term | None, what: str) -> Array | None:
    """Scales or zero points; None where they are computed at run time."""
    if term is None or (isinstance(term, Value) and not t.is_static(term)):
        return None
    return np.asarray(t.static(term, what) if isinstance(term, Value) else term)


# -- PT2E ----------------------------------------------------------------------------------------------------


@translates("quantize_per_tensor", domain=PT2E)
def quantize_per_tensor(
    t: TorchTranslation, x: Value, scale: Term | None, zero_point: Term | None, quant_min: Term,
    quant_max: Term, dtype: DType, **unused: object,
) -> Value:  # fmt: skip
    factor, zero = _numbers(t, scale, "scale"), _numbers(t, zero_point, "zero_point")
    low, high = int(t.number(quant_min, "quant_min")), int(t.number(quant_max, "quant_max"))
    if factor is None or zero is None:
        t.notes.append((x.name, _RUN_TIME))
        return x
    if x.data is not None:
        return x  # a constant in floating point: the quantizer knows its numbers
    return _activation(t, x, factor, zero, None, low, high)


@translates("dequantize_per_tensor", domain=PT2E)
def dequantize_per_tensor(
    t: TorchTranslation, x: Value, scale: Term | None, zero_point: Term | None, quant_min: Term,
    quant_max: Term, dtype: DType, **unused: object,
) -> Value:  # fmt: skip
    if x.dtype.is_float:
        return x
    factor, zero = _numbers(t, scale, "scale"), _numbers(t, zero_point, "zero_point")
    if factor is None or zero is None:
        t.refuse("integers whose scale is computed at run time")
    low, high = int(t.number(quant_min, "quant_min")), int(t.number(quant_max, "quant_max"))
    return _weight(t, x, factor, zero, None, low, high)


@translates("quantize_per_channel", domain=PT2E)
def quantize_per_channel(
    t: TorchTranslation, x: Value, scales: Value, zero_points: Value | None, axis: int, quant_min: int,
    quant_max: int, dtype: DType, **unused: object,
) -> Value:  # fmt: skip
    factor = t.static(scales, "scales")
    zero = np.zeros_like(factor) if zero_points is None else t.static(zero_points, "zero_points")
    return _activation(t, x, factor, zero, t.axis(axis, x.rank), quant_min, quant_max)


@translates("dequantize_per_channel", domain=PT2E)
def dequantize_per_channel(
    t: TorchTranslation, x: Value, scales: Value, zero_points: Value | None, axis: int, quant_min: int,
    quant_max: int, dtype: DType, **unused: object,
) -> Value:  # fmt: skip
    if x.dtype.is_float:
        return x
    factor = t.static(scales, "scales")
    zero = np.zeros_like(factor) if zero_points is None else t.static(zero_points, "zero_points")
    return _weight(t, x, factor, zero, t.axis(axis, x.rank), quant_min, quant_max)


@translates("choose_qparams", "choose_qparams_symmetric", "choose_qparams_per_token",
            "choose_qparams_per_token_asymmetric", domain=PT2E)  # fmt: skip
@translates("choose_qparams_affine", domain=AO)
def choose_qparams(t: TorchTranslation, **unused: object) -> list[None]:
    """Scales that are computed at run time: the tensor stays in floating point."""
    return [None, None]


@translates("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine",
            "fake_quantize_per_tensor_affine_cachemask")  # fmt: skip
def fake_quantize(
    t: TorchTranslation, x: Value, scale: Term, zero_point: Term, axis: int | None = None, quant_min: int = 0,
    quant_max: int = 255, **unused: object,
) -> list[Value]:  # fmt: skip
    factor, zero = _numbers(t, scale, "scale"), _numbers(t, zero_point, "zero_point")
    if factor is None or zero is None:
        t.notes.append((x.name, _RUN_TIME))
        return [x]
    if "per_tensor" in t.op:  # its fourth argument is the lower end
        quant_min, axis = (quant_min if axis is None else axis), None
    return [
        _activation(t, x, factor, zero, None if axis is None else t.axis(axis, x.rank), quant_min, quant_max)
    ]


# -- torchao -------------------------------------------------------------------------------------------------


def _channel_axis(shape: Sequence[int], block: Sequence[int]) -> tuple[bool, int | None]:
    """Whether blocks are whole channels or the whole tensor, and the axis of the channels."""
    cut = [i for i, (d, b) in enumerate(zip(shape, block, strict=True)) if b != d]
    if not cut:
        return True, None
    return (True, cut[0]) if len(cut) == 1 and block[cut[0]] == 1 else (False, None)


@translates("quantize_affine", domain=AO)
def quantize_affine(
    t: TorchTranslation, x: Value, block_size: list[int], scale: Value | None,
    zero_point: Value | None = None, output_dtype: DType | None = None,
    quant_min: Term | None = None, quant_max: Term | None = None,
    **unused: object,
) -> Value:  # fmt: skip
    factor = _numbers(t, scale, "scale")
    whole, axis = _channel_axis(x.shape, block_size)
    if factor is None or not whole or x.data is not None:
        t.notes.append((x.name, _RUN_TIME if factor is None else _PER_BLOCK))
        return x
    zero = np.zeros_like(factor) if zero_point is None else t.static(zero_point, "zero_point")
    low, high = _ends(t, output_dtype, quant_min, quant_max)
    shaped = (-1,) if axis is not None else ()
    return _activation(t, x, factor.reshape(shaped), zero.reshape(shaped), axis, low, high)


@translates("dequantize_affine", domain=AO)
def dequantize_affine(
    t: TorchTranslation, x: Value, block_size: list[int], scale: Value | None,
    zero_point: Value | None = None, input_dtype: DType | None = None,
    quant_min: Term | None = None, quant_max: Term | None = None,
    **unused: object,
) -> Value:  # fmt: skip
    if x.dtype.is_float:
        return x
    factor = _numbers(t, scale, "scale")
    if factor is None or x.data is None:
        t.refuse("integers that are computed at run time, with scales of blocks or of run time")
    zero = np.zeros_like(factor) if zero_point is None else t.static(zero_point, "zero_point")
    low, high = _ends(t, input_dtype, quant_min, quant_max)
    whole, axis = _channel_axis(x.shape, block_size)
    if whole:
        shaped = (-1,) if axis is not None else ()
        return _weight(t, x, factor.reshape(shaped), zero.reshape(shaped), axis, low, high)
    t.notes.append((x.name, _PER_BLOCK))
    t.graph.given.setdefault(x.name, Given(MODEL, _bits(low, high)))
    return t.constant(_blocks_dequantized(x.data, block_size, factor, zero), x.name)


def _ends(
    t: TorchTranslation, dtype: DType | str | None, low: Term | None, high: Term | None
) -> tuple[int, int]:
    kind = t.type_of(dtype) if dtype is not None else DType.INT_8
    info = np.iinfo(NARROW.get(kind, kind).numpy) if kind.is_integer else np.iinfo(np.int8)
    ends = [
        default if v is None else int(t.number(v, "a bound"))
        for v, default in ((low, info.min), (high, info.max))
    ]
    return ends[0], ends[1]


def _blocks_dequantized(stored: Array, block: Sequence[int], scale: Array, zero: Array) -> Array:
    counts = [d // b for d, b in zip(stored.shape, block, strict=True)]
    if prod(counts) != scale.size:
        raise ValueError(f"{scale.size} scales for {prod(counts)} blocks")

    def spread(values: Array) -> Array:
        grid = np.broadcast_to(values.reshape(-1), (scale.size,)).reshape(counts).astype(np.float32)
        for axis, size in enumerate(block):
            grid = np.repeat(grid, size, axis)
        return grid

    return (stored.astype(np.float32) - spread(zero)) * spread(scale)
