"""ONNX's element types as QNN's."""

from __future__ import annotations

from onnx import TensorProto, helper

from openqnn.frontends.translation import FOREIGN, Refused
from openqnn.ir import DType, dtype_of


def onnx_dtype(code: int, what: str) -> DType:
    """The DType of an ONNX element type; Refused for those that QNN does not have."""
    try:
        dtype = dtype_of(helper.tensor_dtype_to_np_dtype(code))
    except (ValueError, KeyError, TypeError):
        dtype = DType.STRING
    if dtype in FOREIGN:
        name = TensorProto.DataType.Name(code) if code in TensorProto.DataType.values() else str(code)
        raise Refused(f"{what} has element type {name}, which QNN does not compute with")
    return dtype
