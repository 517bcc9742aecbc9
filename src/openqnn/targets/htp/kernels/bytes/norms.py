"""How HTP normalises 8-bit data, by mean and deviation or by the sum of powers, as measured on libQnnHtp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import (
    Compute,
    centred,
    dequantized,
    is_byte,
    offset_of,
    rounded,
    scale_of,
)

MEAN = 64.0  # a mean is cut down to such parts of a step
SLOPE = 8  # bits of the exponent of two that a step is in Softmax
FEW = 16  # numbers at most that Softmax has all bits for
ABOVE = 0.04  # of a step that is added before RmsNorm cuts to whole ones
LACKING = 0.5 - ABOVE  # steps that its results lack on average, for beta to make good
FACTOR = 65536.0  # and the factor of what is left, by the step of gamma, to such parts of the output's


def layer_norm(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """LayerNorm: the scaled data and beta are both rounded to steps of the output, and then added."""
    data, over = n.x(0), n.ints("axes")
    in_order = list(over) == sorted(over)
    if not in_order or not is_byte(data) or not is_byte(n.out) or not _is_known(n, b, x):
        return None
    shape = [d if i in over else 1 for i, d in enumerate(data.shape)]  # of gamma: axes may have been moved
    count, axes = float(np.prod(shape)), b.ints(*over)
    stored = centred(b, x[0], data)
    total = b.op("ReduceSum", stored, axes)
    mean = b.op("Floor", b.op("Div", b.op("Mul", total, _real(b, MEAN)), _real(b, count)))
    left = b.op("Sub", stored, b.op("Mul", mean, _real(b, 1 / MEAN)))
    spread = b.op("ReduceMean", b.op("Mul", left, left), axes)
    least = n.float("epsilon") / scale_of(data) ** 2
    deviation = b.op("Sqrt", b.op("Add", spread, _real(b, least)))
    gamma = (b.constants[x[1]].astype(np.float64) + offset_of(n.x(1))).reshape(shape)
    unit = FACTOR * scale_of(n.x(1)) / scale_of(n.out)
    factor = b.op("Floor", b.op("Div", _real(b, unit), deviation))
    scaled = b.op("Mul", b.op("Mul", left, _real(b, gamma / FACTOR)), factor)
    whole = b.op("Floor", b.op("Add", scaled, _real(b, 0.5)))
    return rounded(
        b, b.op("Add", whole, _real(b, np.rint(_steps(n, b, x, 2)).reshape(shape))) if x[2] else whole, n.out
    )


def rms_norm(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Data by their root mean square and beta are added, and what is beyond a whole step is cut off."""
    data, over = n.x(0), n.ints("axes")
    in_order = list(over) == sorted(over)
    if not in_order or not is_byte(data) or not is_byte(n.out) or not _is_known(n, b, x):
        return None
    shape = [d if i in over else 1 for i, d in enumerate(data.shape)]
    stored = centred(b, x[0], data)
    power = b.op("ReduceMean", b.op("Mul", stored, stored), b.ints(*over))
    root = b.op("Sqrt", b.op("Add", power, _real(b, n.float("epsilon") / scale_of(data) ** 2)))
    scaled = b.op("Mul", b.op("Div", stored, root), _real(b, _steps(n, b, x, 1).reshape(shape)))
    added = ABOVE + (_steps(n, b, x, 2).reshape(shape) if x[2] else 0.0)
    return rounded(b, b.op("Floor", b.op("Add", scaled, _real(b, added))), n.out)


def l2_norm(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """What is beyond a whole step is cut off, towards zero."""
    if not is_byte(n.x(0)) or not is_byte(n.out):
        return None
    real = b.op("Div", compute([dequantized(b, x[0], n.x(0))]), _real(b, scale_of(n.out)))
    return rounded(b, b.op("Mul", b.op("Sign", real), b.op("Floor", b.op("Abs", real))), n.out)


def _is_known(n: Node, b: Body, x: Sequence[str]) -> bool:
    """Whether gamma is a constant of 8 bits with one scale, and beta, if there is any, one as well."""
    if x[1] not in b.constants or not is_byte(n.x(1)) or (x[2] and x[2] not in b.constants):
        return False
    return all(e is not None and len(e.scale) == 1 for e in (n.x(i).encoding for i in (1, 2) if x[i]))


def _steps(n: Node, b: Body, x: Sequence[str], index: int) -> Array:
    """A constant in steps of the output."""
    real = (b.constants[x[index]].astype(np.float64) + offset_of(n.x(index))) * scale_of(n.x(index))
    return real / scale_of(n.out)


def _real(b: Body, value: Array | float) -> str:
    return b.const(value, np.float32)


def softmax(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Powers of two by a slope of few bits, cut down: data count for up to a 128th less."""
    data, beta = n.x(0), n.float("beta")
    if not is_byte(data) or not is_byte(n.out) or beta <= 0 or data.shape[n.int("axis")] <= FEW:
        return None
    mantissa, exponent = np.frexp(scale_of(data) * beta * np.log2(np.e))
    slope = np.ldexp(np.floor(np.ldexp(mantissa, SLOPE)), exponent - SLOPE)
    found = compute([centred(b, x[0], data, float(slope / (beta * np.log2(np.e))))])
    return rounded(b, found, n.out, scale_of(n.out))
