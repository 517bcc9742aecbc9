"""TFLite models as views, as they stand in the file: every subgraph with its operators and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from openqnn.frontends.tflite.flatbuffer import schema
from openqnn.frontends.tflite.model import Blockwise, Operator, Subgraph, Tensor, read_tflite
from openqnn.viewer.from_graph import statistics_of
from openqnn.viewer.readers.tensor_words import begins_with, ends_with, scales_words, shortened
from openqnn.viewer.view import View, ViewNode, ViewTensor

ENUMS: Final = {
    "padding": "Padding", "fused_activation_function": "ActivationFunctionType", "mode": "MirrorPadMode",
    "weights_format": "FullyConnectedOptionsWeightsFormat", "kernel_type": "LSTMKernelType",
}  # fmt: skip


def tflite_views(path: Path) -> list[View]:
    """A view of each subgraph; signatures give their names to what they call."""
    model = read_tflite(path)
    names = {found.subgraph: found.key for found in model.signatures if found.key}
    several = len(model.subgraphs) > 1
    found: list[View] = []
    for subgraph in model.subgraphs:
        own = names.get(subgraph.index) or subgraph.name or f"subgraph {subgraph.index}"
        title = f"{path.name}: {own}" if several else path.name
        facts = {"subgraph": own, "operators": f"{len(subgraph.operators):,}"}
        found.append(View(title, "TFLite", tuple(_nodes(subgraph)), facts))
    return found


def _nodes(subgraph: Subgraph) -> list[ViewNode]:
    shown = {tensor.index: _tensor(tensor) for tensor in subgraph.tensors}
    nodes = [begins_with(shown[n]) for n in subgraph.inputs]
    nodes += [_node(operator, shown) for operator in subgraph.operators]
    return nodes + [ends_with(shown[n]) for n in subgraph.outputs]


def _node(operator: Operator, shown: Mapping[int, ViewTensor]) -> ViewNode:
    outputs = tuple(shown[n] for n in operator.outputs if n >= 0)
    own = f"{operator.title}_{operator.index}"
    params = {name: _option(name, value) for name, value in operator.options.items()}
    if operator.custom_options:
        params["custom options"] = f"{len(operator.custom_options):,} bytes"
    inputs = tuple(shown[n] for n in operator.inputs if n >= 0)
    params["version"] = str(operator.version)
    name = outputs[0].name if outputs else own
    return ViewNode(
        name, operator.title, f"operator {operator.index}", params, inputs, outputs,
        (*(t.name for t in outputs), own),
    )  # fmt: skip


def _option(name: str, value: Any) -> str:
    """An option in the words of TFLite's schema, where it is one of an enumeration."""
    enum = ENUMS.get(name) or ("TensorType" if name.endswith("_type") else "")
    return schema().name_of(enum, int(value)) if enum and isinstance(value, int) else shortened(str(value))


def _tensor(tensor: Tensor) -> ViewTensor:
    open_ones = tensor.signature or tensor.shape
    shape = tuple(d if d >= 0 else "?" for d in open_ones)
    weight = None if tensor.data is None else partial(statistics_of, tensor.data)
    encoding = _encoding(tensor)
    origin = "the TFLite file" if encoding else ""
    return ViewTensor(tensor.name, tensor.type.lower(), shape, encoding, origin, weight=weight)


def _encoding(tensor: Tensor) -> str:
    found: Any = tensor.quantization
    if found is None:
        return ""
    if isinstance(found, Blockwise):
        return f"blocks of {found.size} along the last axis"
    if found.per_axis:
        return scales_words(found.scale.tolist(), f"axis {found.axis}")
    return f"scale {found.scale[0]:.6g}, zero point {found.zero[0]}"
