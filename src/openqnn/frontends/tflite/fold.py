"""Operators whose inputs are all small constants: computed on the spot, as shape arithmetic must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from openqnn.frontends.tflite.flatbuffer import schema
from openqnn.frontends.tflite.stored_numbers import numpy_type
from openqnn.frontends.translation import Translation
from openqnn.ir import Array, Value

SMALL = 4096  # elements; larger constants stay nodes and are folded together by a pass


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    quotient = np.abs(a) // np.abs(b)
    return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)


def _cast(x: Array, options: Mapping[str, Any]) -> Array:
    kind = schema().name_of("TensorType", options.get("out_data_type", 0))
    return x.astype(numpy_type(kind) or x.dtype)


def _range(start: Array, limit: Array, delta: Array) -> Array:
    count = max(0, int(np.ceil((limit.item() - start.item()) / delta.item())))
    if count > SMALL * 256:
        raise ValueError("too long to be computed on the spot")
    return (start.reshape(()) + delta.reshape(()) * np.arange(count)).astype(start.dtype)


def _reduced(function: Callable[..., Array]) -> Callable[..., Array]:
    def row(x: Array, axes: Array, options: Mapping[str, Any]) -> Array:
        keep = bool(options.get("keep_dims", False))
        return np.asarray(function(x, axis=tuple(int(a) for a in axes.ravel()), keepdims=keep)).astype(
            x.dtype
        )

    return row


_PLAIN: dict[str, Callable[..., Any]] = {
    "ABS": np.abs,
    "ADD": np.add,
    "CEIL": np.ceil,
    "DIV": _divide,
    "EQUAL": np.equal,
    "FLOOR": np.floor,
    "FLOOR_DIV": np.floor_divide,
    "FLOOR_MOD": np.mod,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_NOT": np.logical_not,
    "LOGICAL_OR": np.logical_or,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": np.multiply,
    "NEG": np.negative,
    "NOT_EQUAL": np.not_equal,
    "RANGE": _range,
    "SELECT_V2": np.where,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "SUB": np.subtract,
    "TILE": lambda x, repeats: np.tile(x, repeats.tolist()),
    "BROADCAST_ARGS": lambda a, b: np.asarray(np.broadcast_shapes(tuple(a), tuple(b)), a.dtype),
}
_WITH_OPTIONS: dict[str, Callable[..., Any]] = {
    "CAST": _cast,
    "CONCATENATION": lambda *xs: np.concatenate(xs[:-1], axis=xs[-1].get("axis", 0)),
    "PACK": lambda *xs: np.stack(xs[:-1], axis=xs[-1].get("axis", 0)),
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "REDUCE_PROD": _reduced(np.prod),
    "SUM": _reduced(np.sum),
}


def fold_small(
    op: str, inputs: Sequence[Any], options: Mapping[str, Any], t: Translation
) -> list[Value] | None:
    """The results of an operator on small constants; None when it has to be translated."""
    if not inputs or options.get("fused_activation_function"):
        return None
    arrays = [v.data if isinstance(v, Value) else None for v in inputs]
    if any(a is None for a in arrays) or sum(a.size for a in arrays if a is not None) > SMALL:
        return None
    try:
        with np.errstate(all="ignore"):
            if op in _PLAIN:
                return [t.constant(np.asarray(_PLAIN[op](*arrays)))]
            if op in _WITH_OPTIONS:
                return [t.constant(np.asarray(_WITH_OPTIONS[op](*arrays, options)))]
    except Exception:  # odd options or shapes: the translator says what is wrong
        return None
    return None
