"""ATen ops that make tensors of numbers known beforehand, and casts and copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from openqnn.frontends.onnx.shape import expanded, filled
from openqnn.frontends.torch.promotion import number_type, to_type, typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import DType, Value

_MOST = 1 << 28  # elements of a constant that is written down


def _full(t: TorchTranslation, size: Sequence[int], number: float, dtype: DType | str | None) -> Value:
    kind = number_type(number) if dtype is None else t.type_of(dtype)
    if min(size, default=0) < 0 or prod(size) > _MOST:
        t.refuse(f"a tensor of shape {list(size)}")
    with np.errstate(all="ignore"):
        return filled(t, tuple(size), np.asarray(number).astype(kind.numpy).item(), kind)


def _filled(t: TorchTranslation, size: Sequence[int], value: Term, dtype: DType | str | None) -> Value:
    if isinstance(value, Value) and not t.is_static(value):
        return expanded(t, to_type(t, value, t.type_of(dtype or value.dtype)), tuple(size))
    return _full(t, size, t.number(value, "the value"), dtype)


@translates("full")
def full(t: TorchTranslation, size: list[int], fill_value: Term, *, dtype: DType | None = None) -> Value:
    return _filled(t, size, fill_value, dtype)


@translates("full_like")
def full_like(t: TorchTranslation, x: Value, fill_value: Term, *, dtype: DType | None = None) -> Value:
    return _filled(t, x.shape, fill_value, x.dtype if dtype is None else dtype)


@translates("new_full")
def new_full(
    t: TorchTranslation, x: Value, size: list[int], fill_value: Term, *, dtype: DType | None = None
) -> Value:
    return _filled(t, size, fill_value, x.dtype if dtype is None else dtype)


@translates("zeros", "ones", "empty", "empty_permuted")
def zeros(
    t: TorchTranslation, x: list[int], physical_layout: list[int] | None = None, *, dtype: DType | None = None
) -> Value:
    return _full(t, x, float(t.op.startswith("ones")), dtype)


@translates("zeros_like", "ones_like", "empty_like")
def zeros_like(t: TorchTranslation, x: Value, *, dtype: DType | None = None) -> Value:
    return _full(t, x.shape, float(t.op.startswith("ones")), x.dtype if dtype is None else dtype)


@translates("new_zeros", "new_ones", "new_empty")
def new_zeros(t: TorchTranslation, x: Value, size: list[int], *, dtype: DType | None = None) -> Value:
    return _full(t, size, float("ones" in t.op), x.dtype if dtype is None else dtype)


@translates("empty_strided")
def empty_strided(
    t: TorchTranslation, size: list[int], stride: list[int], *, dtype: DType | None = None
) -> Value:
    return _full(t, size, 0.0, dtype)


@translates("new_empty_strided")
def new_empty_strided(
    t: TorchTranslation, x: Value, size: list[int], stride: list[int], *, dtype: DType | None = None
) -> Value:
    return _full(t, size, 0.0, x.dtype if dtype is None else dtype)


@translates("scalar_tensor")
def scalar_tensor(t: TorchTranslation, x: Term, *, dtype: DType | None = None) -> Value:
    """Without a type it is of torch's default, float32."""
    return _full(t, (), t.number(x, "the value"), DType.FLOAT_32 if dtype is None else dtype)


def _range(t: TorchTranslation, start: float, end: float, step: float, dtype: DType | str | None) -> Value:
    if not step or (end - start) / step > _MOST:
        t.refuse(f"a range from {start} to {end} by {step}")
    whole = all(isinstance(v, int) for v in (start, end, step))
    kind = t.type_of(dtype) if dtype is not None else DType.INT_64 if whole else DType.FLOAT_32
    count = max(0, int(np.ceil((end - start) / step)))
    return t.constant((start + step * np.arange(count)).astype(kind.numpy))


@translates("arange")
def arange(t: TorchTranslation, end: Term, *, dtype: DType | None = None) -> Value:
    return _range(t, 0, t.number(end, "end"), 1, dtype)


@translates("arange.start", "arange.start_step", "range")
def arange_start(
    t: TorchTranslation, start: Term, end: Term, step: Term = 1, *, dtype: DType | None = None
) -> Value:
    first, last, by = (t.number(v, "a bound") for v in (start, end, step))
    return _range(t, first, last + (by if t.op.startswith("range") else 0), by, dtype)


@translates("linspace", "logspace")
def linspace(
    t: TorchTranslation, start: Term, end: Term, steps: int, base: float = 10.0, *, dtype: DType | None = None
) -> Value:
    if not 0 <= steps <= _MOST:
        t.refuse(f"steps={steps}")
    points = np.linspace(t.number(start, "start"), t.number(end, "end"), steps)
    points = base**points if t.op.startswith("log") else points
    return t.constant(points.astype(DType.FLOAT_32.numpy if dtype is None else t.type_of(dtype).numpy))


@translates("eye")
def eye(t: TorchTranslation, x: int, m: int | None = None, *, dtype: DType | None = None) -> Value:
    columns = x if m is None else m
    if not 0 <= x * columns <= _MOST:
        t.refuse(f"a matrix of {x} by {columns}")
    return t.constant(np.eye(x, columns).astype(t.type_of(dtype or DType.FLOAT_32).numpy))


@translates("tril_indices", "triu_indices")
def tril_indices(
    t: TorchTranslation, row: int, col: int, offset: int = 0, *, dtype: DType | None = None
) -> Value:
    if not 0 <= row * col <= _MOST:
        t.refuse(f"a matrix of {row} by {col}")
    found = (np.tril_indices if t.op.startswith("tril") else np.triu_indices)(row, offset, col)
    return t.constant(np.stack(found).astype(np.int64))


# -- casts and copies ----------------------------------------------------------------------------------------


@translates("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh", "detach_copy", "lift",
            "view_as_real_copy", "positive", "resolve_conj", "resolve_neg", "_conj", "conj_physical", "real",
            "alias_copy", "conj", "_neg_view_off", "requires_grad_")  # fmt: skip
def same(t: TorchTranslation, x: Value, requires_grad: bool = False) -> Value:
    """Complex numbers never come here, so that conjugating real ones does nothing."""
    return x


@translates(
    "to.dtype", "_to_copy", "to.dtype_layout", "to.device", "to.other", "to", "type_as", "_cast_Float"
)
def to(
    t: TorchTranslation, x: Value, other: Value | None = None, dtype: DType | None = None, **ignored: object
) -> Value:
    """The type is named, or that of another tensor."""
    wanted = other if dtype is None else dtype
    if wanted is None:
        return x
    return to_type(t, x, wanted.dtype if isinstance(wanted, Value) else t.type_of(wanted))


@translates("convert_element_type", domain="prims")
def convert_element_type(t: TorchTranslation, x: Value, dtype: DType) -> Value:
    return to_type(t, x, t.type_of(dtype))


@translates("copy")
def copy(t: TorchTranslation, x: Value, src: Value) -> Value:
    """Other numbers in the place of those of x."""
    return expanded(t, to_type(t, src, x.dtype), x.shape)


@translates("fill", "zero")
def fill(t: TorchTranslation, x: Value, value: Term = 0) -> Value:
    return expanded(t, typed(t, value, x.dtype), x.shape)


@translates("item", "_local_scalar_dense")
def item(t: TorchTranslation, x: Value) -> float:
    return t.number(t.settled(x), "the number")


@translates("sym_constrain_range", "sym_constrain_range_for_size", "_assert_async", "_assert_scalar",
            "_assert_tensor_metadata", "_functional_assert_async", "_functional_assert_scalar", "_print",
            "sym_constrain_range_for_size_2")  # fmt: skip
def nothing(t: TorchTranslation, **ignored: object) -> list[Value]:
    """What a program asserts about its inputs is not part of the graph."""
    return []
