"""How HTP goes from bytes to half precision and back, as measured on libQnnHtp."""

from __future__ import annotations

import numpy as np

from openqnn.ir import Array, DType, Value
from openqnn.ops.onnx_writer import Body
from openqnn.targets.htp.kernels.bytes.lines import BYTES, LAST
from openqnn.targets.htp.kernels.bytes.products import offset_of, scale_of, single
from openqnn.targets.htp.kernels.bytes.requantize import is_plain_byte

FAR = 2.0 * BYTES  # steps: beyond, they are cut off whatever the offset is


def widened(b: Body, x: str, data: Value, out: Value) -> str | None:
    """Bytes as half-precision numbers; None if that is not what is asked for."""
    if not is_plain_byte(data) or out.dtype is not DType.FLOAT_16:
        return None
    return b.op("Gather", b.const(halves(scale_of(data), offset_of(data))), b.cast(x, np.int32))


def rounded(b: Body, x: str, data: Value, out: Value) -> str | None:
    """Half-precision numbers as bytes: steps are in half precision, too, before they are whole."""
    if data.dtype is not DType.FLOAT_16 or not is_plain_byte(out):
        return None
    steps = b.op("Mul", b.cast(x, np.float32), b.const(np.float32(1) / single(scale_of(out))))
    steps = b.cast(b.cast(steps, np.float16), np.float32)
    near = b.op("Clip", steps, *(b.const(far, np.float32) for far in (-FAR, FAR)))
    away = b.op("Add", near, b.op("Mul", b.op("Sign", near), b.const(0.5, np.float32)))
    whole = b.op("Sub", b.cast(away, np.int32), b.const(offset_of(out), np.int32))
    return b.cast(b.op("Clip", whole, b.const(0, np.int32), b.const(LAST, np.int32)), np.uint8)


def halves(scale: float, offset: int) -> Array:
    """The number of each byte: multiples of a scale in half precision, of which halves go away from zero."""
    exact = (np.arange(BYTES) + offset) * float(np.float16(scale))
    _, exponent = np.frexp(exact)
    last = np.exp2(np.maximum(exponent, -13) - 11.0)  # what the last bit stands for
    return (np.sign(exact) * np.floor(np.abs(exact) / last + 0.5) * last).astype(np.float16)
