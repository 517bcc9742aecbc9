"""How HTP multiplies and shifts the channels of a 16-bit tensor, as measured on libQnnHtp.

Bias and zero point of the output are whole products; sums go to steps of the output by a factor of 15 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Encoding, Node
from openqnn.ops.onnx_writer import Body
from openqnn.ops.shape_rules import last_axis
from openqnn.targets.htp.kernels.bytes.products import Compute, offset_of, scale_of, single
from openqnn.targets.htp.kernels.words.curves import FACTOR, STORED, is_wide, mantissa

BYTE = 8


def _is_byte_code(code: Encoding | None) -> bool:
    return code is not None and len(code.scale) == 1 and code.bitwidth <= BYTE


def batchnorm(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """With weights of 8 bits that have one encoding."""
    if not (is_wide(n.x(0)) and is_wide(n.out)) or not _is_byte_code(n.x(1).encoding):
        return None
    if any(name and name not in b.constants for name in x[1:]):
        return None
    unit = float(single(scale_of(n.x(0)))) * float(single(scale_of(n.x(1))))
    step = float(single(scale_of(n.out)))
    by, exponent = mantissa(unit / step)
    shape = [-1 if axis == last_axis(n) else 1 for axis in range(n.x(0).rank)]
    weights = (b.constants[x[1]].astype(np.float64) + offset_of(n.x(1))).reshape(shape)
    more = np.rint(-offset_of(n.out) * step / unit) + offset_of(n.x(0)) * weights
    if len(x) > 2 and x[2]:
        bias = n.x(2).encoding
        assert bias is not None
        more = more + np.rint(bias.dequantize(b.constants[x[2]]).astype(np.float64) / unit).reshape(shape)
    total = b.op("Add", b.op("Mul", b.cast(x[0], np.float64), b.const(weights)), b.const(more))
    moved = b.op("Mul", total, b.const(np.ldexp(float(by), exponent - FACTOR)))
    whole = b.op("Floor", b.op("Add", moved, b.const(0.5)))
    return b.cast(b.op("Clip", whole, b.const(0.0), b.const(STORED - 1.0)), n.out.dtype.numpy)
