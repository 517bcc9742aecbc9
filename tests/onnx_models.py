"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.onnx import open as open_onnx
from openqnn.ir import Graph
from tests.models.fetch import model_path

OPSET = 17


def tensor(
    name: str, shape: Sequence[int | str | None] | None, dtype: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    weights: Sequence[TensorProto] = (),
    opset: int = OPSET,
    **extra_opsets: int,
) -> onnx.ModelProto:
    """A model; without inputs and outputs `x` and `y`, float32[2, 3]."""
    graph = helper.make_graph(
        nodes, "g", inputs or [tensor("x", (2, 3))], outputs or [tensor("y", (2, 3))], weights
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in extra_opsets.items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def relu() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"], name="act")])


def add_weight(array: np.ndarray, name: str = "w") -> onnx.ModelProto:
    """y = x + weight"""
    shape = np.broadcast_shapes((2, 3), array.shape)
    node = helper.make_node("Add", ["x", name], ["y"], name="sum")
    return model([node], outputs=[tensor("y", shape)], weights=[weight(name, array)])


def chain(length: int) -> onnx.ModelProto:
    """x -> Relu -> Add(one) -> Relu ... -> y"""
    nodes = []
    for i in range(length):
        source, target = f"v{i}" if i else "x", f"v{i + 1}" if i + 1 < length else "y"
        inputs = [source] if i % 2 == 0 else [source, "one"]
        nodes.append(helper.make_node("Add" if i % 2 else "Relu", inputs, [target], name=f"n{i}"))
    return model(nodes, weights=[weight("one", np.ones(3, np.float32))])


def save(proto: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def save_with_open_batch(target: Path) -> None:
    """The network for digits as exporters write a user's model: with a batch that is open, called n."""
    model = onnx.load(model_path("mnist_conv"))
    for end in (*model.graph.input, *model.graph.output):
        end.type.tensor_type.shape.dim[0].dim_param = "n"
    del model.graph.value_info[:]
    constants = {tensor.name for tensor in model.graph.initializer}
    for end in [end for end in model.graph.input if end.name in constants]:
        model.graph.input.remove(end)
    onnx.save(model, target)


def import_onnx(source: str | Path | onnx.ModelProto, dimensions: Dimensions | None = None) -> Graph:
    """The QNN graph of an ONNX model, before any pass."""
    return open_onnx(source, dimensions or Dimensions(), ()).run()
