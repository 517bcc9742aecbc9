"""Factors and terms per channel behind a convolution or a fully connected layer move into its weights.

Reshapes between them that leave the channels alone stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.ir import Array, Graph, Node, Value
from openqnn.ir.mapped_pages import release_pages
from openqnn.ops import schema_of
from openqnn.ops.layout import is_reshape
from openqnn.ops.schema import Role
from openqnn.passes.edit import alive, data_of, is_quantized, private, supplant, vector_along
from openqnn.passes.explain import Explain
from openqnn.passes.patterns.terms import add, div, mul, sub
from openqnn.passes.rewrite import Any, Const, Match, Term, find, op

NAME = "fold_affine"
LAYER_OPERANDS = (Role.ACTIVATION, Role.WEIGHT, Role.BIAS)


@dataclass(frozen=True, slots=True)
class Affine:
    """y = x * factor + term, with one number per channel of the last axis; None where there is none."""

    data: Value
    factor: Array | None
    term: Array | None


def _vector(m: Match) -> Array | None:
    """The constant beside the data, as one number per channel."""
    x = m["x"]
    fits = x.rank and x.data is None and x.shape == m.root.out.shape and m["c"].dtype is x.dtype
    return vector_along(m["c"], x.shape, x.rank - 1) if fits else None


def _batchnorm(m: Match) -> Affine:
    return Affine(m["x"], data_of(m["c"]), data_of(m["term"]) if "term" in m.values else None)


def _product(m: Match) -> Affine | None:
    vector = _vector(m)
    return Affine(m["x"], vector, None) if vector is not None else None


def _quotient(m: Match) -> Affine | None:
    vector = _vector(m)
    return Affine(m["x"], 1 / vector, None) if vector is not None and np.all(vector) else None


def _sum(m: Match) -> Affine | None:
    vector = _vector(m)
    return Affine(m["x"], None, vector) if vector is not None else None


def _difference(m: Match) -> Affine | None:
    vector = _vector(m)
    return Affine(m["x"], None, -vector) if vector is not None else None


_X, _C = Any("x"), Const("c")
_BATCHNORM = op("Batchnorm", _X, _C) | op("Batchnorm", _X, _C, Const("term"))
TABLE: tuple[tuple[Term, Callable[[Match], Affine | None]], ...] = (
    (_BATCHNORM, _batchnorm),
    (mul(_X, _C), _product),
    (div(_X, _C), _quotient),
    (add(_X, _C), _sum),
    (sub(_X, _C), _difference),
)


def _affine(node: Node) -> Affine | None:
    for term, make in TABLE:
        m = find(term, node.out)
        if m is not None:
            return make(m)
    return None


def is_layer(node: Node) -> bool:
    """Whether a node ends in a product and a sum per channel of the last axis: its operands say so.

    Convolutions name the axis of their weights that counts output channels. Norms have a plain vector, which
    must lie along the last axis.
    """
    declared = schema_of(node).inputs
    if tuple(i.role for i in declared) != LAYER_OPERANDS:
        return False
    return declared[1].channel_axis is not None or node.params.get("axes", _last(node)) == _last(node)


def _last(node: Node) -> tuple[int]:
    return (node.out.rank - 1,)


def fold_affine(graph: Graph, log: Explain) -> int:
    changes = 0
    for node in list(graph.nodes):
        found = _affine(node) if alive(node) and node.out.dtype.is_float else None
        between = _reshapes(found.data) if found is not None else []
        layer = between[-1].x(0).producer if between else found.data.producer if found is not None else None
        if found is None or layer is None or not is_layer(layer):
            continue
        reason = _refusal(graph, layer, node, found, between)
        if reason:
            log.decline(NAME, node, reason)
            continue
        _fold(graph, layer, node, found, between)
        log.apply(NAME, node, f"into {layer.where}")
        changes += 1
    return changes


def _reshapes(value: Value) -> list[Node]:
    """The reshapes that a tensor comes from which leave its last axis alone, the last one first."""
    found: list[Node] = []
    node = value.producer
    while node is not None and is_reshape(node) and node.x(0).shape[-1:] == node.out.shape[-1:]:
        found.append(node)
        node = node.x(0).producer
    return found


def _refusal(graph: Graph, layer: Node, node: Node, affine: Affine, between: Sequence[Node] = ()) -> str:
    if is_quantized(*layer.inputs, layer.out, node.out):
        return "a value is quantized: the rewrite would change its numbers"
    if affine.factor is not None and layer.has(1) and not layer.x(1).is_constant:
        return f"the weights of {layer.where} are computed at run time"
    if layer.has(2) and not layer.x(2).is_constant:
        return f"the bias of {layer.where} is computed at run time"
    if layer.out.shape[-1] != node.out.shape[-1]:
        return "it widens the channels"
    users = [node, *between]
    values = [affine.data, *(n.x(0) for n in between)]
    return next(filter(None, (private(graph, v, users) for v in values)), "")


def _fold(graph: Graph, layer: Node, node: Node, affine: Affine, between: Sequence[Node]) -> None:
    """The layer takes over the node's result, with its name."""
    channels, dtype = layer.out.shape[-1], layer.out.dtype.numpy
    layer.inputs += [None] * (3 - len(layer.inputs))
    bias = data_of(layer.x(2)).astype(np.float64) if layer.has(2) else np.zeros(channels)
    if affine.factor is not None:
        _set(graph, layer, 1, _scaled(layer, affine.factor.astype(dtype)), f"{node.out.name}.scale")
        bias = bias * affine.factor
    if affine.term is not None:
        bias = bias + affine.term
    if layer.has(2) or np.any(bias):
        _set(graph, layer, 2, bias.astype(dtype), f"{node.out.name}.bias")
    while layer.inputs[-1] is None:
        layer.inputs.pop()
    layer.source = node.source or layer.source
    supplant(graph, node.out, affine.data if between else layer.out)


def _scaled(layer: Node, factor: Array) -> Array:
    """Weights times one number per output channel."""
    axis = schema_of(layer).inputs[1].channel_axis
    if axis is None:
        return data_of(layer.x(1)) * factor if layer.has(1) else np.ascontiguousarray(factor)
    weight = data_of(layer.x(1))
    if weight.shape[axis] == len(factor):
        return weight * factor.reshape([-1 if i == axis else 1 for i in range(weight.ndim)])
    # A transposed convolution in groups: input channels of a group meet only the outputs of that group.
    group = len(factor) // weight.shape[axis]
    per_input = np.repeat(factor.reshape(group, -1), weight.shape[axis - 1] // group, axis=0)
    return weight * per_input


def _set(graph: Graph, layer: Node, index: int, data: Array, name: str) -> None:
    """A changed constant; it keeps its name when nobody else reads the old one, which is let go."""
    old = layer.inputs[index]
    if old is not None:
        name = old.name if len(old.users) == 1 else graph.unique(old.name)
        new = Value(name, old.dtype, old.shape, None, data)
        release_pages(data_of(old))
    else:
        new = graph.constant(name, data, layer.out.dtype)
    graph.set_input(layer, index, new)
