"""Between real numbers and stored integers. Values of the graph are real, with an encoding."""

from __future__ import annotations

from openqnn.frontends.tflite.encodings import STORED, given_of, is_quantized
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Encoding, Value


@translates("QUANTIZE")
def quantize(t: Translation, x: Value) -> Value:
    """Nothing in real numbers, unless they already have another encoding: then both stay."""
    result = t.result()
    said = given_of(result)
    if said is None or result.type not in STORED:
        t.refuse(f"it gives {result.type.lower()} without scale and zero point, or of a width that QNN lacks")
    have, said = t.graph.given.get(x.name), said.unsigned()
    if have is None or have.encoding == said.encoding:
        return x
    dtype = DType.UFIXED_8 if said.bitwidth == 8 else DType.UFIXED_16
    return t.dequantize(t.quantize(x, dtype, said.encoding), DType.FLOAT_32)


@translates("DEQUANTIZE")
def dequantize(t: Translation, x: Value) -> Value:
    """Numbers of half precision become single, constants at once."""
    if not x.dtype.is_float:
        t.refuse("it reads integers without scale and zero point")
    if x.dtype is not DType.FLOAT_32:
        return t.cast(x, DType.FLOAT_32)
    return x


@translates("DENSIFY")
def densify(t: Translation, x: Value) -> Value:
    """Sparse constants are dense once they are read."""
    return x


@translates("FAKE_QUANT")
def fake_quant(
    t: Translation, x: Value, *, min: float = 0.0, max: float = 0.0, num_bits: int = 8,
    narrow_range: bool = False,
) -> Value:  # fmt: skip
    """Rounds to the steps of a range, which is moved a little so that zero is one of them."""
    if num_bits not in (8, 16) or not min < max:
        t.refuse(f"a range from {min} to {max} in {num_bits} bits has no QNN equivalent")
    encoding = nudged(min, max, num_bits, narrow_range)
    dtype = DType.UFIXED_8 if num_bits == 8 else DType.UFIXED_16
    return t.dequantize(t.quantize(x, dtype, encoding), DType.FLOAT_32)


def nudged(low: float, high: float, bits: int, narrow: bool) -> Encoding:
    """TensorFlow's rule: the zero point is rounded, the step is kept."""
    first, last = int(narrow), (1 << bits) - 1
    scale = (high - low) / (last - first)
    zero = round(min(max(first - low / scale, first), last))
    return Encoding.per_tensor(scale, -zero, bits)


def is_stored(t: Translation, index: int) -> bool:
    return is_quantized(t.source(index))
