"""What stands behind a refused node: stand-ins, so that one report can name every problem of a model.

ONNX's shape inference says what they look like. It runs in a child process, which is kept: on a damaged
model it can crash.
"""

from __future__ import annotations

import atexit
import os
import select
import struct
import subprocess
from functools import cache

import onnx
from onnx import helper

from openqnn.frontends.onnx.element_types import onnx_dtype
from openqnn.frontends.translation import Refused, narrow_type
from openqnn.ir import Shape, Value
from openqnn.worker.interpreter import interpreter_command

PATIENCE = 20.0  # seconds; a report with fewer lines is better than none
_CHILD = """
import struct, sys
from onnx import ModelProto, shape_inference
while head := sys.stdin.buffer.read(8):
    model = ModelProto.FromString(sys.stdin.buffer.read(struct.unpack("<Q", head)[0]))
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        pass
    data = model.SerializeToString()
    sys.stdout.buffer.write(struct.pack("<Q", len(data)) + data)
    sys.stdout.buffer.flush()
"""


class _Inference:
    """The child process; it is started again after a crash."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._process = os.getpid()
        atexit.register(self.close)

    def ask(self, model: bytes) -> bytes:
        """The model with inferred types; empty when the child does not survive the question."""
        if self._child is None:
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            command = interpreter_command("-c", _CHILD)
            self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(struct.pack("<Q", len(model)) + model)
            self._child.stdin.flush()
            ready, _, _ = select.select([self._child.stdout], [], [], PATIENCE)
            head = self._child.stdout.read(8) if ready else b""
            if len(head) == 8:
                return self._child.stdout.read(struct.unpack("<Q", head)[0])
        except BrokenPipeError:
            pass
        self.close()
        return b""

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None and self._process == os.getpid():
            child.kill()
            child.communicate()


_inference = cache(_Inference)

if hasattr(os, "register_at_fork"):  # a copy of this process has no claim to the child
    os.register_at_fork(after_in_child=_inference.cache_clear)


def inferred(model: onnx.ModelProto, inputs: dict[str, Shape]) -> dict[str, onnx.ValueInfoProto]:
    """What ONNX itself infers of the model's values, once its inputs have static shapes."""
    static = onnx.ModelProto()
    static.CopyFrom(model)
    for info in static.graph.input:
        if info.name in inputs:
            kind = info.type.tensor_type.elem_type
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, list(inputs[info.name])))
    graph = onnx.ModelProto.FromString(_inference().ask(static.SerializeToString())).graph
    return {info.name: info for info in (*graph.value_info, *graph.output)}


def stand_in(name: str, info: onnx.ValueInfoProto | None) -> Value | None:
    """A value of the right type and shape that nothing computes; None where these are not known.

    Short integer tensors get none: they are shapes and axes, and without their numbers whoever reads them
    would be refused for no fault of its own.
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
