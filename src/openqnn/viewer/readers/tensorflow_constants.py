"""Numbers of constants in TensorFlow's graph files, read when somebody looks at them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from openqnn.frontends.tensorflow.graph_messages import type_name
from openqnn.ir import Array
from openqnn.viewer.from_graph import statistics_of

FIELDS: Final = {
    "float32": "float_val", "float64": "double_val", "int64": "int64_val", "bool": "bool_val",
    "float16": "half_val", "int32": "int_val", "int16": "int_val", "int8": "int_val", "uint8": "int_val",
    "uint16": "int_val",
}  # fmt: skip
"""Where numbers stand that are not written as bytes, by type."""


def constant_figures(tensor: Any) -> dict[str, Any]:
    """Statistics of a constant's numbers, or why there are none."""
    name = type_name(tensor.dtype)
    if name not in FIELDS:
        return {"not readable": f"numbers of type {name}"}
    try:
        return statistics_of(_numbers(tensor, name))
    except ValueError as error:
        return {"not readable": str(error)}


def _numbers(tensor: Any, name: str) -> Array:
    shape = tuple(int(dim.size) for dim in tensor.tensor_shape.dim)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, np.dtype(name).newbyteorder("<")).reshape(shape)
    values = list(getattr(tensor, FIELDS[name])) or [0]
    if name == "float16":  # its bits, as a number
        held = np.array(values, np.uint16).view(np.float16)
    else:
        held = np.array(values, np.dtype(name))
    missing = int(np.prod(shape)) - held.size  # the last one stands for all that follow
    return np.concatenate([held, np.full(max(0, missing), held[-1])]).reshape(shape)
