"""OpenQNN: the Qualcomm QNN toolchain as an open Python package.

import openqnn
graph = openqnn.convert("model.onnx", input_shapes={"x": (1, 3, 224, 224)})
with openqnn.Session(graph, backend="cpu") as session:
    outputs = session.run({"x": array})
"""

from typing import TYPE_CHECKING, Any

from openqnn import errors
from openqnn.errors import OpenQnnWarning
from openqnn.ir import Encoding, Graph, Node, Value
from openqnn.pipeline import Report, Session, check, compile, convert, load

if TYPE_CHECKING:
    from openqnn.quantization import quantize

__version__ = "0.1.0"
__all__ = [
    "Encoding",
    "Graph",
    "Node",
    "OpenQnnWarning",
    "Report",
    "Session",
    "Value",
    "check",
    "compile",
    "convert",
    "errors",
    "load",
    "quantize",
]


def __getattr__(name: str) -> Any:
    """The quantizer is loaded when it is first used: most who convert a model do without it."""
    if name == "quantize":
        from openqnn.quantization import quantize

        return quantize
    raise AttributeError(f"module 'openqnn' has no attribute '{name}'")
