"""Inputs and outputs: what the application hands over has HTP's types and ranks; ports keep the source's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from openqnn.ir import DType, Encoding, Graph, Node, Shape, Value
from openqnn.ops import Builder
from openqnn.passes.edit import builder_at, supplant, sweep
from openqnn.targets.htp.ranks import merge_views
from openqnn.targets.htp.rules import MOST
from openqnn.targets.htp.types import HALF, INT, SIGNED, UNSIGNED, is_cast

_REAL = {DType.FLOAT_16, DType.FLOAT_32}  # what HTP puts into fixed point and takes out of it
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
    """Gives inputs and outputs the types that they are said to have, where HTP turns these into its own."""
    for value in graph.inputs:
        inner, outer = _Kind(value.dtype, value.encoding), _outside(value, types)
        if outer is not None and not graph.is_output(value):
            value.dtype, value.encoding = outer.dtype, outer.encoding
            _hand_over(graph, value, _read_through(graph, value, inner.made))
    for value in list(graph.outputs):
        outer = _outside(value, types)
        if outer is not None and value.producer is not None:
            b = Builder(graph, value.producer.source)
            b.stem = f"{value.name}.computed"
            made = outer.made(b, value)
            _become_output(graph, value, made)
            _hand_over(graph, made, value)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a tensor holds its numbers."""

    dtype: DType
    encoding: Encoding | None = None

    def made(self, b: Builder, x: Value) -> Value:
        if x.dtype.is_fixed and self.dtype.is_fixed:
            return b.convert(x, self.dtype, self.encoding)
        if self.dtype.is_fixed:
            return b.quantize(x, self.dtype, self.encoding)
        return (b.dequantize if x.dtype.is_fixed else b.cast)(x, self.dtype)


def _outside(value: Value, types: Mapping[str, DType]) -> _Kind | None:
    """What the application is to see instead of a tensor, if HTP has a way from one to the other."""
    wanted, known = types.get(value.name, value.dtype), value.encoding
    if wanted is SIGNED and value.dtype is UNSIGNED and known is not None:
        return _Kind(wanted, replace(known, offset=tuple(o + HALF for o in known.offset)))
    reached = wanted in _REAL if value.dtype.is_fixed else value.dtype is INT and wanted in _CAST
    return _Kind(wanted) if reached else None


def _hand_over(graph: Graph, old: Value, new: Value | None) -> None:
    """Where an encoding came from is told of the tensor that has it now."""
    if new is not None and old.name in graph.provenance:
        graph.provenance[new.name] = graph.provenance.pop(old.name)


def low_rank(shape: Shape) -> Shape:
    return (*shape[: MOST - 1], prod(shape[MOST - 1 :]))


def _flatten_input(graph: Graph, value: Value) -> None:
    full = value.shape
    value.shape = low_rank(full)
    _read_through(graph, value, lambda b, x: b.reshape(x, full))


def _read_through(graph: Graph, value: Value, make: Callable[[Builder, Value], Value]) -> Value | None:
    """All that read an input get what is made of it."""
    users = list(dict.fromkeys(value.users))
    if not users:
        return None
    b = Builder(graph, users[0].source, before=next(n for n in graph.nodes if n in users))
    b.stem = f"{value.name}.taken"
    made = make(b, value)
    for user in users:
        for index, given in enumerate(user.inputs):
            if given is value:
                graph.set_input(user, index, made)
    return made


def _become_output(graph: Graph, old: Value, new: Value) -> None:
    """`new`, computed from `old`, is what the graph gives under the old name."""
    old.name, new.name = new.name, old.name
    graph.outputs = [new if v is old else v for v in graph.outputs]


def _drop_border_cast(graph: Graph, node: Node) -> None:
    """The application converts between float16 and float32: HTP's Cast makes 65536 or NaN of an infinity."""
    if not is_cast(node) or {node.x(0).dtype, node.out.dtype} != _REAL:
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
