"""The graph that speaks QNN: values, nodes, data types, encodings, text form and verification."""

from openqnn.ir.dtype import DType, dtype_of
from openqnn.ir.encoding import Blocks, Encoding
from openqnn.ir.given import MODEL, OVERRIDE, Given
from openqnn.ir.graph import BUILTIN_PACKAGE, Array, Graph, Node, ParamValue, Port, Shape, Value, op_key

__all__ = [
    "BUILTIN_PACKAGE",
    "MODEL",
    "OVERRIDE",
    "Array",
    "Blocks",
    "DType",
    "Encoding",
    "Given",
    "Graph",
    "Node",
    "ParamValue",
    "Port",
    "Shape",
    "Value",
    "dtype_of",
    "op_key",
]
