"""Which way the weights of an ONNX model lie: what encodings files speak of."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import helper

from openqnn.formats.encodings import Parameter
from openqnn.frontends.onnx.reader import OnnxModel

_WEIGHT = 1  # the input of these ops that is a weight
_BIAS = 2
_OUT_IN = {"Conv": (0, 1), "ConvTranspose": (1, 0), "MatMul": (-1, -2)}


def source_parameters(model: OnnxModel) -> dict[str, Parameter]:
    """The constants outside of subgraphs."""
    constants = {name: array.shape for name, array in model.arrays.items()}
    for node in model.graph.node:
        tensor = next((a.t for a in node.attribute if node.op_type == "Constant" and a.name == "value"), None)
        if tensor is not None:
            constants[node.output[0]] = tuple(tensor.dims)
    axes = {name: found for node in model.graph.node for name, found in _axes(node)}
    return {name: _parameter(shape, axes.get(name)) for name, shape in constants.items()}


def _axes(node: onnx.NodeProto) -> Iterator[tuple[str, tuple[int, int]]]:
    """The axes of output and input channels of a node's weight, and of its bias."""
    if node.op_type == "Gemm":
        turned = any(a.name == "transB" and helper.get_attribute_value(a) for a in node.attribute)
        found = (0, 1) if turned else (1, 0)
    elif node.op_type in _OUT_IN:
        found = _OUT_IN[node.op_type]
    else:
        return
    if len(node.input) > _WEIGHT:
        yield node.input[_WEIGHT], found
    if len(node.input) > _BIAS and node.op_type != "MatMul":
        yield node.input[_BIAS], (0, 0)


def _parameter(shape: tuple[int, ...], axes: tuple[int, int] | None) -> Parameter:
    rank = len(shape)
    if axes is None or rank == 0:
        return Parameter(shape)
    if rank == 1:
        return Parameter(shape, 0)
    return Parameter(shape, axes[0] % rank, axes[1] % rank)
