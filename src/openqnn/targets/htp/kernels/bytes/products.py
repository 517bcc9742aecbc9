"""How HTP computes in fixed point, where that is more than rounding the real result.

Measured on libQnnHtp: these rules give the stored integers that it gives. A rule gets the stored operands
and `compute`, the op itself on real numbers. Where it gives None it does not apply: the op then runs on
dequantized operands, and its result is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.ir import Array, DType, Encoding, Node, Value
from openqnn.ops.onnx_writer import HUGE, Body, Sum
from openqnn.ops.schema import OPS
from openqnn.runtime.cpu.arithmetic import Compute

MANTISSA = 12  # bits of the factor that takes a sum of products to steps of the output
GUARD = 3  # a step of the output is 2^3 to 2^4 of the units that a sum is cut to before it is scaled
BIAS = 28  # bits that a bias goes through
SHORT = 15  # bits of the factor in kernels that round once
SIGNED_8 = 128, 127
NEAR = 24  # how many float32 factors on either side are tried
WHOLE, HALF_LESS = float(1 << 23), (1 << 23) - 0.5  # the least such number, and what stands right before it
ROW = 8  # places that HTP folds a row at
MOST = 1 << 23  # float32 has halves up to there
FINEST = 2.0**-10  # cuts for which larger sums are beyond all steps
PARTS = (0.5, 0.25, 0.75, 0.375, 0.625, 0.125, 0.875)  # of the room that a line has between two steps


def centred(b: Body, x: str, value: Value, step: float = 1.0) -> str:
    """Stored integers less their zero point, times a number, as float32."""
    assert value.encoding is not None
    if step == 1.0 and not value.encoding.offset[0]:
        return b.cast(x, np.float32)  # in half the time
    zero = b.const(-value.encoding.offset[0], value.dtype.numpy)
    return b.op("DequantizeLinear", x, b.const(step, np.float32), zero)


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


def weights_of(n: Node, stored: Array) -> Weights:
    """Integer weights as HTP multiplies by them: centred on zero, rescaled per channel where they do not fit
    int8."""
    value, operand = n.x(1), OPS[n.op].operand(1)
    order = operand.order(value.rank)
    assert value.encoding is not None
    e: Encoding = value.encoding.permuted(order) if order else value.encoding
    scale, offset = np.asarray(e.scale), np.asarray(e.offset, np.float64)
    data = (stored.astype(np.float64) + along(offset, e.axis, stored.ndim)) * e.multiples(stored.shape)
    axis = e.axis
    if axis is None and operand.channel_axis is not None:
        axis = operand.channel_axis % data.ndim - bool(n.params.get("transpose_in1"))
        axis = order.index(axis) if order else axis
    elif data.ndim == 1:
        axis = 0
    # HTP multiplies by signed weights around zero: channels with one that is none are rounded to such.
    others = tuple(i for i in range(data.ndim) if i != axis)
    wider = np.maximum(data.min(others) / -SIGNED_8[0], data.max(others) / SIGNED_8[1]).clip(1)
    if value.dtype.signed or (wider == 1).all():
        return Weights(data, scale, e.axis)
    return Weights(np.rint(data / along(wider, axis, data.ndim)), scale * wider, axis)


def _real_bias(value: Value, stored: Array, unit: Array) -> Array:
    """The bias in float32. Where weights have a scale per channel, so has the bias, and the largest stands
    for all."""
    assert value.encoding is not None
    scale = unit.max() if value.encoding.axis is not None else np.float32(value.encoding.scale[0])
    return (stored + np.asarray(value.encoding.offset[0])).astype(np.float32) * scale


def _cut_bias(value: Value, stored: Array, unit: Array) -> Array:
    """The bias in units of the products, by HTP's steps in float32.

    It goes through an encoding of 28 bits for its own range, and is then cut towards zero: by one unit less
    here and there.
    """
    real = _real_bias(value, stored, unit)
    step = np.abs(real).max(initial=0) / np.float32(1 << BIAS)
    if not step:
        return np.zeros(real.shape)
    return np.trunc(np.rint(real * (np.float32(1) / step)) * step / _unit(value, unit)).astype(np.float64)


def _whole_bias(value: Value, stored: Array, unit: Array) -> Array:
    """The bias in units of the products, rounded."""
    return np.rint(_real_bias(value, stored, unit) / _unit(value, unit)).astype(np.float64)


def _unit(bias: Value, unit: Array) -> Array:
    """What products have for a unit. Where a bias has a scale per channel, the largest stands for all here,
    too; where weights got theirs by rounding alone, it has not."""
    return unit.max() if bias.encoding is not None and bias.encoding.axis is not None else unit


def product(
    n: Node, b: Body, x: Sequence[str], compute: Compute, channel: int, fuses: bool = True, channels: int = 0
) -> str | None:
    """A sum of products of 8-bit data and constant weights; `channel` is the output's axis of channels.

    There are as many of these as the last axis is long, unless `channels` are given.

    Where it `fuses`, an activation behind it gets the sum.
    """
    if not _has_weights(n, b, x):
        return None
    w = weights_of(n, b.constants[x[1]])
    data, step = single(scale_of(n.x(0))), single(scale_of(n.out))
    steps = steps_of(data, single(w.scale), step)
    cut, factor = cut_and_factor(steps.astype(np.float64))

    many = channels or n.out.shape[-1]

    def cut_by(cut: Array) -> tuple[str, Array | None]:
        return _sum(n, b, x, w, compute, cut, many)

    unit = (data * single(w.scale)).astype(np.float64)
    dilated, depthwise = _is_dilated(n), "stride" in n.params and "group" not in n.params
    kinds = {"folded": _is_folded(n) or dilated, "bare": dilated, "zero_first": depthwise}
    found = Sum(cut_by, unit, steps, step, cut, *cut_by(cut), channel, many, **kinds)
    stored = _stored(b, found, factor, n.out)
    if fuses:
        b.sums[stored] = found
    return stored


def _is_folded(n: Node) -> bool:
    """Whether data are a row of several times 8 places, each of which goes through the weights for itself."""
    shape, taps = n.x(0).shape, n.x(1).shape[:-2]
    row = len(shape) == len(taps) + 2 == 4 and shape[1] == 1 and not shape[2] % ROW and shape[2] > ROW
    return row and max(taps) == 1


def _is_dilated(n: Node) -> bool:
    """Whether there are gaps between the taps of filters."""
    gaps = n.params.get("dilation", 1)
    return any(gap != 1 for gap in (gaps if isinstance(gaps, tuple) else (gaps,)))


def _sum(
    n: Node, b: Body, x: Sequence[str], w: Weights, compute: Compute, cut: Array, channels: int
) -> tuple[str, Array | None]:
    """The sum in units of 1 / cut, less as much as makes rounding cut it down, where float32 holds that."""
    bias = np.zeros(cut.shape)
    if len(x) > 2 and x[2]:
        bias = _cut_bias(n.x(2), b.constants[x[2]], single(w.scale) * single(scale_of(n.x(0)))) * cut
    less = lack(cut)
    exact = (bias - less).astype(np.float32) == bias - less
    if np.all(exact & ((cut >= FINEST) | (_largest(n, w, bias / cut) < MOST))):
        return compute(_integers(n, b, x, w, cut, np.broadcast_to(bias - less, (channels,)))), less
    return compute(_integers(n, b, x, w, cut, bias if len(x) > 2 and x[2] else None)), None


def _largest(n: Node, w: Weights, bias: Array) -> Array:
    """What sums are at most, in units of products; for weights that share a scale no limit is known."""
    if w.axis is None:
        return np.asarray(np.inf)
    others = tuple(i for i in range(w.data.ndim) if i != w.axis % w.data.ndim)
    farthest = max(abs(step + offset_of(n.x(0))) for step in bounds(n.x(0)))
    return np.abs(w.data).sum(axis=others) * farthest + np.abs(bias)


def _stored(b: Body, found: Sum, factor: Array, out: Value) -> str:
    """A sum in steps of the output: cut, and the middle of what was cut off, times a factor, rounded.

    Where zero is the first step, sums below it need not be cut right, and two passes give middles at once.
    """
    if offset_of(out) or bounds(out)[0] or found.lack is None:
        return rounded(b, scaled(b, cut_down(b, found), factor, found), out)
    above = b.op("Add", found.name, b.const(WHOLE, np.float32))
    middle = b.op("Sub", above, b.const(HALF_LESS, np.float32))
    huge = affine(b, middle, factor, np.asarray(float(HUGE)), found)
    limits = (b.const(HUGE + step, np.float32) for step in bounds(out))
    real = b.op("Sub", b.op("Clip", huge, *limits), b.const(HUGE, np.float32))
    return b.cast(real, out.dtype.numpy)


def lack(cut: Array) -> Array:
    """What multiples of `cut` have to lack for rounding to cut them down: a half, but for half a multiple."""
    return 0.5 - np.minimum(cut, 1.0) / 2


def cut_down(b: Body, found: Sum) -> str:
    """The largest integers that are not above the sum."""
    if found.lack is None:
        return b.op("Floor", found.name)
    return whole(b, found.name)


def whole(b: Body, x: str) -> str:
    """Numbers below 2^22 rounded: by adding a huge one, which takes less time than Round, or Floor."""
    huge = b.const(HUGE, np.float32)
    return b.op("Sub", b.op("Add", x, huge), huge)


def rounded_product(n: Node, b: Body, x: Sequence[str], compute: Compute, channel: int) -> str | None:
    """The product in the kernels that are for strides: a factor of 15 bits, and one rounding.

    Activations behind them get the stored integers.
    """
    if not _has_weights(n, b, x):
        return None
    w = weights_of(n, b.constants[x[1]])
    scales = single(scale_of(n.x(0))), single(w.scale), single(scale_of(n.out))
    steps = steps_of(*scales)
    zero = nearest(single(-offset_of(n.out)) / steps).astype(np.float64)
    factor = short(steps.astype(np.float64))
    bias = None
    if len(x) > 2 and x[2]:
        bias = _whole_bias(n.x(2), b.constants[x[2]], scales[0] * scales[1])
    found = compute(_integers(n, b, x, w, np.ones(steps.shape), bias))
    return floored(b, found, factor, factor * zero + 0.5, n.out, channel)


def _has_weights(n: Node, b: Body, x: Sequence[str]) -> bool:
    if not is_byte(n.x(0)) or not is_byte(n.out) or x[1] not in b.constants or n.x(1).dtype.bits > 8:
        return False
    return not (len(x) > 2 and x[2]) or x[2] in b.constants


def _integers(n: Node, b: Body, x: Sequence[str], w: Weights, cut: Array, bias: Array | None) -> list[str]:
    """Data and weights as integers, the latter times `cut`, and the bias as it is, in float32."""
    names = [
        centred(b, x[0], n.x(0)),
        b.const((w.data * along(cut, w.axis, w.data.ndim)).astype(np.float32)),
    ]
    return names if bias is None else [*names, b.const(bias.astype(np.float32))]


def single(values: Array | float) -> Array:
    """HTP computes with scales in float32, which tells where a factor is half way between two others."""
    return np.asarray(values, np.float32)


def steps_of(data: Array, weights: Array, step: Array) -> Array:
    """How many steps a product of data and weights is, in float32 and by way of the largest weights."""
    largest = weights.max()
    return data * largest / step * (weights / largest)


def nearest(values: Array | float) -> Array:
    """Rounded, and halves up."""
    return np.floor(np.asarray(values) + 0.5)


def short(steps: Array) -> Array:
    """Factors of 15 bits."""
    mantissa, exponent = np.frexp(steps)
    return np.ldexp(nearest(np.ldexp(mantissa, SHORT)), exponent - SHORT)


def cut_and_factor(steps: Array) -> tuple[Array, Array]:
    """How a sum whose unit is that many steps of the output is rounded.

    It is cut down to multiples of 1 / the first number, and the middle of what was cut off, times the second,
    is rounded to steps. All of it is exact in float32.
    """
    mantissa, exponent = np.frexp(steps)
    factor = nearest(np.ldexp(mantissa, MANTISSA)) / (1 << (MANTISSA + GUARD))
    return np.exp2((exponent + GUARD).astype(np.float64)), factor


def scaled(b: Body, cut: str, factor: Array, found: Sum) -> str:
    """The middle of what was cut off a sum, times a factor per channel."""
    return affine(b, cut, factor, factor / 2, found)


def affine(b: Body, x: str, factor: Array, more: Array, found: Sum) -> str:
    """x times a number of its channel plus another one, in one go where the channels are the second axis."""
    if found.axis != 1:
        product = b.op("Mul", x, b.const(factor.astype(np.float32)))
        return b.op("Add", product, b.const(more.astype(np.float32)))
    each = [np.broadcast_to(v, found.channels).astype(np.float32) for v in (factor, more, 0.0, 1.0)]
    return b.op("BatchNormalization", x, *map(b.const, each), epsilon=0.0)


def rounded(b: Body, x: str, out: Value, step: float = 1.0) -> str:
    """Numbers around zero as stored integers of the output."""
    zero = b.const(-offset_of(out), out.dtype.numpy)
    return b.op("QuantizeLinear", x, b.const(step, np.float32), zero)


def floored(b: Body, x: str, factor: Array, more: Array, out: Value, channel: int) -> str:
    """Integers times a factor plus a number, per channel, rounded down: in float32 where that is exact."""
    shape = [1] * out.rank
    if max(np.size(factor), np.size(more)) > 1:
        shape[channel] = -1
    line = float_line(factor, more, out)
    if line is not None:
        by, shift = (b.const(np.reshape(v, shape)) for v in line)
        return rounded(b, b.op("Add", b.op("Mul", x, by), shift), out)
    low, high = bounds(out)
    by, shift = (
        b.const(v.reshape(shape if v.size > 1 else ())) for v in (np.asarray(factor), np.asarray(more))
    )
    whole = b.op("Floor", b.op("Add", b.op("Mul", b.cast(x, np.float64), by), shift))
    return b.cast(b.op("Clip", whole, b.const(float(low)), b.const(float(high))), out.dtype.numpy)


def float_line(factor: Array, more: Array, out: Value, near: int = NEAR) -> tuple[Array, Array] | None:
    """Factors and numbers to add in float32 so that rounding gives what `floored` is to give.

    The steps are tried one by one: the result grows with the integer, so no integer between them can differ.
    What float32 cuts off decides where steps are narrow: up to `near` factors on either side are tried, too.
    """
    low, high = bounds(out)
    wanted = np.arange(low + 1, high + 1, dtype=np.float64)[:, None]
    exact, add = np.broadcast_arrays(np.reshape(factor, (1, -1)), np.reshape(more, (1, -1)))
    first = np.ceil((wanted - add) / exact)
    first += exact * first + add < wanted
    above, below = (exact * first + add - wanted).min(0), (wanted - (exact * (first - 1) + add)).min(0)
    wanted = wanted + offset_of(out)
    found = np.zeros((2, exact.size), np.float32)
    left = np.arange(exact.size)  # channels without a solution yet
    ends = np.stack((first, first - 1)).astype(np.float32)
    lowest = add[0] + offset_of(out) - 0.5 - above
    shifts = [(lowest + part * (above + below)).astype(np.float32) for part in PARTS]
    for by in _around(near):
        times = (exact[0, left] * (1 + by * 2.0**-24)).astype(np.float32)
        for each in shifts:
            line = times, each[left]
            reached, before = np.rint(ends * line[0] + line[1])
            good = np.all((reached >= wanted) & (before < wanted), axis=0)
            if not good.any():
                continue
            found[:, left[good]] = np.stack(line)[:, good]
            times, left, ends = times[~good], left[~good], ends[:, :, ~good]
            if not left.size:
                return found[0], found[1]
    return None


def _around(most: int) -> list[int]:
    """0, 2, -2, 4, -4 and so on: by how many halves of its last bit a factor is moved."""
    return [0, *(s * 2 * n for n in range(1, most + 1) for s in (1, -1))]


def bounds(value: Value) -> tuple[int, int]:
    """The least and the largest stored integer of an 8-bit value."""
    return (-128, 127) if value.dtype.signed else (0, 255)


def dequantized(b: Body, x: str, value: Value) -> str:
    zero = b.const(-offset_of(value), value.dtype.numpy)
    return b.op("DequantizeLinear", x, b.const(scale_of(value), np.float32), zero)


def is_byte(value: Value) -> bool:
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


def averaged(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A mean of 8-bit values: their sum times a factor of 15 bits, rounded once."""
    if not is_byte(n.x(0)) or not is_byte(n.out):
        return None
    count = n.x(0).size // n.out.size
    ratio = single(scale_of(n.x(0))) / single(scale_of(n.out)) / np.float32(count)
    mean = compute([centred(b, x[0], n.x(0))])
    total = b.op("Round", b.op("Mul", mean, b.const(count, np.float32)))
    factor = short(ratio.astype(np.float64))
    return floored(b, total, factor, np.asarray(0.5 - offset_of(n.out)), n.out, 0)
