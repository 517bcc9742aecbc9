"""An ONNX model as a view, as it stands in the file: for the pane of the source."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import ModelError
from openqnn.ir import Array
from openqnn.viewer.from_graph import INPUT, OUTPUT, statistics_of
from openqnn.viewer.view import View, ViewNode, ViewTensor

if TYPE_CHECKING:
    import onnx

PYTHON_LINE = "pkg.torch.onnx.stack_trace"
MODULES = "pkg.torch.onnx.name_scopes"
CONSTANT = "Constant"
LONGEST = 24  # letters of a size
SMALL = 4096  # bytes of a weight that may hold a shape
LABELS = {"float": "float32", "double": "float64"}  # where ONNX's name is not that of our types


def view_from_onnx(path: str | os.PathLike[str]) -> View:
    """The nodes of the file's main graph; weights are named with their shapes, and read when they are
    asked for."""
    model = _read(path)
    tensors = _tensors(_with_shapes(model), _Arrays(Path(path)))
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


def _read(path: str | os.PathLike[str]) -> onnx.ModelProto:
    import onnx

    try:
        model = onnx.load(os.fspath(path), load_external_data=False)
    except Exception as error:  # protobuf raises several kinds
        raise ModelError(f"{path}: not an ONNX model: {error}") from error
    if not model.graph.node and not model.graph.output:
        raise ModelError(f"{path}: not an ONNX model: it holds no graph", hint="was it written to the end?")
    return model


class _Arrays:
    """The weights of a file, which is read when the first of them is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrays: Mapping[str, Array] | None = None

    def figures(self, name: str) -> dict[str, Any]:
        from openqnn.frontends.onnx.reader import read_model

        try:
            if self._arrays is None:
                self._arrays = read_model(self._path).arrays
            return statistics_of(self._arrays[name])
        except (ModelError, KeyError, TypeError, ValueError) as error:
            return {"not readable": str(error)}


def _with_shapes(model: onnx.ModelProto) -> onnx.GraphProto:
    """The graph with the shapes and types that ONNX infers, as far as it can: files rarely have them."""
    import onnx

    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > SMALL:  # only shapes are computed with, and weights would be copied twice
            tensor.ClearField("raw_data")
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # a model that breaks ONNX's rules is shown as it stands
        return model.graph


def _tensors(graph: onnx.GraphProto, arrays: _Arrays) -> dict[str, ViewTensor]:
    found: dict[str, ViewTensor] = {}
    for info in (*graph.value_info, *graph.input, *graph.output):
        kind = info.type.tensor_type
        known = tuple(_size(dim) for dim in kind.shape.dim)
        dims = known if kind.HasField("shape") else None
        found[info.name] = ViewTensor(info.name, _type_name(kind.elem_type), dims)
    for tensor in graph.initializer:
        weight = partial(arrays.figures, tensor.name)
        kind = _type_name(tensor.data_type)
        found[tensor.name] = ViewTensor(tensor.name, kind, tuple(tensor.dims), weight=weight)
    return found


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """A size, a name, or "?": of a large model, ONNX infers formulas that nobody can read."""
    if dim.dim_param:
        return dim.dim_param if len(dim.dim_param) <= LONGEST else "?"
    return int(dim.dim_value) if dim.HasField("dim_value") else "?"


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
    figures = partial(_constant_figures, tensor)
    return ViewTensor(node.output[0], _type_name(tensor.data_type), tuple(tensor.dims), weight=figures)


def _constant_figures(tensor: onnx.TensorProto) -> dict[str, Any]:
    from onnx import numpy_helper

    try:
        return statistics_of(numpy_helper.to_array(tensor))
    except (TypeError, ValueError, OSError) as error:  # words, or data that is not there
        return {"not readable": str(error)}


def _node(node: onnx.NodeProto, number: int, tensors: dict[str, ViewTensor]) -> ViewNode:
    unknown = lambda name: tensors.get(name) or ViewTensor(name, "")
    name = node.name or next((o for o in node.output if o), f"{node.op_type}_{number}")
    op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return ViewNode(
        name,
        op,
        "",
        {a.name: _attribute(a) for a in node.attribute},
        tuple(unknown(i) for i in node.input if i),
        tuple(unknown(o) for o in node.output if o),
        (*(o for o in node.output if o), name, f"onnx node {name}"),
        scope=_scope(node),
        places=_python_lines(node),
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


def _python_lines(node: onnx.NodeProto) -> tuple[str, ...]:
    """The lines of the user's program that torch's exporter wrote down, the innermost last."""
    text = next((p.value for p in node.metadata_props if p.key == PYTHON_LINE), "")
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _scope(node: onnx.NodeProto) -> str:
    """The modules around the node, as torch's exporter wrote them down: `['', 'encoder',
    'encoder.layer.0']`."""
    text = next((p.value for p in node.metadata_props if p.key == MODULES), "")
    try:
        names = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    found: list[str] = []
    around = ""
    for name in names if isinstance(names, list) else []:
        if not isinstance(name, str) or not name.startswith(around):
            break
        own = name[len(around) :].strip(".")
        found += [own.replace("/", ".")] if own else []
        around = name
    return "/".join(found)
