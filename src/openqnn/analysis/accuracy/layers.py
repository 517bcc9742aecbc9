"""Layers of a graph in fixed point beside those of the one in floats, cut out so that all run at once.

A layer ends in tensors that both graphs have, and begins where it reads others of these. Between them may lie
nodes that only one graph has: conversions, or a result that only a clip behind it reads. Cut out, the layers
of a graph are one graph again, whose inputs are what the layers read: it is compiled once and runs once for
each sample, however many layers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from openqnn.ir import Array, Graph, Node, Port, Value
from openqnn.ops import schema_of
from openqnn.quant.plan import CUT

RESULT = "result of "
GATE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Layer:
    """Nodes that are judged together; the last of them gives the `outputs`. Inputs of the graph have none."""

    outputs: tuple[str, ...]
    op: str
    node: str
    source: str
    fixed: tuple[Node, ...]
    real: tuple[Node, ...]

    @property
    def name(self) -> str:
        return self.outputs[0]

    @property
    def is_input(self) -> bool:
        return not self.fixed


@dataclass(frozen=True, slots=True)
class Pairing:
    """The layers in the order of computation, and the tensors of both graphs by the name that they share.

    `fused` are tensors of the graph in floating point that the other one computes only inside a layer, or not
    at all.
    """

    layers: tuple[Layer, ...]
    real: Mapping[str, Value]
    fixed: Mapping[str, Value]
    fused: tuple[str, ...]


def pair_layers(real: Graph, fixed: Graph) -> Pairing:
    """The layers that two graphs have in common, by the names of what they compute."""
    known = {v.name: v for v in real.values() if not v.is_constant}
    ends = {v.name: v for v in fixed.values() if _is_end(fixed, v, known.get(v.name))}
    orders = [{node: index for index, node in enumerate(graph.nodes)} for graph in (real, fixed)]
    layers = [Layer((v.name,), "input", "", "", (), ()) for v in fixed.inputs if v.name in ends]
    layers += filter(None, (_layer(node, ends, known, *orders) for node in fixed.nodes))
    fused = tuple(name for name in known if name not in ends)
    return Pairing(tuple(layers), {name: known[name] for name in ends}, ends, fused)


def _is_end(fixed: Graph, value: Value, other: Value | None) -> bool:
    """Whether both graphs have a tensor, and what it holds in fixed point is all of it."""
    return (
        not value.is_constant
        and other is not None
        and other.shape == value.shape
        and not is_cut(fixed, value)
    )


def _layer(
    node: Node,
    ends: Mapping[str, Value],
    known: Mapping[str, Value],
    places: Mapping[Node, int],
    order: Mapping[Node, int],
) -> Layer | None:
    """The layer that a node of the graph in fixed point is the last one of."""
    names = tuple(v.name for v in node.outputs if ends.get(v.name) is v)
    if not names:
        return None
    stops = ends.keys() - set(names)
    own = _slice(node.outputs, stops, order)
    other = _slice([known[name] for name in names], stops, places)
    main = _main(own)
    return Layer(names, main.op, main.name, main.source, tuple(own), tuple(other))


def is_cut(graph: Graph, value: Value) -> bool:
    """Whether a tensor's encoding leaves out what readers clip or cannot tell apart: its error is none."""
    if graph.is_output(value) or not value.users or value.encoding is None or value.producer is None:
        return False
    if graph.provenance.get(value.name, "").startswith(CUT):
        return True
    return all(_clips_to(user, value) for user in value.users) or _is_gate(value)


def _is_gate(value: Value) -> bool:
    """Whether a tensor is a gate, from 0 to 1, for what it is computed of: to HTP that is one function."""
    node = value.producer
    if node is None or schema_of(node).output_range != GATE or len(node.inputs) != 1:
        return False
    return all(value in u.inputs and node.inputs[0] in u.inputs for u in value.users)


def _clips_to(user: Node, value: Value) -> bool:
    if user.out.encoding != value.encoding:
        return False
    schema = schema_of(user)
    if schema.clips:
        return True
    following = user.out.users
    return bool(following) and schema.hands_on(user) and all(_clips_to(u, user.out) for u in following)


def _main(nodes: Sequence[Node]) -> Node:
    """The node that does the work of a layer: the one with the most multiply-adds, else the last."""
    costs = [(schema_of(n).macs or (lambda _: 0))(n) for n in nodes]
    return nodes[costs.index(max(costs))] if max(costs) > 0 else nodes[-1]


def _slice(ends: Iterable[Value], stops: Iterable[str], order: Mapping[Node, int]) -> list[Node]:
    """The nodes between some tensors and those where the walk stops, in the order of the graph."""
    barred = set(stops)
    found: set[Node] = set()
    waiting = [v.producer for v in ends]
    while waiting:
        node = waiting.pop()
        if node is None or node in found:
            continue
        found.add(node)
        read = (v for v in node.inputs if v is not None and not v.is_constant and v.name not in barred)
        waiting += [v.producer for v in read]
    return sorted(found, key=lambda n: order[n])


Swap = Callable[[Value], Array | None]


def cut_out(
    name: str, layers: Sequence[Layer], side: str, pairing: Pairing, swap: Swap | None = None
) -> Graph:
    """The layers as one graph: inputs have the names of tensors, outputs these with `RESULT` in front.

    `side` is "real" or "fixed". `swap` may give other numbers for a constant.
    """
    cut = _Cut(name, pairing, swap)
    for layer in layers:
        cut.add(layer, layer.fixed if side == "fixed" else layer.real)
    return cut.made


class _Cut:
    """A graph of layers in the making. What several layers read is one input."""

    def __init__(self, name: str, pairing: Pairing, swap: Swap | None) -> None:
        self.made, self.swap = Graph(name), swap
        self.made.reserve(pairing.fixed)
        self.inputs: dict[str, Value] = {}
        self.constants: dict[Value, Value] = {}

    def add(self, layer: Layer, nodes: Sequence[Node]) -> None:
        local: dict[Value, Value] = {}
        for node in nodes:
            fed = [v and self._read(v, local) for v in node.inputs]
            outs = [self._result(v, layer) for v in node.outputs]
            local |= dict(zip(node.outputs, outs, strict=True))
            name = self.made.unique(node.name)
            self.made.add(Node(node.op, name, fed, outs, dict(node.params), node.source, node.package))
        for value, copy in local.items():
            if value.name in layer.outputs:
                self.made.add_output(copy)

    def _read(self, value: Value, local: Mapping[Value, Value]) -> Value:
        if value.is_constant:
            return self._constant(value)
        return local[value] if value in local else self._input(value)

    def _constant(self, value: Value) -> Value:
        if value not in self.constants:
            data = self.swap(value) if self.swap is not None else None
            data = value.data if data is None else data
            name = self.made.unique(value.name)
            self.constants[value] = Value(name, value.dtype, value.shape, value.encoding, data)
        return self.constants[value]

    def _input(self, value: Value) -> Value:
        if value.name not in self.inputs:
            copy = Value(value.name, value.dtype, value.shape, value.encoding)
            self.inputs[value.name] = copy
            self.made.inputs.append(copy)
            self.made.ports[copy.name] = Port(copy.dtype, copy.shape)
        return self.inputs[value.name]

    def _result(self, value: Value, layer: Layer) -> Value:
        name = f"{RESULT}{value.name}" if value.name in layer.outputs else f"{value.name} inside"
        return Value(self.made.unique(name), value.dtype, value.shape, value.encoding)
