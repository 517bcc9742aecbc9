"""Short names for the QNN ops that translators put together when QNN has no op of its own.

Plain numbers are constants of the type of the other operand.
"""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.frontends.onnx.translation import Translation
from openqnn.ir import DType, Value


def _binary(t: Translation, op: str, a: Value | float, b: Value | float) -> Value:
    if not isinstance(a, Value):
        a = t.scalar(a, like=b)  # pyright: ignore[reportArgumentType]
    if not isinstance(b, Value):
        b = t.scalar(b, like=a)
    return t(op, a, b)


def add(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseAdd", a, b)


def sub(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseSubtract", a, b)


def mul(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseMultiply", a, b)


def div(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseDivide", a, b)


def maximum(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseMaximum", a, b)


def minimum(t: Translation, a: Value | float, b: Value | float) -> Value:
    return _binary(t, "ElementWiseMinimum", a, b)


def power(t: Translation, x: Value, exponent: float) -> Value:
    """A power by a known number; the common ones without Power, which is slow everywhere."""
    if exponent == 1:
        return x
    if exponent == 2:
        return mul(t, x, x)
    if exponent == 3:
        return mul(t, mul(t, x, x), x)
    if exponent == 0.5:
        return t("ElementWiseSquareRoot", x)
    if exponent == -0.5:
        return t("ElementWiseRsqrt", x)
    if exponent == -1:
        return div(t, 1.0, x)
    return _binary(t, "ElementWisePower", x, exponent)


def reduce(t: Translation, op: str, x: Value, axes: Sequence[int], keep: bool = True) -> Value:
    """A reduction; over no axes at all it is the data itself."""
    if not axes:
        return x
    y = t(op, x, axes=list(axes), keep_dims=keep)
    # QNN has no rank 0: it gives [1] where ONNX has a scalar.
    return t.reshape(y, ()) if not keep and len(axes) == x.rank else y


def cut(t: Translation, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """x[start:stop:step] along one axis, 0 <= start <= stop <= size."""
    if x.data is not None:
        index = (slice(None),) * axis + (slice(start, stop, step),)
        return t.constant(x.data[index], x.name)
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    rows = [[start, stop, step] if i == axis else [0, d, 1] for i, d in enumerate(x.shape)]
    return t("StridedSlice", x, ranges=rows)


def concat(t: Translation, parts: Sequence[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else t("Concat", *parts, axis=axis)


def as_float(t: Translation, x: Value) -> Value:
    """Integers as float32; floats stay as they are."""
    return x if x.dtype in (DType.FLOAT_16, DType.FLOAT_32) else t.cast(x, DType.FLOAT_32)


def used(t: Translation, index: int) -> bool:
    """Whether the source node's output `index` has a name, so that somebody may read it."""
    return len(t.node.output) > index and bool(t.node.output[index])
