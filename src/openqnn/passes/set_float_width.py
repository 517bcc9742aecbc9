"""The width of floats in a whole graph: 16 or 32 bits, with biases of their own width."""

from __future__ import annotations

import warnings

import numpy as np

from openqnn.errors import OpenQnnWarning
from openqnn.ir import Array, DType, Graph, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role

FLOATS = {16: DType.FLOAT_16, 32: DType.FLOAT_32}


def set_float_width(graph: Graph, bits: int, bias_bits: int | None = None) -> None:
    """Every float of 16 or 32 bits gets the wanted width; the graph's inputs and outputs too."""
    target, bias = FLOATS[bits], FLOATS[bias_bits or bits]
    lost: list[str] = []
    for value in list(graph.values()):
        if value.dtype in FLOATS.values() and value.encoding is None:
            wanted = bias if _is_bias(value) else target
            if value.data is not None:
                value.data = _narrowed(value, wanted, lost)
            value.dtype = wanted
    if lost:
        names = ", ".join(lost[:3]) + (" ..." if len(lost) > 3 else "")
        message = f"weights beyond the range of float16 were cut to its largest number: {names}"
        warnings.warn(message, OpenQnnWarning, stacklevel=5)


def _is_bias(value: Value) -> bool:
    if value.data is None or not value.users:
        return False
    roles = {
        schema_of(user).operand(i).role
        for user in value.users
        for i, operand in enumerate(user.inputs)
        if operand is value
    }
    return roles == {Role.BIAS}


def _narrowed(value: Value, wanted: DType, lost: list[str]) -> Array:
    data = value.data
    assert data is not None
    if data.dtype == wanted.numpy:
        return data
    if wanted is DType.FLOAT_16 and data.size:
        largest = float(np.finfo(np.float16).max)
        if np.any(np.isfinite(data) & (np.abs(data) > largest)):
            lost.append(f"'{value.name}'")
            data = np.where(np.isinf(data), data, np.clip(data, -largest, largest))
    return data.astype(wanted.numpy)
