"""A model in ONNX's text form, converted and run here, against ONNX Runtime on the source model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime as ort
from onnx import parser

import openqnn

Arrays = Mapping[str, np.ndarray[Any, Any]]


def parsed(body: str, opset: int = 17) -> onnx.ModelProto:
    """`body` is a graph: `(float[2,3] x) => (float[2,3] y) { y = Relu(x) }`."""
    opsets = f'["" : {opset}, "com.microsoft" : 1]'
    return parser.parse_model(f"<ir_version: 8, opset_import: {opsets}> g {body}")


def samples(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Random arrays for all inputs; integers are small and not negative."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for info in model.graph.input:
        tensor = info.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [d.dim_value for d in tensor.shape.dim]
        data = rng.normal(size=shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        found[info.name] = np.asarray(data).astype(dtype)
    return found


def check(model: onnx.ModelProto, arrays: Arrays | None = None, rtol: float = 1e-4) -> openqnn.Graph:
    """Both give the same; the graph, for a closer look."""
    feeds = {**samples(model), **(arrays or {})}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = cast("list[np.ndarray]", session.run(None, dict(feeds)))
    graph = openqnn.convert(model)
    with openqnn.Session(graph, threads=1) as s:
        found = s.run(feeds)
    for info, want in zip(model.graph.output, wanted, strict=True):
        got = found[info.name]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), info.name
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-5, err_msg=info.name)
    return graph


def ops(graph: openqnn.Graph) -> list[str]:
    return [n.op for n in graph.nodes]
