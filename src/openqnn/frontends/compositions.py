"""What translators put together when QNN has no op of its own, beyond the words of the vocabulary."""

from __future__ import annotations

from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value


def power(t: Translation, x: Value, exponent: float) -> Value:
    """A power by a known number; the common ones without Power, which is slow everywhere."""
    if exponent == 1:
        return x
    if exponent == 2:
        return t.square(x)
    if exponent == 3:
        return t.mul(t.square(x), x)
    if exponent == 0.5:
        return t.sqrt(x)
    if exponent == -0.5:
        return t.rsqrt(x)
    if exponent == -1:
        return t.div(1.0, x)
    return t.pow(x, exponent)


def cut(t: Translation, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """x[start:stop:step] along one axis, 0 <= start <= stop <= size."""
    if x.data is not None:
        index = (slice(None),) * axis + (slice(start, stop, step),)
        return t.constant(x.data[index], x.name)
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    return t.part(x, axis, start, stop, step)


def as_float(t: Translation, x: Value) -> Value:
    """Integers as float32; floats stay as they are."""
    return x if x.dtype in (DType.FLOAT_16, DType.FLOAT_32) else t.cast(x, DType.FLOAT_32)
