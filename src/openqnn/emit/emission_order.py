"""The order in which a graph is put together: what model.cpp, model.bin and net.json have in common.

Graph inputs come first, and each static tensor right before the first node that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from openqnn.ir import BUILTIN_PACKAGE
from openqnn.qnn import abi
from openqnn.qnn.net import Array, Net, NetNode, NetScalar, NetTensor, TensorKind, qnn_name


def emission_steps(net: Net) -> Iterator[NetTensor | NetNode]:
    """Tensors that exist by themselves and nodes, in the order in which they are added to the graph."""
    added = set(net.inputs)
    yield from (net.tensors[name] for name in net.inputs)
    for node in net.nodes:
        for index, name in enumerate(node.inputs):
            if name is None:
                yield absent(node, index)
            elif name not in added and net.tensors[name].kind is TensorKind.STATIC:
                added.add(name)
                yield net.tensors[name]
        yield node


def absent(node: NetNode, index: int) -> NetTensor:
    """The placeholder for an optional input that is left out; nodes refer to it by name like to any other."""
    return NetTensor(f"{node.name}_absent_{index}", TensorKind.NULL, abi.UNDEFINED, ())


def input_names(node: NetNode) -> list[str]:
    """The names of a node's inputs, placeholders included."""
    return [absent(node, i).name if name is None else name for i, name in enumerate(node.inputs)]


def statics(net: Net) -> Iterator[NetTensor]:
    """The weights, in emission order."""
    return (s for s in emission_steps(net) if isinstance(s, NetTensor) and s.kind is TensorKind.STATIC)


def unique_params(net: Net) -> Net:
    """Every parameter tensor under a name of its own: records may repeat "stride", a graph takes it once."""
    taken = set(net.tensors)
    return replace(net, nodes=tuple(_unique_params(node, taken) for node in net.nodes))


def _unique_params(node: NetNode, taken: set[str]) -> NetNode:
    params: list[tuple[str, NetScalar | NetTensor]] = []
    for name, value in node.params:
        if isinstance(value, NetTensor):
            stem = f"_{node.name}" if node.name.startswith("_") else node.name
            own = value.name if value.name and value.name not in taken else f"{stem}_{name}"
            value = replace(value, name=_fresh(own, taken))
        params.append((name, value))
    return replace(node, params=tuple(params))


def _fresh(name: str, taken: set[str]) -> str:
    candidate = next(c for n in count(1) if (c := f"{name}_{n}" if n > 1 else name) not in taken)
    taken.add(candidate)
    return candidate


def with_package(net: Net, package: str) -> Net:
    """Every node of QNN's own package in the given one; those of other packages stay what they are."""
    own = (replace(n, package=package) if n.package == BUILTIN_PACKAGE else n for n in net.nodes)
    return replace(net, nodes=tuple(own))


def anonymous(net: Net) -> Net:
    """Tensors named by a counter. Graph inputs and outputs keep their names: applications bind by them."""
    names = {name: name for name in (*net.inputs, *net.outputs)}
    counted = (name for n in count() if (name := f"tensor_{n}") not in names)
    names |= {name: next(counted) for name in net.tensors if name not in names}

    def node(old: NetNode) -> NetNode:
        params = [
            (key, replace(v, name=next(counted)) if isinstance(v, NetTensor) else v) for key, v in old.params
        ]
        inputs = tuple(None if name is None else names[name] for name in old.inputs)
        return replace(
            old, inputs=inputs, outputs=tuple(names[name] for name in old.outputs), params=tuple(params)
        )

    tensors = {names[name]: replace(tensor, name=names[name]) for name, tensor in net.tensors.items()}
    return replace(net, tensors=tensors, nodes=tuple(node(n) for n in net.nodes))


class Identifiers:
    """C names for QNN names: no two the same, for names that differ only in what C does not allow."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        if name not in self._of:
            self._of[name] = _fresh(self._prefix + qnn_name(name), self._taken)
        return self._of[name]


class WeightNames:
    """Which member of model.bin holds a static tensor: `<name>.raw`, shared by graphs that share the data."""

    def __init__(self, nets: Sequence[Net]) -> None:
        self._of: dict[tuple[int, str], str] = {}
        self.weights: dict[str, NetTensor] = {}
        stored: dict[tuple[object, ...], str] = {}
        taken: set[str] = set()
        for index, net in enumerate(nets):
            for tensor in statics(net):
                where = _memory(tensor)
                if where not in stored:
                    stored[where] = self._add(tensor, net, taken)
                self._of[index, tensor.name] = stored[where]

    def of(self, graph: int, tensor: str) -> str:
        """The member's name without `.raw`, for a tensor of the graph with this index."""
        return self._of[graph, tensor]

    def _add(self, tensor: NetTensor, net: Net, taken: set[str]) -> str:
        own = qnn_name(tensor.name)
        name = _fresh(own if own not in taken else f"{qnn_name(net.name)}_{own}", taken)
        self.weights[name] = tensor
        return name


def _memory(tensor: NetTensor) -> tuple[object, ...]:
    """Where the data lies. Looking at addresses, not at values, keeps large weights on disk.

    The name is part of it: in one graph, tensors of different names stay apart even when they share memory.
    """
    data: Array | None = tensor.data
    if data is None:
        return tensor.name, id(tensor)
    return tensor.name, data.__array_interface__["data"][0], data.shape, data.strides, data.dtype.str
