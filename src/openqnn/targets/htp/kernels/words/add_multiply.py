"""How HTP adds, subtracts and multiplies two 16-bit tensors, as measured on libQnnHtp.

In integers these are its very results, for all numbers and encodings tried. Here they are computed in
float32, which rounds one in some thousands the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from openqnn.ir import Node, Value
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, centred, offset_of, rounded, scale_of, single
from openqnn.targets.htp.kernels.words.curves import FACTOR, STORED, is_wide

PRODUCT = 34  # bits behind the point of the factor that takes products to steps of the output
GUARD = 3  # bits that are left behind the point before the output's zero point and a half are added
FINEST = 16  # bits behind the point of the factors of a sum, at most
TIES = 6  # where sums have so few bits behind the point, many are half way between two steps


def total(n: Node, b: Body, x: Sequence[str], sign: int) -> str | None:
    """Both operands have factors of the same shift, the larger one in 15 bits; halves are rounded up."""
    values = (n.x(0), n.x(1), n.out)
    if not all(is_wide(v) for v in values):
        return None
    *scales, step = (single(scale_of(v)) for v in values)
    ratios = [float(scale / step) for scale in scales]
    bits = min(FINEST, FACTOR - int(np.frexp(max(ratios))[1]))
    factors = [int(np.rint(np.ldexp(r, bits))) for r in ratios]
    one, other = (
        centred(b, name, v, float(np.ldexp(f, -bits))) for name, v, f in zip(x, values, factors, strict=False)
    )
    found = b.op("Add" if sign > 0 else "Sub", one, other)
    least = gcd(*factors) / 2.0**bits  # all sums are multiples of that
    if np.ldexp(least, TIES) >= 1 and least < 1:
        found = b.op("Add", found, b.const(least / 2, np.float32))  # or ties would be rounded to even numbers
    return rounded(b, found, n.out)


def multiply(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Products of stored integers less their zero points, times a factor of 34 bits, halves rounded up.

    HTP takes twice the middle of all products off them, so that 32 signed bits hold them. What that is in
    steps is rounded to eighths when it is put on again, so all results are off by what is lost there. Data
    before their own sigmoid are off by half an eighth more.
    """
    values = (n.x(0), n.x(1), n.out)
    if not all(is_wide(v) for v in values):
        return None
    first, second = (single(_scale(b, name, v)) for name, v in zip(x, values, strict=False))
    step = single(scale_of(n.out))
    factor = float(np.rint(np.ldexp(float(first * second / step), PRODUCT))) / (1 << PRODUCT)
    twice = (STORED - 1 + 2 * offset_of(n.x(0))) * (STORED - 1 + 2 * offset_of(n.x(1))) // 2
    lost = np.floor(np.ldexp(factor * twice, GUARD) + 0.5) / (1 << GUARD) - factor * twice
    if second == 1 / STORED and b.sigmoids.get(x[1]) == x[0]:
        lost += 1 / (2 << GUARD)
    found = b.op("Mul", centred(b, x[0], n.x(0), factor), centred(b, x[1], n.x(1)))
    return rounded(b, b.op("Add", found, b.const(lost, np.float32)) if lost else found, n.out)


def _scale(b: Body, name: str, value: Value) -> float:
    """HTP computes sigmoids in fractions of 16 bits, and takes an encoding next to that for it."""
    scale = scale_of(value)
    return 1 / STORED if name in b.sigmoids and abs(scale * STORED - 1) < 2 / STORED else scale
