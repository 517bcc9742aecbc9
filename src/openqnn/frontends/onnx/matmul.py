"""Matrix products: MatMul, Gemm, their integer forms and Einsum."""

from __future__ import annotations

import numpy as np

from openqnn.frontends.onnx.quant import dequantized, quantized
from openqnn.frontends.onnx.table import MICROSOFT, translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value


@translates("MatMul")
def matmul(t: Translation, a: Value, b: Value) -> Value:
    """QNN multiplies matrices only: a vector is a row on the left and a column on the right."""
    if not a.rank or not b.rank:
        t.refuse("a single number cannot be multiplied as a matrix")
    left = t.reshape(a, (1, *a.shape)) if a.rank == 1 else a
    right = t.reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    y = t.matmul(left, right)
    shape = list(y.shape)
    if b.rank == 1:
        del shape[-1]
    if a.rank == 1:
        del shape[len(shape) - (2 if b.rank > 1 else 1)]
    return t.reshape(y, shape)


@translates("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    t: Translation, a: Value, b: Value, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
    transBatchA: int = 0, transBatchB: int = 0,
) -> Value:  # fmt: skip
    if transBatchA or transBatchB or min(a.rank, b.rank) < 2:
        t.refuse("transBatchA, transBatchB and vectors have no QNN equivalent")
    y = t.matmul(a, b, turn_a=bool(transA), turn_b=bool(transB))
    return y if alpha == 1 else t.mul(y, alpha)


# -- Gemm ----------------------------------------------------------------------------------------------------


@translates("Gemm")
def gemm(
    t: Translation, a: Value, b: Value, c: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    """A known weight makes it a FullyConnected, whose weight is [out, in]; alpha goes into the weight."""
    if a.rank != 2 or b.rank != 2:
        t.refuse(f"Gemm multiplies matrices, not {list(a.shape)} and {list(b.shape)}")
    if b.data is None or not a.dtype.is_float:
        y = t.matmul(a, b, turn_a=bool(transA), turn_b=bool(transB))
        y = y if alpha == 1 else t.mul(y, alpha)
        return _plus(t, y, c, beta)
    weight = t.transpose(b, (0, 1) if transB else (1, 0))
    if alpha != 1:
        weight = _times(t, weight, alpha)
    rows = t.transpose(a, (1, 0)) if transA else a
    bias = _bias(t, c, beta, weight.shape[0])
    y = t.fully_connected(rows, weight, bias)
    return y if bias is not None else _plus(t, y, c, beta)


def _times(t: Translation, v: Value, factor: float) -> Value:
    assert v.data is not None
    return t.constant((v.data * np.asarray(factor, v.data.dtype)).astype(v.data.dtype), v.name)


def _bias(t: Translation, c: Value | None, beta: float, units: int) -> Value | None:
    """C as one number per output, when it is one."""
    if c is None or c.data is None or beta == 0 or (c.rank == 2 and c.shape[0] != 1):
        return None
    if c.rank > 2 or c.size not in (1, units):
        return None
    scaled = c if beta == 1 else _times(t, c, beta)
    assert scaled.data is not None
    return t.constant(np.broadcast_to(scaled.data.reshape(-1), (units,)), c.name)


def _plus(t: Translation, y: Value, c: Value | None, beta: float) -> Value:
    if c is None or beta == 0:
        return y
    return t.add(y, c if beta == 1 else t.mul(c, beta))


# -- integers ------------------------------------------------------------------------------------------------


def whole(t: Translation, x: Value, zero: Value | None) -> Value:
    """Integers less their zero point, in float32, which holds sums of 8 bit products exactly up to 2^24."""
    real = t.cast(x, DType.FLOAT_32)
    return real if zero is None else t.sub(real, t.cast(zero, DType.FLOAT_32))


def whole_number(t: Translation, x: Value) -> Value:
    return t.cast(t.round(x), DType.INT_32)


@translates("MatMulInteger")
def matmul_integer(
    t: Translation, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None
) -> Value:
    """The zero point of A is per row, that of B per column."""
    if a_zero is not None and a_zero.rank == 1 and a_zero.size > 1:
        a_zero = t.reshape(a_zero, (a_zero.size, 1))
    return whole_number(t, matmul(t, whole(t, a, a_zero), whole(t, b, b_zero)))


@translates("QLinearMatMul")
def qlinear_matmul(
    t: Translation, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
    y_scale: Value, y_zero: Value,
) -> Value:  # fmt: skip
    left = dequantized(t, a, a_scale, a_zero, axis=a.rank - 2)
    right = dequantized(t, b, b_scale, b_zero, axis=b.rank - 1)
    product = matmul(t, left, right)
    return quantized(t, product, y_scale, y_zero, y_zero.dtype, axis=product.rank - 2)
