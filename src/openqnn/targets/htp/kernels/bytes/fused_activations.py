"""Activations right behind a sum of products, as measured on libQnnHtp.

HTP does not round the sum to 8 bits before them: it cuts it off (the middle of what was cut off stands for
it), and multiplies by a factor of few bits that depends on the cut sum itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from openqnn.ir import Array, Node, Value
from openqnn.ops.onnx_writer import Body, Sum
from openqnn.targets.htp.kernels.bytes.products import (
    HUGE,
    Compute,
    affine,
    along,
    bounds,
    cut_and_factor,
    cut_down,
    is_byte,
    lack,
    nearest,
    offset_of,
    rounded,
    scale_of,
    scaled,
    short,
    single,
    whole,
)

FRACTION = 15  # bits behind the point in a cut sum times its factor
WIDTH = 1 << 13  # a cut sum keeps its lowest 13 bits, and above them -2 to 1
SLOPE = 11  # bits behind the point in the slope of a factor
STEEPEST = 12  # bits of a slope
DEEPEST = 20  # bits that can be cut off
STEPS = 256  # of an output


def clipped(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Relu: the sum is rounded to the steps of its output at once; where its zero is the first, or data are
    folded, as it is rounded without, and else as by Prelu."""
    found, out = b.sums.get(x[0]), n.out
    if found is None or not is_byte(out):
        return None
    steps, (below, above) = _steps(found, out), _room(out)
    if (not below and n.x(0).encoding == out.encoding) or (below and found.zero_first):
        return None  # it is there already, or gets stored integers
    cut, factor = cut_and_factor(steps)
    shift = -np.log2(cut)
    if below and not found.folded:
        shift = _shift(steps, steps, above)
        factor = nearest(steps * np.exp2(FRACTION + shift)) / (1 << FRACTION)
    if not found.shared:
        found = _anew(found, shift)
    stored = rounded(b, scaled(b, _floor(b, found, shift, out), factor, found), out)
    return stored if not below else b.op("Max", stored, b.const(-offset_of(out), out.dtype.numpy))


def hard_swish(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """The factor grows with the cut sum, from nothing to that of the sum itself."""
    found, out = b.sums.get(x[0]), n.out
    if found is None or found.shared or found.bare or not is_byte(out):
        return None
    steps = _steps(found, out)
    shift = _shift(steps, steps, _room(out)[1])
    full = steps * np.exp2(FRACTION + shift)  # the factor of large sums
    kept = np.where(shift > DEEPEST, shift - FRACTION, shift)  # sums that are cut deeper come out as huge
    found = _anew(found, kept)
    v = _wrapped(b, cut_down(b, found), found, shift)
    growth = single(full) * single(found.unit) * single(1 / 6)  # float32 tells which way a half goes
    slope = nearest(np.ldexp(growth.astype(np.float64), (shift + SLOPE).astype(np.int64)))
    extra = np.maximum(np.frexp(slope)[1] - STEEPEST, 0)  # bits that are too many: the sum has them instead
    slope = np.floor(np.ldexp(slope, -extra)) / (1 << SLOPE)
    finer = _wrapped(b, _floor(b, found, kept - extra, out), found, shift - extra) if extra.any() else v
    line = slope / 2 + nearest(full / 2)
    # What the line lacks to the largest factor is never whole where there is a slope: half more, rounded, is
    # what the cut line lacks.
    most, half = nearest(full), np.where(slope > 0, 0.5, 0.0)
    rest = b.op("Relu", affine(b, finer, -slope, most - line + half, found))
    huge = affine(b, rest, np.asarray(-1.0), HUGE + most, found)
    one = np.asarray(2.0**-FRACTION)
    factor = b.op("Relu", affine(b, huge, one, -HUGE * one, found))
    return rounded(b, b.op("Mul", b.op("Add", v, b.const(0.5, np.float32)), factor), out)


def prelu(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Two factors, each with its own cut: one for what is positive and one for what is not."""
    found, out, alpha = b.sums.get(x[0]), n.out, _per_channel(n, b, x)
    if found is None or found.shared or found.bare or not is_byte(out) or alpha is None:
        return None
    steps, (below, above) = _steps(found, out), _room(out)
    found = _anew(found, _shift(steps, steps, above))
    # Each side is below zero where the other one holds, but for slopes below zero, which turn the sign.
    sign = np.where(alpha < 0, 1.0, -1.0)
    sides: list[str] = []
    for each, room, by in ((steps, above, 1.0), (steps * alpha, np.where(alpha < 0, above, below), sign)):
        shift = _shift(steps, np.abs(each), room)
        factor = nearest(each * np.exp2(FRACTION + shift)) / (1 << FRACTION)
        sides.append(b.op("Relu", scaled(b, _floor(b, found, shift, out), by * factor, found)))
    if np.all(alpha >= 0):
        return rounded(b, b.op("Sub", *sides), out)
    return rounded(b, b.op("Add", sides[0], affine(b, sides[1], sign, np.zeros(1), found)), out)


def _room(out: Value) -> tuple[int, int]:
    """How many steps there are below zero and above it."""
    low, high = bounds(out)
    return -offset_of(out) - low, high + offset_of(out)


def _steps(found: Sum, out: Value) -> Array:
    """How many steps of the activation's output a unit is: HTP goes by those that the sum would have."""
    return (found.steps * (found.step / single(scale_of(out)))).astype(np.float64)


def _per_channel(n: Node, b: Body, x: Sequence[str]) -> Array | None:
    """The slopes of Prelu where they are constant and differ by channel at most."""
    stored, value = b.constants.get(x[1]), n.x(1)
    if stored is None or value.encoding is None or max(stored.shape, default=1) != stored.size:
        return None
    return value.encoding.dequantize(stored).astype(np.float64).reshape(-1)


def _shift(steps: Array, each: Array, room: Array | int) -> Array:
    """How many bits are cut off: so few that the largest output still fits, but one where there are some.

    `each` are steps of the output per unit of the sum, `room` how many there are on its side of zero.
    """
    fits = -np.frexp(short(each) * STEPS / np.maximum(room, 1))[1] - 4
    return np.maximum(fits, np.minimum(1, -np.frexp(steps)[1] - 3)).astype(np.float64)


def _anew(found: Sum, shift: Array) -> Sum:
    """The sum in units that are 1 with so many bits cut off."""
    cut = np.exp2(-shift)
    if np.all(cut == found.cut):
        return found
    name, less = found.cut_by(cut)
    return replace(found, cut=cut, name=name, lack=less)


def _floor(b: Body, found: Sum, shift: Array, out: Value) -> str:
    """The sum with so many bits cut off."""
    cut = np.exp2(-shift)
    change = cut / found.cut
    if np.all(change == 1):
        return cut_down(b, found)
    if found.lack is not None:
        return whole(b, affine(b, found.name, change, found.lack * change - lack(cut), found))
    by = b.const(along(change, found.axis, out.rank).astype(np.float32))
    return b.op("Floor", b.op("Mul", found.name, by))


def _wrapped(b: Body, v: str, found: Sum, shift: Array) -> str:
    """A cut sum as HTP keeps it. It makes no difference where all sums that change are beyond the gate."""
    if (WIDTH * found.unit * np.exp2(shift)).min() >= 3:
        return v
    above = b.op("Floor", b.op("Mul", v, b.const(1 / WIDTH, np.float32)))
    kept = b.op("Clip", above, b.const(-2.0, np.float32), b.const(1.0, np.float32))
    return b.op("Add", v, b.op("Mul", b.op("Sub", kept, above), b.const(WIDTH, np.float32)))
