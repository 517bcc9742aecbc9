"""Inputs and outputs: what the application hands over has HTP's types and ranks; ports keep the source's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from openqnn.ir import DType, Graph, Node, Shape, Value
from openqnn.ops import Builder
from openqnn.passes.edit import builder_at, supplant, sweep
from openqnn.passes.htp.ranks import merge_views
from openqnn.passes.htp.rules import MOST
from openqnn.passes.htp.types import INT, is_cast

_HALF_AND_SINGLE = {DType.FLOAT_16, DType.FLOAT_32}
_CAST = {DType.INT_64, DType.UINT_8, DType.UINT_32}  # what HTP casts to int32 and back


def fit_border(graph: Graph) -> None:
    """Ranks above five, half-precision casts and inputs that nobody reads, at the inputs and outputs."""
    for value in graph.inputs:
        if value.rank > MOST:
            _flatten_input(graph, value)
    for value in list(graph.outputs):
        if value.rank > MOST and value.producer is not None:
            b = Builder(graph, value.producer.source)
            b.stem = f"{value.name}.flat"
            flat = b.reshape(value, low_rank(value.shape))
            _become_output(graph, value, flat)
    merge_views(graph)
    for node in list(graph.nodes):
        _drop_border_cast(graph, node)
    # HTP forgets an input that no node reads, and then refuses to be given it.
    graph.inputs = [v for v in graph.inputs if v.users or graph.is_output(v)]


def keep_types(graph: Graph, types: Mapping[str, DType]) -> None:
    """Gives inputs and outputs the types that they are said to have, where HTP casts these to its own."""
    for value in graph.inputs:
        if types[value.name] in _CAST and value.dtype is INT and not graph.is_output(value):
            value.dtype = types[value.name]
            _read_through(graph, value, lambda b, x: b.cast(x, INT))
    for value in list(graph.outputs):
        if types[value.name] in _CAST and value.dtype is INT and value.producer is not None:
            b = Builder(graph, value.producer.source)
            b.stem = f"{value.name}.computed"
            _become_output(graph, value, b.cast(value, types[value.name]))


def low_rank(shape: Shape) -> Shape:
    return (*shape[: MOST - 1], prod(shape[MOST - 1 :]))


def _flatten_input(graph: Graph, value: Value) -> None:
    full = value.shape
    value.shape = low_rank(full)
    _read_through(graph, value, lambda b, x: b.reshape(x, full))


def _read_through(graph: Graph, value: Value, make: Callable[[Builder, Value], Value]) -> None:
    """All that read an input get what is made of it."""
    users = list(dict.fromkeys(value.users))
    if not users:
        return
    b = Builder(graph, users[0].source, before=next(n for n in graph.nodes if n in users))
    b.stem = f"{value.name}.taken"
    made = make(b, value)
    for user in users:
        for index, given in enumerate(user.inputs):
            if given is value:
                graph.set_input(user, index, made)


def _become_output(graph: Graph, old: Value, new: Value) -> None:
    """`new`, computed from `old`, is what the graph gives under the old name."""
    old.name, new.name = new.name, old.name
    graph.outputs = [new if v is old else v for v in graph.outputs]


def _drop_border_cast(graph: Graph, node: Node) -> None:
    """The application converts between float16 and float32: HTP's Cast makes 65536 or NaN of an infinity."""
    if not is_cast(node) or {node.x(0).dtype, node.out.dtype} != _HALF_AND_SINGLE:
        return
    x, out = node.x(0), node.out
    if graph.is_output(out) and not out.users and x.producer is not None and not graph.is_output(x):
        supplant(graph, out, x)
    elif any(x is v for v in graph.inputs) and set(x.users) == {node}:
        if graph.is_output(out):  # a lone cast: a copy is left
            copy = builder_at(graph, node).reshape(x, x.shape)
            supplant(graph, out, copy)
            x.dtype = copy.dtype = DType.FLOAT_16
            return
        x.dtype = out.dtype
        graph.replace_uses(out, x)
        sweep(graph, [node])
