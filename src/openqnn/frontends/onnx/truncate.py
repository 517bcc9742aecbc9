"""Ending a model at tensors that the user names, before it is translated."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import onnx

from openqnn.errors import UsageError
from openqnn.frontends.onnx.reader import OnnxModel


def cut_at(model: OnnxModel, names: Sequence[str], *, prune: bool = True) -> OnnxModel:
    """Ends a model at other outputs. With `prune`, what these do not need is left out."""
    made = {o: node for node in model.graph.node for o in node.output if o}
    given = {i.name for i in model.graph.input} | set(model.arrays)
    for name in names:
        if name not in made and name not in given:
            raise _unknown(name, model.graph, [*made, *given])
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    known = {i.name: i for i in (*model.graph.value_info, *model.graph.output, *model.graph.input)}
    del proto.graph.output[:]
    for name in dict.fromkeys(names):
        proto.graph.output.append(known.get(name) or onnx.ValueInfoProto(name=name))
    if prune:
        _prune(proto.graph, names)
    return OnnxModel(proto, model.path, model.arrays)


def _unknown(name: str, graph: onnx.GraphProto, names: list[str]) -> UsageError:
    node = next((n for n in graph.node if n.name == name and n.output), None)
    if node is not None:
        return UsageError(f"'{name}' is a node, not a tensor", hint=f"its result is '{node.output[0]}'")
    near = difflib.get_close_matches(name, names, 3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    return UsageError(f"the model has no tensor '{name}'", hint=hint)


def _prune(graph: onnx.GraphProto, names: Sequence[str]) -> None:
    made = {o: i for i, node in enumerate(graph.node) for o in node.output if o}
    waiting, needed, read = list(names), set[int](), set(names)
    while waiting:
        index = made.get(waiting.pop())
        if index is None or index in needed:
            continue
        needed.add(index)
        inputs = list(read_by(graph.node[index]))
        read.update(inputs)
        waiting += inputs
    nodes = [node for i, node in enumerate(graph.node) if i in needed]
    inputs = [i for i in graph.input if i.name in read]
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(inputs)


def read_by(node: onnx.NodeProto) -> list[str]:
    """What a node reads, also from inside its branches."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            found += [name for inner in body.node for name in read_by(inner)]
            found += [output.name for output in body.output]
    return found
