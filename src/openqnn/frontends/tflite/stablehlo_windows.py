"""StableHLO operators that put numbers together: products, convolutions, reductions, windows, sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from openqnn.frontends.tflite.shape import sliced, spread
from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Value

_ADD, _MUL, _MAX, _MIN, _ALL, _ANY = "add", "mul", "max", "min", "all", "any"
_KINDS: Final = {  # what a body of one operator does
    "ADD": _ADD, "MUL": _MUL, "MAXIMUM": _MAX, "MINIMUM": _MIN, "LOGICAL_AND": _ALL, "LOGICAL_OR": _ANY,
    "STABLEHLO_ADD": _ADD, "STABLEHLO_MULTIPLY": _MUL, "STABLEHLO_MAXIMUM": _MAX,
    "STABLEHLO_MINIMUM": _MIN, "STABLEHLO_AND": _ALL, "STABLEHLO_OR": _ANY,
}  # fmt: skip
_WINDOW_KINDS: Final = ("", _ADD, _MUL, _MIN, _MAX, _ALL, _ANY)  # TFLite's ReduceWindowFunction


@translates("STABLEHLO_DOT_GENERAL")
def dot_general(
    t: Translation, a: Value, b: Value, *, lhs_batching_dimensions: Sequence[int] = (),
    rhs_batching_dimensions: Sequence[int] = (), lhs_contracting_dimensions: Sequence[int] = (),
    rhs_contracting_dimensions: Sequence[int] = (),
) -> Value:  # fmt: skip
    """A product of matrices: batches first, then what is left of each, in order."""
    left = list(lhs_batching_dimensions), list(lhs_contracting_dimensions)
    right = list(rhs_batching_dimensions), list(rhs_contracting_dimensions)
    free_a, free_b = (
        [i for i in range(v.rank) if i not in (*m[0], *m[1])] for v, m in ((a, left), (b, right))
    )
    batch = [a.shape[i] for i in left[0]]
    rows, columns = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    inner = [a.shape[i] for i in left[1]]
    if batch != [b.shape[i] for i in right[0]] or inner != [b.shape[i] for i in right[1]]:
        t.refuse(f"axes {left} of {list(a.shape)} do not fit axes {right} of {list(b.shape)}")
    first = t.reshape(t.transpose(a, [*left[0], *free_a, *left[1]]), (*batch, prod(rows), prod(inner)))
    second = t.reshape(t.transpose(b, [*right[0], *right[1], *free_b]), (*batch, prod(inner), prod(columns)))
    return t.reshape(t.matmul(first, second), (*batch, *rows, *columns))


@translates("STABLEHLO_CONVOLUTION")
def convolution(
    t: Translation, x: Value, w: Value, *, window_strides: Sequence[int] = (), padding: Sequence[int] = (),
    lhs_dilation: Sequence[int] = (), rhs_dilation: Sequence[int] = (), window_reversal: Sequence[bool] = (),
    input_batch_dimension: int = 0, input_feature_dimension: int = 0,
    input_spatial_dimensions: Sequence[int] = (), kernel_input_feature_dimension: int = 0,
    kernel_output_feature_dimension: int = 0, kernel_spatial_dimensions: Sequence[int] = (),
    output_batch_dimension: int = 0, output_feature_dimension: int = 0,
    output_spatial_dimensions: Sequence[int] = (), feature_group_count: int = 1, batch_group_count: int = 1,
) -> Value:  # fmt: skip
    """Axes in any order are turned to QNN's; a step of the data is zeros between its elements."""
    axes = len(input_spatial_dimensions)
    ones = [1] * axes
    strides, steps = list(window_strides) or ones, list(rhs_dilation) or ones
    if batch_group_count != 1 or any(window_reversal) or not 1 <= axes <= 3:
        t.refuse("filters that are reversed, or groups of batches, have no QNN equivalent")
    if not x.rank == w.rank == axes + 2 or not len(strides) == len(steps) == axes:
        t.refuse(f"data {list(x.shape)} and filters {list(w.shape)} do not have {axes} axes of space")
    data = t.transpose(x, [input_batch_dimension, *input_spatial_dimensions, input_feature_dimension])
    filters = t.transpose(
        w, [*kernel_spatial_dimensions, kernel_input_feature_dimension, kernel_output_feature_dimension]
    )
    data = spread(t, data, [1, *(lhs_dilation or ones), 1], 0.0)
    data, rows = _cut_off(t, data, _rows(padding, axes))
    y = _convolved(t, data, filters, feature_group_count, rows, strides, steps)
    places = [output_batch_dimension, *output_spatial_dimensions, output_feature_dimension]
    return t.transpose(y, np.argsort(places).tolist())


def _convolved(
    t: Translation, x: Value, w: Value, groups: int, rows: list[list[int]], strides: list[int],
    steps: list[int],
) -> Value:  # fmt: skip
    """Over images and volumes; a signal is an image of one row."""
    if x.rank == 3:
        image, filters = (t.reshape(v, (*v.shape[:i], 1, *v.shape[i:])) for v, i in ((x, 1), (w, 0)))
        y = _convolved(t, image, filters, groups, [[0, 0], *rows], [1, *strides], [1, *steps])
        return t.reshape(y, (y.shape[0], *y.shape[2:]))
    if groups < 1 or x.shape[-1] != groups * w.shape[-2] or w.shape[-1] % groups:
        t.refuse(f"filters {list(w.shape)} in {groups} groups do not fit data {list(x.shape)}")
    depthwise = groups > 1 and w.shape[-2] == 1 and x.rank == 4
    conv = t.depthwise_conv if depthwise else partial(t.conv, group=groups)
    return conv(x, w, None, stride=strides, pad_amount=rows, dilation=steps)


def _rows(padding: Sequence[Any], axes: int) -> list[list[int]]:
    flat = [int(p) for p in np.ravel(padding)] or [0] * (2 * axes)
    return [flat[2 * i : 2 * i + 2] for i in range(axes)]


def _cut_off(t: Translation, x: Value, rows: list[list[int]]) -> tuple[Value, list[list[int]]]:
    """What negative pads of axes behind the first leave, and the pads that are not negative."""
    ends = [(max(0, -a), d - max(0, -b), 1) for (a, b), d in zip(rows, x.shape[1:], strict=False)]
    whole = [(0, x.shape[0], 1), *ends, (0, x.shape[-1], 1)]
    return sliced(t, x, whole), [[max(a, 0), max(b, 0)] for a, b in rows]


# -- reductions ----------------------------------------------------------------------------------------------


@translates("STABLEHLO_REDUCE")
def reduce(
    t: Translation, *inputs: Value, dimensions: Sequence[int] = (), body_subgraph_index: int = 0
) -> Value:
    if len(inputs) != 2:
        t.refuse("reductions of several tensors together have no QNN equivalent")
    x, start = inputs
    return reduced(t, x, start, list(dimensions), kind_of(t, body_subgraph_index))


def kind_of(t: Translation, body: int) -> str:
    operator = t.sole_operator(body)
    kind = _KINDS.get(operator.op) if operator is not None else None
    if kind is None:
        t.refuse("its body is more than a sum, product, extreme or choice of two numbers")
    return kind


def reduced(t: Translation, x: Value, start: Value, axes: Sequence[int], kind: str) -> Value:
    y = _over(t, x, list(axes), kind)
    return y if _is_neutral(start, kind) else _joined(t, y, start, kind)


def _over(t: Translation, x: Value, axes: Sequence[int], kind: str) -> Value:
    if not axes:
        return t.copy(x)
    if kind in (_ALL, _ANY):
        number = t.cast(x, DType.INT_32)
        return t.cast((t.reduce_min if kind == _ALL else t.reduce_max)(number, axes, False), DType.BOOL_8)
    over: dict[str, Callable[..., Value]] = {
        _ADD: t.reduce_sum, _MUL: t.reduce_prod, _MAX: t.reduce_max, _MIN: t.reduce_min,
    }  # fmt: skip
    return over[kind](x, axes, False)


def _joined(t: Translation, a: Value, b: Value, kind: str) -> Value:
    pairs: dict[str, Callable[..., Value]] = {
        _ADD: t.add, _MUL: t.mul, _MAX: t.maximum, _MIN: t.minimum, _ALL: t.logical_and, _ANY: t.logical_or,
    }  # fmt: skip
    return pairs[kind](a, b)


def _is_neutral(start: Value, kind: str) -> bool:
    """Whether a start changes nothing."""
    if start.data is None or start.size != 1:
        return False
    number = start.data.reshape(-1)[0]
    if kind in (_ADD, _MUL, _ALL, _ANY):
        return bool(number == (kind in (_MUL, _ALL)))
    limits = np.finfo(number.dtype) if number.dtype.kind == "f" else np.iinfo(number.dtype)
    return bool(number <= limits.min) if kind == _MAX else bool(number >= limits.max)


@translates("STABLEHLO_REDUCE_WINDOW")
def reduce_window(
    t: Translation, x: Value, start: Value, *, window_dimensions: Sequence[int] = (),
    window_strides: Sequence[int] = (), base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (), padding: Sequence[int] = (), body_subgraph_index: int = 0,
) -> Value:  # fmt: skip
    ones = [1] * x.rank
    if any(d != 1 for d in (*base_dilations, *window_dilations)):
        t.refuse("windows with steps have no QNN equivalent")
    rows = _rows(padding, x.rank)
    if len(window_dimensions) != x.rank or len(window_strides or ones) != x.rank:
        t.refuse(f"windows {list(window_dimensions)} do not fit {list(x.shape)}")
    return _windowed(t, x, start, list(window_dimensions), list(window_strides) or ones, rows,
                     kind_of(t, body_subgraph_index))  # fmt: skip


@translates("REDUCE_WINDOW")
def reduce_window_of_tflite(
    t: Translation, x: Value, start: Value, shape: Value, strides: Value, steps: Value, *,
    reduce_function: int = 0,
) -> Value:  # fmt: skip
    kind = _WINDOW_KINDS[reduce_function] if 0 <= reduce_function < len(_WINDOW_KINDS) else ""
    if not kind or any(d != 1 for d in t.ints(steps, "the steps")):
        t.refuse("windows with steps, or of an unknown kind, have no QNN equivalent")
    windows, moves = t.ints(shape, "the windows"), t.ints(strides, "the strides")
    if not len(windows) == len(moves) == x.rank:
        t.refuse(f"windows {list(windows)} with strides {list(moves)} do not fit {list(x.shape)}")
    return _windowed(t, x, start, list(windows), list(moves), [[0, 0]] * x.rank, kind)


def _windowed(
    t: Translation, x: Value, start: Value, windows: list[int], strides: list[int], rows: list[list[int]],
    kind: str,
) -> Value:  # fmt: skip
    """Pooling of the axes that have windows; QNN pools two axes of an image."""
    moved = [i for i, w in enumerate(windows) if (w, strides[i], max(rows[i]), min(rows[i])) != (1, 1, 0, 0)]
    _check_windows(t, x, start, kind, moved, rows)
    rest = [i for i in range(x.rank) if i not in moved]
    sizes, missing = [x.shape[i] for i in moved], 2 - len(moved)
    image = t.reshape(t.transpose(x, [*rest, *moved]), (x.size // prod(sizes), *sizes, *[1] * (missing + 1)))
    size, step = ([v[i] for i in moved] + [1] * missing for v in (windows, strides))
    y = _pooled(t, image, kind, size, step, [rows[i] for i in moved] + [[0, 0]] * missing)
    back = t.reshape(y, (*(x.shape[i] for i in rest), *y.shape[1 : 1 + len(moved)]))
    return t.transpose(back, np.argsort([*rest, *moved]).tolist())


def _check_windows(
    t: Translation, x: Value, start: Value, kind: str, moved: Sequence[int], rows: list[list[int]]
) -> None:
    if len(moved) > 2 or not x.dtype.is_float:
        t.refuse("QNN pools two axes of real numbers")
    if kind not in (_ADD, _MAX, _MIN) or not _is_neutral(start, kind):
        t.refuse("QNN pools by maxima, minima or sums that start with nothing")
    if min((v for row in rows for v in row), default=0) < 0:
        t.refuse("windows over a part of the data have no QNN equivalent")


def _pooled(
    t: Translation, x: Value, kind: str, size: list[int], step: list[int], pads: list[list[int]]
) -> Value:
    if kind == _MAX:
        return t.pool_max(x, size, step, pads)
    if kind == _MIN:
        return t.neg(t.pool_max(t.neg(x), size, step, pads))
    return t.mul(t.pool_avg(x, size, step, pads, count_pads=True), float(prod(size)))


# -- order ---------------------------------------------------------------------------------------------------


@translates("STABLEHLO_SORT")
def sort(
    t: Translation, *inputs: Value, dimension: int = 0, comparator_subgraph_index: int = 0
) -> list[Value]:
    """By the first tensor; the others follow it."""
    key, axis = inputs[0], t.axis(dimension, inputs[0].rank)
    falling = _falls(t, comparator_subgraph_index)
    order = [*(i for i in range(key.rank) if i != axis), axis]
    back = np.argsort(order).tolist()
    turned = [t.transpose(v, order) for v in inputs]
    values, places = t.many("TopK", turned[0], k=key.shape[axis], largest=falling)
    index = t.cast(places, DType.INT_32)
    found = [values, *(t.gather_elements(v, index, key.rank - 1) for v in turned[1:])]
    return [t.transpose(v, back) for v in found]


def _falls(t: Translation, body: int) -> bool:
    operator = t.sole_operator(body)
    op = operator.op if operator is not None else ""
    direction = operator.options.get("comparison_direction", 0) if operator is not None else 0
    if op == "STABLEHLO_COMPARE":
        op = {2: "GREATER", 3: "GREATER", 4: "LESS", 5: "LESS"}.get(int(direction), "")
    if op not in ("GREATER", "LESS"):
        t.refuse("it sorts by more than which of two numbers is larger")
    return op == "GREATER"
