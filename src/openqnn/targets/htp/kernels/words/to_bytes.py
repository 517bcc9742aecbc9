"""How HTP takes a 16-bit tensor to 8 bits, as measured on libQnnHtp.

With all 65536 stored integers and all encodings tried these are its very results, which are up to three steps
of the input above those of rounding: next to a half, many are another integer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, DType, Node
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.products import offset_of, scale_of, single
from openqnn.targets.htp.kernels.words.curves import FACTOR, HALF, ONE, STORED, is_wide, nearest

BITS = 14  # of a factor between two encodings
MOST = 22  # bits behind the point of a factor, at most
LEAST = 18  # where it has fewer, this is not how HTP does it
LAST = 255


def narrowed(n: Node, b: Body, x: Sequence[str]) -> str | None:
    """Stored integers of 8 bits, by a table; None if that is not what is asked for, or has another rule."""
    data, out = n.x(0), n.out
    if not is_wide(data) or out.dtype is not DType.UFIXED_8:
        return None
    if any(v.encoding is None or len(v.encoding.scale) > 1 for v in (data, out)):
        return None
    found = table(float(single(scale_of(data)) / single(scale_of(out))), offset_of(data), offset_of(out))
    return None if found is None else b.op("Gather", b.const(found), b.cast(x[0], np.int32))


def table(ratio: float, zero: int, out: int) -> Array | None:
    """Results by stored integer, for the offsets of the input and of the output."""
    exponent = int(np.frexp(ratio)[1])
    shift, stored = BITS - exponent, np.arange(STORED, dtype=np.int64)
    if int(np.rint(np.ldexp(ratio, shift + 1))) == HALF and shift < MOST:
        # A power of two, or just above: integers lose their last bit, and are shifted.
        by, steps, lost = HALF, stored >> 1, -zero >> 1
        bits = -exponent
    else:
        bits = min(MOST, shift) - FACTOR
        by = int(np.rint(np.ldexp(ratio, bits + FACTOR)))
        steps, lost = nearest((stored + 1) * by, FACTOR), (1 - zero) * by + HALF >> FACTOR
    if bits + FACTOR < LEAST:
        return None
    # What is added has 16 bits, and is next to integers that are half of them below zero.
    more = min((-out << bits) + by - lost, ONE - 1) - by
    return np.clip(nearest(steps + more, bits), 0, LAST).astype(np.uint8)
