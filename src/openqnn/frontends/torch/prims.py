"""The prims that torch's decompositions end in: most are ATen ops under another name."""

from __future__ import annotations

from openqnn.frontends.onnx.shape import expanded
from openqnn.frontends.torch import (  # the lines they repeat
    creation,
    elementwise,
    logic,
    reduce,
    shape,
    special,
)
from openqnn.frontends.torch.table import TABLE, translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import DType, Value

PRIMS = "prims"
_SAME = (
    "abs", "acos", "acosh", "add", "amax", "amin", "asin", "asinh", "atan", "atan2", "atanh", "cat", "ceil",
    "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "fill",
    "floor", "fmax", "fmin", "fmod", "ge", "gt", "hypot", "isfinite", "le", "lgamma", "log", "log10",
    "log1p", "log2", "lt", "maximum", "minimum", "mul", "ndtri", "ne", "neg", "pow", "prod", "reciprocal",
    "remainder", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt", "squeeze", "sub", "sum", "tan",
    "tanh", "trunc", "var", "where", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "clone",
    "collapse_view",
)  # fmt: skip
_OTHER_NAMES = {
    "erf_inv": "erfinv", "ndtri": "special_ndtri", "transpose": "permute", "shift_left": "bitwise_left_shift",
    "view_of": "alias", "bessel_i0": "special_i0",
}  # fmt: skip
FAMILIES_READ = (creation, elementwise, logic, reduce, shape, special)

for _name in (*_SAME, *_OTHER_NAMES):
    _found = TABLE.find(_OTHER_NAMES.get(_name, _name))
    if _found is not None:
        translates(_name, domain=PRIMS)(_found)


@translates("broadcast_in_dim", domain=PRIMS)
def broadcast_in_dim(
    t: TorchTranslation, x: Value, shape: list[int], broadcast_dimensions: list[int]
) -> Value:
    places = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        places[axis] = size
    return expanded(t, t.reshape(x, places), shape)


@translates("iota", domain=PRIMS)
def iota(
    t: TorchTranslation, length: int, *, start: int, step: int, dtype: DType, requires_grad: bool = False
) -> Value:
    return creation.arange_start(t, start, start + step * length, step, dtype=dtype)
