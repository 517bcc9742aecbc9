"""Matrix products of ATen."""

from __future__ import annotations

from functools import reduce
from math import prod

from openqnn.frontends.onnx import einsum as onnx_einsum
from openqnn.frontends.onnx import matmul as onnx
from openqnn.frontends.torch.elementwise import add, mul
from openqnn.frontends.torch.promotion import together
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value


def product(t: TorchTranslation, a: Value, b: Value) -> Value:
    """QNN multiplies floats: small integers are exact in them, larger ones are refused."""
    a, b = together(t, (a, b))
    if a.dtype.is_float:
        return onnx.matmul(t, a, b)
    if a.dtype.bits > 16:
        t.refuse(f"a product of matrices of {a.dtype.label}", hint="compute it in floating point")
    return t.cast(onnx.matmul(t, t.cast(a, DType.FLOAT_32), t.cast(b, DType.FLOAT_32)), a.dtype)


@translates("matmul", "mm", "bmm", "mv", "dot", "vdot", "linalg_matmul")
def matmul(t: TorchTranslation, x: Value, other: Value) -> Value:
    return product(t, x, other)


@translates("linear")
def linear(t: TorchTranslation, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """A known weight makes it a FullyConnected on rows; the axes in front of them are put back."""
    if weight.rank == 1:
        y = product(t, x, weight)
        return y if bias is None else t.add(y, bias)
    if x.rank < 1 or weight.rank != 2 or x.shape[-1] != weight.shape[1]:
        t.refuse(f"weights {list(weight.shape)} do not fit {list(x.shape)}")
    rows = t.reshape(x, (prod(x.shape[:-1]), x.shape[-1])) if x.rank != 2 else x
    y = onnx.gemm(t, rows, weight, bias, transB=1)
    return t.reshape(y, (*x.shape[:-1], weight.shape[0]))


def _sum(t: TorchTranslation, x: Value, y: Value, beta: Term, alpha: Term) -> Value:
    y = y if alpha == 1 else mul(t, y, alpha)
    return y if not isinstance(beta, Value) and beta == 0 else add(t, y, x, alpha=beta)


@translates("addmm", "_addmm_activation")
def addmm(
    t: TorchTranslation, x: Value, mat1: Value, mat2: Value, *, beta: Term = 1, alpha: Term = 1,
    use_gelu: bool = False,
) -> Value:  # fmt: skip
    known = all(not isinstance(v, Value) for v in (alpha, beta)) and mat1.dtype.is_float and x.rank <= 2
    if known and x.data is not None and mat2.data is not None:
        y = onnx.gemm(t, mat1, mat2, x, alpha=float(alpha), beta=float(beta))  # type: ignore[arg-type]
    else:
        y = _sum(t, x, product(t, mat1, mat2), beta, alpha)
    return y if not t.op.startswith("_") else t.gelu(y) if use_gelu else t.relu(y)


@translates("addmv")
def addmv(t: TorchTranslation, x: Value, mat: Value, vec: Value, *, beta: Term = 1, alpha: Term = 1) -> Value:
    return _sum(t, x, product(t, mat, vec), beta, alpha)


@translates("addr")
def addr(
    t: TorchTranslation, x: Value, vec1: Value, vec2: Value, *, beta: Term = 1, alpha: Term = 1
) -> Value:
    return _sum(t, x, outer(t, vec1, vec2), beta, alpha)


@translates("baddbmm")
def baddbmm(
    t: TorchTranslation, x: Value, batch1: Value, batch2: Value, *, beta: Term = 1, alpha: Term = 1
) -> Value:
    return _sum(t, x, product(t, batch1, batch2), beta, alpha)


@translates("addbmm")
def addbmm(
    t: TorchTranslation, x: Value, batch1: Value, batch2: Value, *, beta: Term = 1, alpha: Term = 1
) -> Value:
    return _sum(t, x, t.reduce_sum(product(t, batch1, batch2), (0,), keep_dims=False), beta, alpha)


@translates("outer", "ger")
def outer(t: TorchTranslation, x: Value, vec2: Value) -> Value:
    return mul(t, t.reshape(x, (x.size, 1)), t.reshape(vec2, (1, vec2.size)))


@translates("inner")
def inner(t: TorchTranslation, x: Value, other: Value) -> Value:
    if not x.rank or not other.rank:
        return mul(t, x, other)
    rows = [t.reshape(v, (prod(v.shape[:-1]), v.shape[-1])) for v in (x, other)]
    y = product(t, rows[0], t.transpose(rows[1], (1, 0)))
    return t.reshape(y, (*x.shape[:-1], *other.shape[:-1]))


@translates("einsum")
def einsum(
    t: TorchTranslation, equation: str, tensors: list[Value], *, path: list[int] | None = None
) -> Value:
    if any(not v.dtype.is_float for v in tensors):
        t.refuse("einsum of integers", hint="compute it in floating point")
    return onnx_einsum.einsum(t, *tensors, equation=equation)


@translates("linalg_multi_dot", "chain_matmul")
def multi_dot(t: TorchTranslation, tensors: list[Value]) -> Value:
    return reduce(lambda a, b: product(t, a, b), tensors)


@translates("bilinear")
def bilinear(t: TorchTranslation, x: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """For every output k the sum of x_i w_kij y_j."""
    rows = [t.reshape(v, (prod(v.shape[:-1]), v.shape[-1])) for v in (x, input2)]
    y = onnx_einsum.einsum(t, rows[0], weight, rows[1], equation="bi,kij,bj->bk")
    y = t.reshape(y, (*x.shape[:-1], weight.shape[0]))
    return y if bias is None else t.add(y, bias)
