"""What stands behind a refused node: stand-ins, so that one report can name every problem of a model."""

from __future__ import annotations

import onnx
from onnx import helper, shape_inference

from openqnn.frontends.onnx.translation import Refused, narrow_type, onnx_dtype
from openqnn.ir import Shape, Value


def inferred(model: onnx.ModelProto, inputs: dict[str, Shape]) -> dict[str, onnx.ValueInfoProto]:
    """What ONNX itself infers of the model's values, once its inputs have static shapes."""
    static = onnx.ModelProto()
    static.CopyFrom(model)
    for info in static.graph.input:
        if info.name in inputs:
            kind = info.type.tensor_type.elem_type
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, list(inputs[info.name])))
    try:
        graph = shape_inference.infer_shapes(static, data_prop=True).graph
    except Exception:  # a model that it refuses is reported by the importer, not here
        return {}
    return {info.name: info for info in (*graph.value_info, *graph.output)}


def stand_in(name: str, info: onnx.ValueInfoProto | None) -> Value | None:
    """A value of the right type and shape that nothing computes; None where these are not known.

    Short integer tensors get none: they are shapes and axes, and without their numbers whoever reads them would be
    refused for no fault of its own.
    """
    if info is None or not info.type.tensor_type.HasField("shape"):
        return None
    dims = info.type.tensor_type.shape.dim
    if any(d.WhichOneof("value") != "dim_value" or d.dim_value < 1 for d in dims):
        return None
    try:
        dtype = narrow_type(onnx_dtype(info.type.tensor_type.elem_type, name))
    except Refused:
        return None
    if dtype.is_integer and len(dims) < 2:
        return None
    return Value(name, dtype, tuple(d.dim_value for d in dims))
