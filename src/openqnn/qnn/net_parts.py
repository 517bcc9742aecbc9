"""Parts of a graph: any set of its nodes as a graph of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from openqnn.qnn.net import Net, NetTensor, TensorKind


def part_of(net: Net, kept: Collection[int]) -> Net:
    """The nodes with these positions. What they read from others becomes an input, what nobody of them reads
    an output; constants come along."""
    nodes = tuple(node for index, node in enumerate(net.nodes) if index in kept)
    produced = [name for node in nodes for name in node.outputs]
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name is not None)
    made, wanted = set(produced), set(read)
    inputs = tuple(n for n in read if n not in made and net.tensors[n].kind is not TensorKind.STATIC)
    outputs = tuple(name for name in produced if name not in wanted)
    kinds = dict.fromkeys(inputs, TensorKind.APP_WRITE) | dict.fromkeys(outputs, TensorKind.APP_READ)
    tensors = {
        name: _as(net.tensors[name], kinds.get(name, TensorKind.NATIVE)) for name in (*read, *produced)
    }
    return Net(net.name, tensors, inputs, outputs, nodes)


def components(net: Net, kept: Collection[int]) -> list[frozenset[int]]:
    """The connected groups among these nodes, the largest first; shared constants do not connect."""
    group = {index: index for index in kept}

    def root(index: int) -> int:
        while group[index] != index:
            index = group[index]
        return index

    seen: dict[str, int] = {}
    for index in sorted(kept):
        node = net.nodes[index]
        for name in (*node.inputs, *node.outputs):
            if name is None or net.tensors[name].kind is TensorKind.STATIC:
                continue
            first = seen.setdefault(name, index)
            group[root(index)] = root(first)
    found: dict[int, set[int]] = {}
    for index in kept:
        found.setdefault(root(index), set()).add(index)
    return sorted((frozenset(each) for each in found.values()), key=lambda each: (-len(each), min(each)))


def _as(tensor: NetTensor, kind: TensorKind) -> NetTensor:
    return tensor if tensor.kind is TensorKind.STATIC else replace(tensor, kind=kind)
