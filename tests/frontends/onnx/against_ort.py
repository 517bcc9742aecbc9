"""One ONNX node, or a few, through the frontend and the built-in backend, against ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime as ort
from onnx import NodeProto, helper, numpy_helper

from openqnn.ir import Graph
from openqnn.runtime.cpu.executable import CpuExecutable
from tests.onnx_models import import_onnx

NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def rand(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def model_of(
    nodes: Sequence[NodeProto] | NodeProto, inputs: dict[str, Any], constants: dict[str, Any], opset: int
) -> onnx.ModelProto:
    nodes = [nodes] if isinstance(nodes, NodeProto) else list(nodes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    outputs = [onnx.ValueInfoProto(name=o) for o in nodes[-1].output if o]
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def node(op: str, inputs: str, outputs: str = "y", domain: str = "", **attributes: Any) -> NodeProto:
    """Names are separated by spaces; `_` leaves one out."""
    first, last = (["" if n == "_" else n for n in text.split()] for text in (inputs, outputs))
    return helper.make_node(op, first, last, domain=domain, **attributes)


def typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Output types as ONNX Runtime infers them: the checker wants them, and no test should spell them out."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = ("float", "uint8", "int8", "uint16", "int16", "int32", "int64", "", "bool", "", "", "uint32")
    types = {name: code for code, name in enumerate(names, start=1)}
    for info, found in zip(model.graph.output, session.get_outputs(), strict=True):
        info.type.tensor_type.elem_type = types.get(found.type[7:-1], 1)
    return model


def same(
    nodes: Sequence[NodeProto] | NodeProto, inputs: dict[str, Any], constants: dict[str, Any] | None = None,
    opset: int = 21, tolerance: float = 1e-5,
) -> Graph:  # fmt: skip
    """Converts, runs and compares; gives the graph, for looking into it."""
    inputs = {n: np.asarray(a) for n, a in inputs.items()}
    model = typed(model_of(nodes, inputs, constants or {}, opset))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = cast("list[np.ndarray]", session.run(None, inputs))
    graph = import_onnx(model)
    feeds = {n: a.astype(NARROW.get(a.dtype.name, a.dtype)) for n, a in inputs.items()}
    found = CpuExecutable(graph, threads=1).run(feeds)
    for value, want in zip(graph.outputs, wanted, strict=True):
        port = graph.ports[value.name]
        got = found[value.name].reshape(port.shape)
        assert port.shape == want.shape
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), tolerance, tolerance)
    return graph


def ops(graph: Graph) -> Counter[str]:
    return Counter(n.op for n in graph.nodes)
