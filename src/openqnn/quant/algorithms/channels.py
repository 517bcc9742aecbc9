"""Channels of layers: how large their weights are, and what happens when a channel is scaled or shifted.

Channels lie along the last axis of a layer's input and output. An input that was flattened before the layer
still holds its channels in turn.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Moves
from openqnn.quant.algorithms.layers import Layer, is_layer
from openqnn.quant.plan import is_real

Vector = NDArray[np.float64]


def is_free_layer(node: Node, given: Container[str]) -> bool:
    """Whether a layer's weight and bias are constants of its own, of which no encoding is known."""
    if not is_layer(node):
        return False
    own = [node.x(1), *([node.x(2)] if node.has(2) else [])]
    return all(is_real(v) and is_own_constant(v, given) for v in own)


def is_own_constant(value: Value, given: Container[str]) -> bool:
    return value.data is not None and len(value.users) == 1 and value.name not in given


def is_view(node: Node, channels: int) -> bool:
    """Whether a node only gives its data another shape, in which the channels still come in turn."""
    shape = node.out.shape
    return schema_of(node).moves is Moves.VIEW and bool(shape) and shape[-1] % channels == 0


def takes_channels(node: Node, channels: int) -> bool:
    """Whether the channels of the data can be told apart in the weight of a layer."""
    layer = Layer(node)
    return node.x(0).shape[-1] == channels or (layer.groups == 1 and layer.inner % channels == 0)


def output_size(node: Node) -> Vector:
    """The largest weight of each output channel."""
    return np.abs(_matrix(node)).max(axis=1).reshape(-1)


def input_size(node: Node, channels: int) -> Vector:
    """The largest weight that each input channel meets."""
    return np.abs(_by_input(node, channels)).max(axis=(1, 3)).reshape(-1)


def scale_output(node: Node, factor: Vector) -> None:
    """Multiplies the output channels."""
    layer, matrix = Layer(node), _matrix(node)
    _store(node.x(1), layer.weight(matrix * factor.reshape(layer.groups, 1, layer.outer)))
    if node.has(2):
        _store(node.x(2), bias_of(node) * factor)


def scale_input(node: Node, factor: Vector) -> None:
    """Multiplies what the layer makes of its input channels."""
    layer, matrix = Layer(node), _by_input(node, len(factor))
    scaled = matrix * factor.reshape(layer.groups, 1, -1, 1)
    _store(node.x(1), layer.weight(scaled.reshape(layer.groups, layer.inner, layer.outer)))


def effect_of(node: Node, shift: Vector) -> Vector:
    """What a constant in each input channel adds to the outputs, where the layer sees no padding."""
    layer = Layer(node)
    parts = _by_input(node, len(shift)) * shift.reshape(layer.groups, 1, -1, 1)
    return parts.sum(axis=(1, 2)).reshape(-1)


def add_to_bias(graph: Graph, node: Node, shift: Vector) -> None:
    """Moves the output channels; a layer without a bias gets one."""
    if node.has(2):
        _store(node.x(2), bias_of(node) + shift)
        return
    weight = node.x(1)
    data = shift.astype(weight.dtype.numpy)
    made = graph.constant(f"{node.name}_bias", data, weight.dtype)
    node.inputs += [None] * (3 - len(node.inputs))
    graph.set_input(node, 2, made)


def bias_of(node: Node) -> Vector:
    return data_of(node.x(2)).astype(np.float64)


def data_of(value: Value) -> Array:
    assert value.data is not None
    return value.data


def _matrix(node: Node) -> Vector:
    return Layer(node).matrix(data_of(node.x(1)).astype(np.float64))


def _by_input(node: Node, channels: int) -> Vector:
    """The weight as [group, tap, input of the group, output of the group]."""
    layer = Layer(node)
    return _matrix(node).reshape(layer.groups, -1, channels // layer.groups, layer.outer)


def _store(value: Value, data: Array) -> None:
    value.data = np.ascontiguousarray(data.astype(value.dtype.numpy))
