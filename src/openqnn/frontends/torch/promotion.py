"""Type promotion as torch does it: tensors count more than single numbers, floats more than integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.frontends.translation import narrow_type
from openqnn.ir import DType, Value

_BOOL, _INT, _FLOAT = range(3)
_DEFAULT = {_BOOL: DType.BOOL_8, _INT: DType.INT_32, _FLOAT: DType.FLOAT_32}


def _category(dtype: DType) -> int:
    return _FLOAT if dtype.is_float else _BOOL if dtype is DType.BOOL_8 else _INT


def number_type(number: float) -> DType:
    kind = _BOOL if isinstance(number, bool) else _INT if isinstance(number, int) else _FLOAT
    return _DEFAULT[kind]


def promoted_type(a: DType, b: DType) -> DType:
    """The type that holds both: torch's table for two tensors."""
    a, b = narrow_type(a), narrow_type(b)
    if a is b:
        return a
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    if _category(a) == _FLOAT or a.signed == b.signed:
        return a if a.bits > b.bits else b
    unsigned, signed = (a, b) if b.signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return {8: DType.INT_16, 16: DType.INT_32}.get(unsigned.bits, DType.INT_32)


def result_type(*terms: Term) -> DType:
    """The type of arithmetic between those: tensors with axes first, then those of rank 0, then numbers."""
    tensors = [v for v in terms if isinstance(v, Value)]
    groups: list[list[DType]] = [
        [v.dtype for v in tensors if v.rank],
        [v.dtype for v in tensors if not v.rank],
        [number_type(v) for v in terms if not isinstance(v, Value)],
    ]
    found: DType | None = None
    for group in groups:
        if not group:
            continue
        own = reduce(promoted_type, group)
        if found is None or _category(own) > _category(found):
            found = own
    assert found is not None, "arithmetic between nothing"
    return narrow_type(found)


def typed(t: TorchTranslation, term: Term, dtype: DType) -> Value:
    """A term as a tensor of a type."""
    if isinstance(term, Value):
        return to_type(t, term, dtype)
    return t.constant(_saturated(term, dtype))


def _saturated(number: float, dtype: DType):
    import numpy as np

    with np.errstate(all="ignore"):
        return np.asarray(number).astype(narrow_type(dtype).numpy)


def to_type(t: TorchTranslation, x: Value, dtype: DType) -> Value:
    """A cast as torch does it: to bool means whether it differs from zero."""
    dtype = narrow_type(dtype)
    if x.dtype is dtype:
        return x
    if dtype is DType.BOOL_8 and x.data is None:
        return t.not_equal(x, 0)
    if x.dtype is DType.BOOL_8 or x.data is not None or not x.dtype.is_float or dtype.is_float:
        return t.cast(x, dtype)
    if dtype.bits < 32:  # integers wrap around: first to what holds them
        return t.cast(t.cast(x, DType.INT_32), dtype)
    return t.cast(x, dtype)


def together(t: TorchTranslation, terms: Sequence[Term], at_least: DType | None = None) -> list[Value]:
    """Terms as tensors of their common type; `at_least` float32 makes integers floats."""
    dtype = result_type(*terms)
    if at_least is not None and _category(at_least) > _category(dtype):
        dtype = at_least
    return [typed(t, term, dtype) for term in terms]


def real(t: TorchTranslation, x: Term) -> Value:
    """A term in floating point: integers become float32."""
    if isinstance(x, Value) and x.dtype.is_float and narrow_type(x.dtype) is x.dtype:
        return x
    dtype = x.dtype if isinstance(x, Value) else number_type(x)
    return typed(t, x, narrow_type(dtype) if dtype.is_float else DType.FLOAT_32)
