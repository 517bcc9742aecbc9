"""An ONNX model as a view, as it stands in the file: for the pane of the source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import ModelError
from openqnn.viewer.from_graph import INPUT, OUTPUT
from openqnn.viewer.view import View, ViewNode, ViewTensor

if TYPE_CHECKING:
    import onnx

PYTHON_LINE = "pkg.torch.onnx.stack_trace"
CONSTANT = "Constant"
LABELS = {"float": "float32", "double": "float64"}  # where ONNX's name is not that of our types


def view_from_onnx(path: str | os.PathLike[str]) -> View:
    """The nodes of the file's main graph; weights are named with their shapes, and not read."""
    import onnx

    try:
        model = onnx.load(os.fspath(path), load_external_data=False)
    except Exception as error:  # protobuf raises several kinds
        raise ModelError(f"{path}: not an ONNX model: {error}") from error
    tensors = _tensors(model.graph)
    weights = {tensor.name for tensor in model.graph.initializer}
    constants = [node for node in model.graph.node if node.op_type == CONSTANT]
    tensors |= {node.output[0]: _constant(node) for node in constants}
    inputs = [i.name for i in model.graph.input if i.name not in weights]
    nodes = [ViewNode(n, INPUT, outputs=(tensors[n],), keys=(f"{INPUT}:{n}",)) for n in inputs]
    nodes += [
        _node(node, number, tensors)
        for number, node in enumerate(model.graph.node)
        if node.op_type != CONSTANT
    ]
    for output in model.graph.output:
        tensor = tensors[output.name]
        nodes.append(ViewNode(output.name, OUTPUT, inputs=(tensor,), keys=(f"{OUTPUT}:{output.name}",)))
    facts = {"producer": f"{model.producer_name} {model.producer_version}".strip()}
    facts |= {f"opset {o.domain or 'ai.onnx'}": str(o.version) for o in model.opset_import}
    return View(Path(path).name, "ONNX", tuple(nodes), facts)


def _tensors(graph: onnx.GraphProto) -> dict[str, ViewTensor]:
    found: dict[str, ViewTensor] = {}
    for info in (*graph.value_info, *graph.input, *graph.output):
        kind = info.type.tensor_type
        dims = tuple(d.dim_param or int(d.dim_value) for d in kind.shape.dim)
        found[info.name] = ViewTensor(info.name, _type_name(kind.elem_type), dims)
    for tensor in graph.initializer:
        found[tensor.name] = ViewTensor(tensor.name, _type_name(tensor.data_type), tuple(tensor.dims))
    return found


def _type_name(number: int) -> str:
    from onnx import TensorProto

    names = {value: name for name, value in TensorProto.DataType.items()}
    name = names.get(number, str(number)).lower()
    return LABELS.get(name, name)


def _constant(node: onnx.NodeProto) -> ViewTensor:
    """What a Constant node holds: it stands at its readers, like a weight."""
    tensor = next((a.t for a in node.attribute if a.name == "value"), None)
    if tensor is None:
        return ViewTensor(node.output[0], "constant")
    return ViewTensor(node.output[0], _type_name(tensor.data_type), tuple(tensor.dims))


def _node(node: onnx.NodeProto, number: int, tensors: dict[str, ViewTensor]) -> ViewNode:
    unknown = lambda name: tensors.get(name) or ViewTensor(name, "")
    name = node.name or next((o for o in node.output if o), f"{node.op_type}_{number}")
    op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return ViewNode(
        name,
        op,
        _python_line(node),
        {a.name: _attribute(a) for a in node.attribute},
        tuple(unknown(i) for i in node.input if i),
        tuple(unknown(o) for o in node.output if o),
        (*node.output, name),
    )


def _attribute(attribute: onnx.AttributeProto) -> str:
    from onnx import AttributeProto, helper

    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return "a graph"
    if attribute.type in (AttributeProto.TENSOR, AttributeProto.TENSORS):
        return f"a tensor of {list(attribute.t.dims)}"
    value: Any = helper.get_attribute_value(attribute)
    if isinstance(value, bytes) and len(value) > 200:  # an EPContext node may hold a whole binary
        return f"{len(value):,} bytes"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _python_line(node: onnx.NodeProto) -> str:
    """The line of the user's program that torch's exporter wrote down."""
    lines = [p.value for p in node.metadata_props if p.key == PYTHON_LINE]
    return lines[0].strip().splitlines()[0].strip() if lines and lines[0].strip() else ""
