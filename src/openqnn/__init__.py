"""OpenQNN: the Qualcomm QNN toolchain as an open Python package.

import openqnn
graph = openqnn.convert("model.onnx", input_shapes={"x": (1, 3, 224, 224)})
with openqnn.Session(graph, backend="cpu") as session:
    outputs = session.run({"x": array})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openqnn import errors
from openqnn.errors import OpenQnnWarning

if TYPE_CHECKING:
    from openqnn.analysis.compare_backends import compare
    from openqnn.api.compile import compile
    from openqnn.api.convert import Report, check, convert
    from openqnn.api.custom_ops import declare_op_package, load_custom_ops, use_op_packages
    from openqnn.api.family import Family, convert_family
    from openqnn.api.files import load
    from openqnn.api.fuse import expand, fuse
    from openqnn.api.quantize import quantize
    from openqnn.api.session import Session
    from openqnn.api.split_outputs import split_outputs
    from openqnn.frontends.custom_ops import composite
    from openqnn.ir import Encoding, Graph, Node, Value
    from openqnn.ops.custom_function import custom_op
    from openqnn.ort_qnn.inference_session import InferenceSession

__version__ = "0.2.0"
__all__ = [
    "Encoding",
    "Family",
    "Graph",
    "InferenceSession",
    "Node",
    "OpenQnnWarning",
    "Report",
    "Session",
    "Value",
    "check",
    "compare",
    "compile",
    "composite",
    "convert",
    "convert_family",
    "custom_op",
    "declare_op_package",
    "errors",
    "expand",
    "fuse",
    "load",
    "load_custom_ops",
    "quantize",
    "split_outputs",
    "use_op_packages",
]


_HOMES = {
    "openqnn.ir": ("Encoding", "Graph", "Node", "Value"),
    "openqnn.analysis.compare_backends": ("compare",),
    "openqnn.api.compile": ("compile",),
    "openqnn.frontends.custom_ops": ("composite",),
    "openqnn.ops.custom_function": ("custom_op",),
    "openqnn.api.custom_ops": ("declare_op_package", "load_custom_ops", "use_op_packages"),
    "openqnn.api.convert": ("Report", "check", "convert"),
    "openqnn.api.family": ("Family", "convert_family"),
    "openqnn.api.files": ("load",),
    "openqnn.api.fuse": ("expand", "fuse"),
    "openqnn.api.quantize": ("quantize",),
    "openqnn.api.session": ("Session",),
    "openqnn.api.split_outputs": ("split_outputs",),
    "openqnn.ort_qnn.inference_session": ("InferenceSession",),
}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used: most users need few of them, and a command that is
    interrupted while it starts can only end well if it has begun."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'openqnn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
