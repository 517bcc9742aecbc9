"""How HTP adds, subtracts and multiplies two 8-bit tensors, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from openqnn.ir import Array, Node, Value
from openqnn.ops.onnx_writer import Body
from openqnn.ops.shape_rules import along
from openqnn.targets.htp.kernels.bytes.lines import BYTES, by_line, by_sum
from openqnn.targets.htp.kernels.bytes.products import (
    GUARD,
    MANTISSA,
    SIGNED_8,
    Compute,
    centred,
    cut_and_factor,
    dequantized,
    float_line,
    floored,
    is_byte,
    nearest,
    offset_of,
    rounded,
    scale_of,
    short,
    single,
)

FACTORS = 13  # two factors of a sum add up to 2^13 to 2^14, and the larger one of a difference is as much
MOST_BITS = 15  # behind the point of a factor
CONSTANT = 256  # what is added to it is a multiple of that
MIDDLE = 256  # the middle of all products of two bytes is rounded to that
WORD = 1 << 15  # and the factor times it to that


def _bits_of_factors(largest: Any, step: Any) -> int:
    return min(FACTORS - int(np.floor(np.log2(largest / step))), MOST_BITS)


def total(n: Node, b: Body, x: Sequence[str], sign: int) -> str | None:
    """The sum or difference of two 8-bit tensors: factors of 14 bits, then rounded down.

    Those of a sum have so many together, and in a difference it is the larger one. Factors are multiples of
    the step's inverse, and halves of them go to even numbers. The constant that holds the zero points and
    the half for rounding is coarser than the factors.
    """
    values = (n.x(0), n.x(1), n.out)
    if not _are_bytes(values):
        return None
    line = _line(n, b, x) if sign > 0 else None
    if line is not None:
        return line
    *scales, step = (single(scale_of(v)) for v in values)
    bits = _bits_of_factors(sum(scales) if sign > 0 else max(scales), step)
    ratios = [float(scale * (single(1.0) / step)) for scale in scales]
    factors = [np.rint(np.ldexp(r, bits)) * s for r, s in zip(ratios, (1, sign), strict=True)]
    zeros = sum(f * offset_of(v) for f, v in zip(factors, values, strict=False))
    constant = CONSTANT * np.ceil((np.ldexp(0.5 - offset_of(n.out), bits) + zeros) / CONSTANT - 0.5)

    def stored(one: Array, other: Array) -> Array:
        return np.floor(np.ldexp(factors[0] * one + factors[1] * other + constant, -bits))

    found = _of_one(b, x, stored)
    if found is not None:
        return found
    ratios = [float(np.ldexp(f, -bits)) for f in factors]
    # Half a unit less a half: rounding to the nearest then rounds down, and never meets a tie.
    shift = float(np.ldexp(constant + 0.5, -bits) - 0.5)
    found = by_sum(b, x, ratios, shift, stored) if n.x(0).shape == n.x(1).shape else None
    if found is not None:
        return found
    terms = [_times(b, name, ratio) for name, ratio in zip(x, ratios, strict=False)]
    real = b.op("Add", b.op("Add", *terms), b.const(shift, np.float32))
    return b.op("QuantizeLinear", real, b.const(1.0, np.float32), b.const(0, n.out.dtype.numpy))


def _line(n: Node, b: Body, x: Sequence[str]) -> str | None:
    """Data times a constant, and then plus one, are rounded once."""
    for i in (0, 1):
        known = b.scaled.get(x[i])
        if known is None or x[1 - i] not in b.constants:
            continue
        name, data, factor = known
        addend = _number(b, x[1 - i], n.x(1 - i))
        if not _are_alike(n, factor, addend):
            return None
        found = _byte_line(n, b, name, data, factor, addend)
        if found is not None:
            return found
        product = b.op("Mul", dequantized(b, name, data), b.const(factor, np.float32))
        moved = b.op("Add", product, b.const(addend, np.float32))
        return rounded(b, moved, n.out, scale_of(n.out))
    return None


def _byte_line(n: Node, b: Body, x: str, data: Value, factor: Array, addend: Array) -> str | None:
    """A line from bytes to bytes, where both are single numbers."""
    if factor.size != 1 or addend.size != 1:
        return None
    every = single(np.arange(BYTES) + offset_of(data)) * single(scale_of(data))
    moved = every * single(factor.reshape(())) + single(addend.reshape(()))
    stored = np.rint(moved / single(scale_of(n.out))) - offset_of(n.out)
    return by_line(b, x, np.clip(stored, 0, BYTES - 1).astype(np.int64))


def _are_alike(n: Node, factor: Array, addend: Array) -> bool:
    """Whether both are single numbers, or one for each channel: otherwise HTP rounds the product, too."""
    if factor.size == addend.size == 1:
        return True
    # Data that was moved has its channels second.
    place = n.out.rank - 1 if any(v is not None and v.data is not None for v in n.inputs) else 1
    wanted = along(n.out.shape, place)
    return all((1,) * (n.out.rank - a.ndim) + a.shape == wanted for a in (factor, addend))


def _number(b: Body, name: str, value: Value) -> Array:
    return (b.constants[name].astype(np.float64) + offset_of(value)) * scale_of(value)


def times(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """The product of two 8-bit tensors, which is kept in mind where one is a constant."""
    made = _times_as_one(n, b, x)
    for i in (0, 1):
        if made is not None and x[1 - i] in b.constants and x[i] not in b.constants:
            b.scaled[made] = x[i], n.x(i), _number(b, x[1 - i], n.x(1 - i))
    return made


def _times_as_one(n: Node, b: Body, x: Sequence[str]) -> str | None:
    """The product of two 8-bit tensors: a factor of 15 bits, then rounded down.

    The constant that it adds for the half is off by what is lost where it takes the factor times the middle
    of all products, twice, to a multiple of a word.
    """
    values = (n.x(0), n.x(1), n.out)
    if not _are_bytes(values):
        return None
    gated = _gated(n, b, x)
    if gated is not None:
        return gated
    scales = [single(scale_of(v)) for v in values]
    steps = (scales[0] * scales[1] / scales[2]).astype(np.float64)
    factor = short(steps)
    unit = np.exp2(np.frexp(steps)[1] - 15.0)
    twice = (255 + 2 * offset_of(n.x(0))) * (255 + 2 * offset_of(n.x(1))) / 2
    moved = factor / unit * MIDDLE * nearest(twice / MIDDLE)
    lost = (WORD * nearest(moved / WORD) - moved) * unit
    more = np.asarray(lost + 0.5 - offset_of(n.out))
    first, second, _ = (offset_of(v) for v in values)
    found = _of_one(b, x, lambda one, other: np.floor(factor * (one + first) * (other + second) + more))
    if found is not None:
        return found
    line = float_line(factor, more, n.out, near=0)
    one = 1.0 if line is None else float(factor)
    both = b.op("Mul", centred(b, x[0], n.x(0), one), centred(b, x[1], n.x(1)))
    if line is None:
        return floored(b, both, factor, more, n.out, 0)
    return rounded(b, b.op("Add", both, b.const(line[1].reshape(()))), n.out)


def _gated(n: Node, b: Body, x: Sequence[str]) -> str | None:
    """A number times its own sigmoid is one function to HTP: rounded once, whatever encoding the gate has."""
    for data, gate in ((x[0], x[1]), (x[1], x[0])):
        found = b.gates.get(gate)
        if found is not None and found[0] == data:
            return rounded(b, b.op("Mul", *found[1:]), n.out, scale_of(n.out))
    return None


def gate(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A sigmoid in 8 bits: rounded as it is, but what multiplies the same data by it has to know."""
    if not _are_bytes((n.x(0), n.out)):
        return None
    real = dequantized(b, x[0], n.x(0))
    found = compute([real])
    stored = rounded(b, found, n.out, scale_of(n.out))
    b.gates[stored] = x[0], real, found
    return stored


def matrices(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """The product of two matrices of data: the sum is cut and scaled as that with constant weights.

    The second one takes the place of the weights, of signed bytes: columns with a number that is none are
    rounded to such, in larger steps.
    """
    values = (n.x(0), n.x(1), n.out)
    if not _are_bytes(values) or x[1] in b.constants or x[2]:
        return None
    scales = [single(scale_of(v)) for v in values]
    steps = (scales[0] * scales[1] / scales[2]).astype(np.float64)
    cut, factor = cut_and_factor(steps)
    first, second = centred(b, x[0], n.x(0), float(cut)), centred(b, x[1], n.x(1))
    by = b.const(factor, np.float32)
    if offset_of(n.x(1)) == -SIGNED_8[0]:
        found = compute([first, second])
    else:
        second, twice, by = _as_signed(n, b, second, float(np.frexp(steps)[0]))
        found = b.op("Mul", compute([first, second]), twice)
    middle = b.op("Add", b.op("Floor", found), b.const(0.5, np.float32))
    return rounded(b, b.op("Mul", middle, by), n.out)


def _as_signed(n: Node, b: Body, x: str, mantissa: float) -> tuple[str, str, str]:
    """Columns as signed bytes; which are cut at twice as fine a place; and the factors of the cut sums."""
    flipped = n.flag("transpose_in1")
    axis = b.ints(-1 if flipped else -2)
    most, least = b.op("ReduceMax", x, axis), b.op("ReduceMin", x, axis)
    ends = b.op("Mul", most, _real(b, 1 / SIGNED_8[1])), b.op("Mul", least, _real(b, -1 / SIGNED_8[0]))
    wider = b.op("Max", *ends, _real(b, 1.0))
    whole = b.op("Round", b.op("Div", x, wider))
    rank = n.x(1).rank
    column = b.transpose(wider, (*range(rank - 2), rank - 1, rank - 2)) if flipped else wider
    size = b.op("Mul", column, _real(b, mantissa))
    twice = b.op("Where", b.op("GreaterOrEqual", size, _real(b, 1.0)), _real(b, 2.0), _real(b, 1.0))
    parts = b.op("Mul", b.op("Div", size, twice), _real(b, 1 << MANTISSA))
    factor = b.op(
        "Mul", b.op("Floor", b.op("Add", parts, _real(b, 0.5))), _real(b, 2.0 ** -(MANTISSA + GUARD))
    )
    return whole, twice, factor


def _real(b: Body, value: float) -> str:
    return b.const(value, np.float32)


def _of_one(b: Body, x: Sequence[str], rule: Callable[[Array, Array], Array]) -> str | None:
    """Where one operand is a single number: the rule as a function of the other."""
    known = [b.constants.get(name) for name in x[:2]]
    every = np.arange(BYTES, dtype=np.float64)
    first, second = (every if k is None else k.astype(np.float64).reshape(-1) for k in known)
    if first.size + second.size != BYTES + 1:
        return None
    table = np.clip(rule(first, second), 0, BYTES - 1).astype(np.int64)
    return by_line(b, x[0] if known[0] is None else x[1], table)


def _times(b: Body, x: str, factor: float) -> str:
    """Stored integers as they are, times a number."""
    return b.op("DequantizeLinear", x, b.const(factor, np.float32))


def _are_bytes(values: Sequence[Value]) -> bool:
    return all(is_byte(v) and not v.dtype.signed for v in values)


def squared(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A squared difference in 8 bits: HTP rounds the difference to 8 bits, too, before it squares it."""
    values = (n.x(0), n.x(1), n.out)
    if not _are_bytes(values):
        return None
    out = n.out
    step = 2 * np.sqrt(_largest(out)) / 255
    difference = b.op("Sub", *(dequantized(b, name, v) for name, v in zip(x, values, strict=False)))
    whole = b.op("Round", b.op("Mul", difference, b.const(1 / step, np.float32)))
    real = b.op("Mul", b.op("Mul", whole, whole), b.const(step**2, np.float32))
    return rounded(b, real, out, scale_of(out))


def _largest(value: Value) -> float:
    """The largest real number that an 8-bit value holds."""
    return scale_of(value) * (255 + offset_of(value))
