"""How HTP adds up 16-bit numbers, as measured on libQnnHtp: their sum times a factor of 15 bits.

A mean over all of an image is a pool, which rounds; all else is cut, and one more than it was. That is so
with factors below a half. Others may be off by one, as may sums of hundreds of numbers once in a while.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import Compute, offset_of, scale_of, single
from openqnn.targets.htp.kernels.words.curves import FACTOR, STORED, is_wide, mantissa
from openqnn.targets.htp.kernels.words.trigonometry import LESS

IMAGE = (1, 2)  # height and width, of four axes


def mean(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """In the order of axes that HTP has."""
    if not by_place(n):
        return None
    ratio = _ratio(n) / (n.x(0).size // n.out.size)
    return _steps(n, b, x, ratio, 0.5) if _is_pool(n) else _steps(n, b, x, ratio * (1 - LESS), 1.0)


def total(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    if not is_wide(n.x(0)) or not is_wide(n.out):
        return None
    return _steps(n, b, x, _ratio(n) * (1 - LESS), 1.0)


def by_place(n: Node) -> bool:
    """Whether it matters which axes they are."""
    return is_wide(n.x(0)) and is_wide(n.out)


def _is_pool(n: Node) -> bool:
    """Whether all of an image goes into one number, as HTP has four axes: those of one row or column, too."""
    shape = n.x(0).shape
    lead = 4 - len(shape)
    gone = {axis % len(shape) + lead for axis in n.ints("axes")}
    sizes = {axis + lead: size for axis, size in enumerate(shape)}
    others = {axis for axis in gone if axis not in IMAGE and sizes[axis] > 1}
    return not others and all(axis in gone or sizes.get(axis, 1) == 1 for axis in IMAGE)


def _ratio(n: Node) -> float:
    return float(single(scale_of(n.x(0)))) / float(single(scale_of(n.out)))


def _steps(n: Node, b: Body, x: Sequence[str], ratio: float, more: float) -> str:
    """The sum over the node's axes times a ratio, and `more`, cut to steps of the output."""
    by, exponent = mantissa(ratio)
    factor = np.ldexp(float(by), exponent - FACTOR)
    found = b.op("ReduceSum", b.cast(x[0], np.float64), b.ints(*n.ints("axes")))
    zeros = n.x(0).size // n.out.size * offset_of(n.x(0)) * factor
    moved = b.op("Add", b.op("Mul", found, b.const(factor)), b.const(zeros + more - offset_of(n.out)))
    stored = b.op("Clip", b.op("Floor", moved), b.const(0.0), b.const(STORED - 1.0))
    return b.reshape(b.cast(stored, n.out.dtype.numpy), n.out.shape)
