"""How HTP computes in fixed point, where that is more than rounding the real result.

Measured on libQnnHtp: these rules give the stored integers that it gives. A rule gets the stored operands
and `compute`, the op itself on real numbers. Where it gives None it does not apply: the op then runs on
dequantized operands, and its result is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from openqnn.ir import Array, DType, Encoding, Node, Value
from openqnn.ops.body import Body, Sum
from openqnn.ops.schema import OPS

Compute: TypeAlias = Callable[[Sequence[str]], str]

MANTISSA = 12  # bits of the factor that takes a sum of products to steps of the output
GUARD = 3  # a step of the output is 2^3 to 2^4 of the units that a sum is cut to before it is scaled
BIAS = 28  # bits that a bias goes through
SIGNED_8 = 128, 127
FACTORS = 13  # two factors of a sum add up to 2^13 to 2^14
CONSTANT = 256  # what is added to it is a multiple of that


def centred(b: Body, x: str, value: Value) -> str:
    """Stored integers less their zero point, as float32."""
    assert value.encoding is not None
    zero = b.const(-value.encoding.offset[0], value.dtype.numpy)
    return b.op("DequantizeLinear", x, b.const(1.0, np.float32), zero)


def along(values: Array, axis: int | None, rank: int) -> Array:
    """Numbers per channel, shaped to line up with that axis; a single number stands for all channels."""
    if axis is None or values.size == 1:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """Centred integers in ONNX's axis order, and the scale of each channel or of all."""

    data: Array
    scale: Array
    axis: int | None


def _weights(n: Node, stored: Array) -> Weights:
    value = n.x(1)
    order = OPS[n.op].operand(1).order(value.rank)
    assert value.encoding is not None
    e: Encoding = value.encoding.permuted(order) if order else value.encoding
    scale, offset = np.asarray(e.scale), np.asarray(e.offset, np.float64)
    data = (stored.astype(np.float64) + along(offset, e.axis, stored.ndim)) * e.multiples(stored.shape)
    if value.dtype.signed:
        return Weights(data, scale, e.axis)
    # HTP multiplies by signed weights around zero: others are rounded to such, to hold the encoding's range.
    last = (1 << e.bitwidth) - 1
    wider = np.maximum(-offset / SIGNED_8[0], (last + offset) / SIGNED_8[1])
    return Weights(np.rint(data / along(wider, e.axis, stored.ndim)), scale * wider, e.axis)


def _bias(value: Value, stored: Array, data: Value, w: Weights) -> Array:
    """The bias in units of the products, by HTP's steps in float32.

    It goes through an encoding of 28 bits for its own range, and is then cut towards zero: by one unit less
    here and there. Where weights have a scale per channel, so has the bias, and the largest stands for all.
    """
    assert value.encoding is not None
    unit = np.float32(scale_of(data)) * np.float32(w.scale.max())
    scale = unit if value.encoding.axis is not None else np.float32(value.encoding.scale[0])
    real = (stored + np.asarray(value.encoding.offset[0])).astype(np.float32) * scale
    step = np.abs(real).max(initial=0) / np.float32(1 << BIAS)
    if not step:
        return np.zeros(real.shape)
    return np.trunc(np.rint(real * (np.float32(1) / step)) * step / unit).astype(np.float64)


def product(n: Node, b: Body, x: Sequence[str], compute: Compute, channel: int) -> str | None:
    """A sum of products of 8-bit data and constant weights; `channel` is the output's axis of channels."""
    data, out = n.x(0), n.out
    if not _is_byte(data) or not _is_byte(out) or x[1] not in b.constants or n.x(1).dtype.bits > 8:
        return None
    if len(x) > 2 and x[2] and x[2] not in b.constants:
        return None
    w = _weights(n, b.constants[x[1]])
    unit = w.scale * scale_of(data)
    cut, factor = _cut(unit / scale_of(out))
    names = [centred(b, x[0], data), b.const((w.data * along(cut, w.axis, w.data.ndim)).astype(np.float32))]
    if len(x) > 2 and x[2]:
        names.append(b.const((_bias(n.x(2), b.constants[x[2]], data, w) * cut).astype(np.float32)))
    found = Sum(compute(names), unit, cut, channel)
    middle = b.op("Add", b.op("Floor", found.name), b.const(0.5, np.float32))
    stored = scaled(b, middle, out, factor, channel)
    b.sums[stored] = found
    return stored


def _cut(steps: Array, finer: int = 0) -> tuple[Array, Array]:
    """How a sum whose unit is that many steps of the output is rounded.

    It is cut down to multiples of 1 / the first number, and the middle of what was cut off, times the second,
    is rounded to steps. All of it is exact in float32. One bit `finer` costs one bit of the factor.
    """
    mantissa, exponent = np.frexp(steps)
    factor = np.rint(np.ldexp(mantissa, MANTISSA - finer)) / (1 << (MANTISSA + GUARD))
    return np.exp2((exponent + GUARD + finer).astype(np.float64)), factor


def _middle(b: Body, found: Sum, cut: Array, rank: int) -> str:
    """The sum cut anew, and the middle of what was cut off."""
    change = along(cut / found.cut, found.axis, rank)
    moved = b.op("Mul", found.name, b.const(change.astype(np.float32)))
    return b.op("Add", b.op("Floor", moved), b.const(0.5, np.float32))


def clipped_sum(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Relu right behind a sum of products: HTP rounds the sum to the steps of Relu's output at once."""
    found, out = b.sums.get(x[0]), n.out
    if found is None or n.x(0).encoding == out.encoding or not _is_byte(out):
        return None
    cut, factor = _cut(found.unit / scale_of(out))
    stored = scaled(b, _middle(b, found, cut, out.rank), out, factor, found.axis)
    return stored if not offset_of(out) else b.op("Max", stored, b.const(-offset_of(out), out.dtype.numpy))


def unrounded_sum(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """An activation right behind a sum of products: HTP does not round the sum to 8 bits before it."""
    found, out = b.sums.get(x[0]), n.out
    if found is None or not _is_byte(out):
        return None
    cut, factor = _cut(found.unit / scale_of(out), finer=1)
    real = along(factor * scale_of(out), found.axis, out.rank).astype(np.float32)
    operands = [b.op("Mul", _middle(b, found, cut, out.rank), b.const(real))]
    operands += [dequantized(b, name, n.x(i)) for i, name in enumerate(x[1:], start=1) if name]
    zero = b.const(-offset_of(out), out.dtype.numpy)
    return b.op("QuantizeLinear", compute(operands), b.const(scale_of(out), np.float32), zero)


def dequantized(b: Body, x: str, value: Value) -> str:
    zero = b.const(-offset_of(value), value.dtype.numpy)
    return b.op("DequantizeLinear", x, b.const(scale_of(value), np.float32), zero)


def _is_byte(value: Value) -> bool:
    return value.dtype in (DType.UFIXED_8, DType.SFIXED_8) and value.encoding is not None


def scale_of(value: Value) -> float:
    assert value.encoding is not None
    return value.encoding.scale[0]


def offset_of(value: Value) -> int:
    assert value.encoding is not None
    return value.encoding.offset[0]


def smallest_factor(n: Node) -> float:
    """The least step that a product of data and weight is, in steps of the output."""
    weights = n.x(1).encoding
    return min(weights.scale) * scale_of(n.x(0)) / scale_of(n.out) if weights is not None else 0.0


def scaled(b: Body, x: str, out: Value, factor: Array, channel: int) -> str:
    """Real numbers times a factor per channel, as stored integers of the output."""
    assert out.encoding is not None
    zero = np.full(factor.shape, -out.encoding.offset[0]).astype(out.dtype.numpy)
    if factor.size == 1:
        factor, zero = factor.reshape(()), zero.reshape(())
    elif channel == -1:  # ONNX Runtime would quantize element by element
        x, factor, zero = b.op("Mul", x, b.const(factor.astype(np.float32))), np.ones(()), zero[0]
    return b.op("QuantizeLinear", x, b.const((1 / factor).astype(np.float32)), b.const(zero), axis=channel)


def total(n: Node, b: Body, x: Sequence[str], sign: int) -> str | None:
    """The sum or difference of two 8-bit tensors: factors of 14 bits for both together, then rounded down.

    The constant that holds the zero points and the half for rounding is coarser than the factors.
    """
    values = (n.x(0), n.x(1), n.out)
    if not all(_is_byte(v) and not v.dtype.signed for v in values):
        return None
    ratios = [scale_of(v) / scale_of(n.out) for v in values[:2]]
    bits = FACTORS - int(np.floor(np.log2(sum(ratios))))
    factors = [np.rint(np.ldexp(r, bits)) * s for r, s in zip(ratios, (1, sign), strict=True)]
    zeros = sum(f * offset_of(v) for f, v in zip(factors, values, strict=False))
    constant = CONSTANT * np.floor((np.ldexp(0.5 - offset_of(n.out), bits) + zeros) / CONSTANT + 0.5)
    terms = [
        b.op("Mul", b.cast(name, np.float32), b.const(np.ldexp(f, -bits), np.float32))
        for name, f in zip(x, factors, strict=False)
    ]
    # Half a unit less a half: rounding to the nearest then rounds down, and never meets a tie.
    shift = b.const(np.ldexp(constant + 0.5, -bits) - 0.5, np.float32)
    real = b.op("Add", b.op("Add", *terms), shift)
    return b.op("QuantizeLinear", real, b.const(1.0, np.float32), b.const(0, n.out.dtype.numpy))


def squared(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A squared difference in 8 bits: HTP rounds the difference to 8 bits, too, before it squares it."""
    values = (n.x(0), n.x(1), n.out)
    if not all(_is_byte(v) and not v.dtype.signed for v in values):
        return None
    out = n.out
    step = 2 * np.sqrt(_largest(out)) / 255
    difference = b.op("Sub", *(dequantized(b, name, v) for name, v in zip(x, values, strict=False)))
    rounded = b.op("Round", b.op("Mul", difference, b.const(1 / step, np.float32)))
    real = b.op("Mul", b.op("Mul", rounded, rounded), b.const(step**2, np.float32))
    zero = b.const(-offset_of(out), out.dtype.numpy)
    return b.op("QuantizeLinear", real, b.const(scale_of(out), np.float32), zero)


def _largest(value: Value) -> float:
    """The largest real number that an 8-bit value holds."""
    return scale_of(value) * (255 + offset_of(value))
