"""What a rule of an architecture is, what it finds, and how it looks at a graph's records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetNode, NetTensor

VTCM_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule applies to a node, or to the whole graph where `node` is None."""

    rule: str
    node: NetNode | None
    issue: str
    advice: str


class Inspected:
    """A graph with what rules ask of it."""

    def __init__(self, net: Net) -> None:
        self.net = net

    @cached_property
    def makers(self) -> dict[str, NetNode]:
        return {name: node for node in self.net.nodes for name in node.outputs}

    @cached_property
    def readers(self) -> dict[str, list[NetNode]]:
        found: dict[str, list[NetNode]] = {}
        for node in self.net.nodes:
            for name in node.inputs:
                if name is not None:
                    found.setdefault(name, []).append(node)
        return found

    def tensor(self, node: NetNode, index: int) -> NetTensor | None:
        name = node.inputs[index] if index < len(node.inputs) else None
        return None if name is None else self.net.tensors[name]

    def output(self, node: NetNode) -> NetTensor:
        return self.net.tensors[node.outputs[0]]

    def activations(self) -> Iterator[NetTensor]:
        for node in self.net.nodes:
            yield self.output(node)

    def is_wide(self, node: NetNode) -> bool:
        """Whether a node's result has 16 bits in fixed point."""
        return self.output(node).dtype in (abi.UFIXED_16, abi.SFIXED_16)

    def named(self, *ops: str) -> Iterator[NetNode]:
        return (node for node in self.net.nodes if node.op in ops)


@dataclass(frozen=True, slots=True)
class Rule:
    """`find` gives the nodes, or None for the graph. `modification` says what can be changed, if anything."""

    id: str
    issue: str
    advice: str
    find: Callable[[Inspected], Iterator[NetNode | None]]
    modification: str = ""

    def findings(self, seen: Inspected) -> Iterator[Finding]:
        for node in self.find(seen):
            yield Finding(self.id, node, self.issue, self.advice)


def numbers(node: NetNode, name: str) -> tuple[int, ...]:
    """A parameter as whole numbers; nothing where it is left out."""
    value = dict(node.params).get(name)
    if isinstance(value, NetTensor):
        return () if value.data is None else tuple(int(n) for n in np.ravel(value.data))
    return () if value is None else (int(value.value),)


def bytes_of(tensor: NetTensor) -> int:
    return prod(tensor.dims) * abi.numpy_dtype(tensor.dtype).itemsize
