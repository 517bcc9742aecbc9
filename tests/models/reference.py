"""What ONNX Runtime computes on the source models: the numbers that a conversion is held against."""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs


@cache
def reference_outputs(model: str) -> dict[str, NDArray[np.generic]]:
    """The outputs of the source model on its sample inputs, by name."""
    session = reference_session(model)
    names = [output.name for output in session.get_outputs()]
    results = cast("list[NDArray[np.generic]]", session.run(names, sample_inputs(model)))
    return dict(zip(names, results, strict=True))


def reference_session(model: str) -> onnxruntime.InferenceSession:
    """ONNX Runtime on the source model, with its inputs made static where they are not."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(static_model(model), options, providers=["CPUExecutionProvider"])


def static_model(model: str) -> bytes:
    """The source model with the registry's input shapes written in, and stale shapes (centerface) dropped."""
    proto = onnx.load(model_path(model))
    wanted = static_shapes(model)
    for value in proto.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, wanted.get(value.name, ()), strict=False):
            dim.dim_value = size
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    proto.graph.ClearField("value_info")
    return proto.SerializeToString()
