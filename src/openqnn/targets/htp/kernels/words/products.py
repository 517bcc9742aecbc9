"""How HTP adds products of 16-bit data and constant weights, and multiplies such data by slopes.

Measured on libQnnHtp: it adds stored integers, their zero point with them, times weights, and drops as many
bits of the sum as weights have, 8 or 16. What the zero point has added is taken off and a bias is put on in
the same units, rounded; a bias beside 8-bit weights is cut towards zero. Filters of many taps along an axis
have a kernel that drops nothing. Between these are filters for which it takes weights of 16 bits and computes
something else: the lower byte goes astray. So it does with gaps between taps. Where a unit of what is left of
a sum is less than 2^-16 of a step of the output, its shift counts from the start again, and results are 2^32
times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import OPS
from openqnn.targets.htp.kernels.bytes.products import (
    Compute,
    along,
    centred,
    offset_of,
    rounded,
    scale_of,
    weights_of,
)
from openqnn.targets.htp.kernels.words.curves import HIGHEST, factor, is_wide

FEW_TAPS, MANY_TAPS = 8, 64
APART = 2
FINEST, AGAIN = 2.0**-16, 2.0**32
BYTE = 256.0
DIGITS = 6  # behind the point of a bias in units: far more than its integers have
PLANE = 4  # axes of weights that go along two axes of the data
EXACT_TAPS, EXACT_WORK = (
    256,
    1 << 22,
)  # products in a sum that float32 holds, and in a layer that takes no time


def taps(n: Node) -> int:
    """How many filter taps HTP goes through along one axis; 1 for what is no convolution.

    Where channels meet, it takes strides out of the taps and puts them into the channels.
    """
    if OPS[n.op].operand(1).layout == "" or "stride" not in n.params:
        return 1
    stride = cast("int | tuple[int, ...]", n.params["stride"] if "group" in n.params else 1)
    sizes = n.x(1).shape[:-2]
    strides = stride if isinstance(stride, tuple) else (stride,) * len(sizes)
    return max(-(-size // by) for size, by in zip(sizes, strides, strict=True))


def unit_of(n: Node) -> float:
    """How many products of one step each make a unit that is left of a sum."""
    return _unit(n.x(1).dtype.bits)


def _unit(bits: int) -> float:
    return float(1 << (16 if bits > 8 else 8))


def least_scale(data: float, out: float, bits: int) -> float:
    """The finest scale of weights that HTP computes right with, where data and output have 16 bits."""
    return out * FINEST / (data * _unit(bits))


def goes_astray(n: Node) -> bool:
    """Whether HTP computes something else with weights of 16 bits."""
    return FEW_TAPS < taps(n) < MANY_TAPS or _is_apart(n)


def _is_apart(n: Node) -> bool:
    """Whether taps are too far apart: by two where channels meet, unless there are strides, else by three."""
    dilation, stride = n.params.get("dilation", 1), n.params.get("stride", 1)
    farthest, step = (max(v) if isinstance(v, tuple) else v for v in (dilation, stride))
    if "group" in n.params:
        return cast(int, farthest) > 1 == step
    return cast(int, farthest) > APART


@dataclass(frozen=True, slots=True)
class Filters:
    """Integer weights in ONNX's axis order, a scale for all or for each, and what each filter adds up to."""

    data: Array
    scale: Array
    sums: Array


def wide_product(n: Node, b: Body, x: Sequence[str], compute: Compute, channel: int) -> str | None:
    """A sum of products of 16-bit data and constant weights; `channel` is the output's axis of channels.

    Halves of the zero point's part are rounded down.
    """
    if not _applies(n, b, x) or taps(n) >= MANY_TAPS:
        return None
    w = _filters(n, b.constants[x[1]])
    unit, wide = unit_of(n), n.x(1).dtype.bits > 8
    step = scale_of(n.x(0)) * w.scale * unit
    part = w.sums * offset_of(n.x(0)) / unit
    more = np.ceil(part - 0.5) - part  # `compute` gets data that are without the zero point from the start
    if len(x) > 2 and x[2]:
        bias = n.x(2).encoding
        assert bias is not None
        real = (b.constants[x[2]] + np.asarray(bias.offset)) * np.asarray(bias.scale)
        units = np.round(real / step, DIGITS)  # or a whole number would be cut to the one below
        more = more + (np.rint if wide else np.trunc)(units)
    cut = _cut_sum(n, b, x[0], w, more, unit, compute)
    fine = w.scale < least_scale(scale_of(n.x(0)), scale_of(n.out), n.x(1).dtype.bits)
    ratio = (scale_of(n.out) / np.where(fine, step * AGAIN, step)).astype(np.float32)
    zero = np.full(len(ratio), -offset_of(n.out), n.out.dtype.numpy)
    pick = slice(None) if len(ratio) > 1 else 0
    stored = b.op("QuantizeLinear", cut, b.const(ratio[pick]), b.const(zero[pick]), axis=channel % n.out.rank)
    if not wide:  # for activations: beside weights of 16 bits they get stored integers
        b.wide[stored] = cut, along(step, channel % n.out.rank, n.out.rank)
    return stored


def _cut_sum(n: Node, b: Body, x: str, w: Filters, more: Array, unit: float, compute: Compute) -> str:
    """The sum in whole units.

    ONNX Runtime adds in float32: next to a whole number, one sum in some dozens is cut to the wrong one.
    Small layers add both bytes of the data for themselves, which is exact.
    """
    data = centred(b, x, n.x(0))
    many = w.data.size // w.sums.size
    if unit > BYTE or many > EXACT_TAPS or n.out.size * many > EXACT_WORK:
        weights = b.const((w.data / unit).astype(np.float32))
        return b.op("Floor", compute([data, weights, b.const(more.astype(np.float32))]))
    weights = b.const(w.data.astype(np.float32))
    whole = np.floor(more)
    rest = b.const(np.rint((more - whole) * BYTE).astype(np.float32))
    high = b.op("Floor", b.op("Mul", data, b.const(1 / BYTE, np.float32)))
    low = b.op("Sub", data, b.op("Mul", high, b.const(BYTE, np.float32)))
    carried = b.op("Floor", b.op("Mul", compute([low, weights, rest]), b.const(1 / BYTE, np.float32)))
    return b.op("Add", compute([high, weights, b.const(whole.astype(np.float32))]), carried)


def wide_prelu(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Both slopes are factors of the same shift, in 15 bits, cut off towards zero.

    Behind a layer they have so many bits that nothing is seen of them.
    """
    if not is_wide(n.x(0)) or not is_wide(n.x(1)) or not is_wide(n.out) or x[1] not in b.constants:
        return None
    slopes = (b.constants[x[1]].astype(np.float64) + offset_of(n.x(1))) * scale_of(n.x(1))
    if x[0] in b.wide:
        return behind_layer(n, b, [x[0], b.const(slopes.astype(np.float32))], compute)
    ratio = float(np.float32(scale_of(n.x(0))) / np.float32(scale_of(n.out)))
    unit = 2.0 ** -factor(ratio * max(1.0, float(np.abs(slopes).max(initial=0.0))))[1]
    above, below = np.trunc(ratio / unit), np.trunc(slopes * ratio / unit)
    slopes = b.const((below / above).astype(np.float32))
    return rounded(b, compute([centred(b, x[0], n.x(0), float(above * unit)), slopes]), n.out)


def behind_layer(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """An activation right behind a layer gets the sum, and what comes out is cut to steps, not rounded.

    So it is beside weights of 8 bits only.
    """
    if x[0] not in b.wide or not is_wide(n.out):
        return None
    cut, step = b.wide[x[0]]
    real = compute([b.op("Mul", cut, b.const(step.astype(np.float32))), *x[1:]])
    steps = b.op("Mul", real, b.const(1 / scale_of(n.out), np.float32))
    return rounded(b, b.op("Floor", steps), n.out)


def _applies(n: Node, b: Body, x: Sequence[str]) -> bool:
    """Not for stacks of matrices: each would have a zero point's part of its own."""
    if not is_wide(n.x(0)) or not is_wide(n.out) or not all(name in b.constants for name in x[1:3] if name):
        return False
    operand, rank = OPS[n.op].operand(1), n.x(1).rank
    signed = n.x(1).dtype.signed or (n.x(1).dtype.bits <= 8 and rank <= PLANE)  # others become so
    return signed and (operand.order(rank) is not None or rank == 2)


def _filters(n: Node, stored: Array) -> Filters:
    operand, rank = OPS[n.op].operand(1), stored.ndim
    assert operand.channel_axis is not None
    order = operand.order(rank)
    axis = operand.channel_axis % rank - bool(n.params.get("transpose_in1"))
    w = weights_of(n, stored)
    data = np.minimum(w.data, HIGHEST)
    others = tuple(i for i in range(rank) if i != (order.index(axis) if order else axis))
    return Filters(data, w.scale, data.sum(axis=others))
