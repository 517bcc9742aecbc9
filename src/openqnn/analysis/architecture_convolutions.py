"""Ops that become convolutions of the same numbers, on the records of a float graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from openqnn.analysis.architecture_kernels import DEPTHWISE, GATHER, MEAN, SLICE
from openqnn.analysis.architecture_rule import numbers
from openqnn.qnn import abi
from openqnn.qnn.net import Array, NetNode, NetScalar, NetTensor, TensorKind

Tensors: TypeAlias = dict[str, NetTensor]
Changed: TypeAlias = tuple[list[NetNode], str]
FLOATS = (abi.FLOAT_32, abi.FLOAT_16)
MOST_WEIGHTS = 4 << 20
CONVOLUTION = "Conv2d"


def fresh(name: str, tensors: Tensors) -> str:
    """A name that no tensor has yet."""
    while name in tensors:
        name += "_"
    return name


def convolved(node: NetNode, tensors: Tensors) -> Changed:
    """The convolution that gives what a depthwise one of several filters, a slice, gather or mean does."""
    made = {DEPTHWISE: _dense, SLICE: _selected, GATHER: _gathered, MEAN: _averaged}[node.op]
    if tensors[node.outputs[0]].dtype not in FLOATS:
        return [node], "not changed: it is not in floating point: change the float model"
    return made(node, tensors)


def _dense(node: NetNode, tensors: Tensors) -> Changed:
    """Filters with zeros between channels."""
    weights = tensors[node.inputs[1] or ""]
    channels = tensors[node.inputs[0] or ""].dims[-1]
    if weights.kind is not TensorKind.STATIC or weights.data is None:
        return [node], f"not changed: the numbers of '{weights.name}' are not here (give the .bin with --bin)"
    height, width, _, filters = weights.dims
    if height * width * channels * filters > MOST_WEIGHTS:
        return [node], "not changed: the weights would be more than 4 million"
    made = np.zeros((height, width, channels, filters), weights.data.dtype)
    order = np.arange(filters)
    made[:, :, order // (filters // channels), order] = weights.data.reshape(height, width, filters)
    name = fresh(f"{weights.name}_dense", tensors)
    tensors[name] = replace(weights, name=name, dims=made.shape, data=made)
    params = (*node.params, ("group", NetScalar(abi.UINT_32, 1)))
    inputs = (node.inputs[0], name, *node.inputs[2:])
    return [replace(node, op=CONVOLUTION, inputs=inputs, params=params)], f"Conv2d by '{name}'"


def _selected(node: NetNode, tensors: Tensors) -> Changed:
    data = tensors[node.inputs[0] or ""]
    ranges = np.reshape(numbers(node, "ranges"), (-1, 3))
    masks = any(value for name, _ in node.params if name != "ranges" for value in numbers(node, name))
    whole = all(tuple(row) == (0, size, 1) for row, size in zip(ranges[:-1], data.dims, strict=False))
    if masks or not whole or ranges[-1][2] < 1:
        return [node], "not changed: it cuts other axes than the channels, too, or has masks"
    channels = np.arange(data.dims[-1])[slice(*ranges[-1])]
    return _pointwise(node, tensors, np.eye(data.dims[-1])[:, channels])


def _gathered(node: NetNode, tensors: Tensors) -> Changed:
    data, indices = (tensors[name or ""] for name in node.inputs[:2])
    if indices.kind is not TensorKind.STATIC or indices.data is None:
        return [node], f"not changed: '{indices.name}' is not known here"
    if len(indices.dims) != 1:
        return [node], "not changed: its indices have several dimensions"
    return _pointwise(node, tensors, np.eye(data.dims[-1])[:, indices.data.astype(np.int64)])


def _averaged(node: NetNode, tensors: Tensors) -> Changed:
    channels = tensors[node.inputs[0] or ""].dims[-1]
    if numbers(node, "keep_dims") != (1,):
        return [node], "not changed: it does not keep its dimensions"
    return _pointwise(node, tensors, np.full((channels, 1), 1 / channels))


def _pointwise(node: NetNode, tensors: Tensors, weights: Array) -> Changed:
    """A convolution of 1x1 by a matrix."""
    data = tensors[node.inputs[0] or ""]
    if len(data.dims) != 4:
        return [node], "not changed: its input is not an image of four dimensions"
    name = fresh(f"{node.name}_weights", tensors)
    filters = weights[None, None].astype(abi.numpy_dtype(data.dtype))
    tensors[name] = NetTensor(name, TensorKind.STATIC, data.dtype, filters.shape, data=filters)
    made = replace(node, op=CONVOLUTION, inputs=(data.name, name), params=_parameters(node.name, tensors))
    return [made], f"Conv2d of 1x1 by '{name}'"


def _parameters(name: str, tensors: Tensors) -> tuple[tuple[str, NetScalar | NetTensor], ...]:
    given: Sequence[tuple[str, object]] = (
        ("dilation", [1, 1]),
        ("pad_amount", [[0, 0], [0, 0]]),
        ("stride", [1, 1]),
    )
    found: list[tuple[str, NetScalar | NetTensor]] = []
    for param, value in given:
        array = np.asarray(value, np.uint32)
        tensor = fresh(f"{name}_{param}", tensors)
        found.append((param, NetTensor(tensor, TensorKind.STATIC, abi.UINT_32, array.shape, data=array)))
    return (*found, ("group", NetScalar(abi.UINT_32, 1)))
