"""Changes that architecture rules propose, made on the records of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from openqnn.analysis.architecture_convolutions import FLOATS, Changed, Tensors, convolved, fresh
from openqnn.analysis.architecture_rule import numbers
from openqnn.analysis.architecture_rules import inspect_architecture
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetNode, NetTensor, TensorKind

TRANSPOSE_PAIR = "openqnn.transpose_pair"


def change_architecture(net: Net, rules: set[str]) -> tuple[Net, dict[str, str]]:
    """The graph with the changes of some rules, and by node what was done or why it was not."""
    wanted = rules & {*CHANGERS, TRANSPOSE_PAIR}
    found = {f.node.name: f.rule for f in inspect_architecture(net) if f.node and f.rule in wanted}
    tensors = dict(net.tensors)
    nodes: list[NetNode] = []
    done: dict[str, str] = {}
    for node in net.nodes:
        rule = found.get(node.name)
        if rule is None:
            nodes.append(node)
        elif rule == TRANSPOSE_PAIR:
            nodes.append(_merged(node, {name: each for each in nodes for name in each.outputs}, tensors))
            done[node.name] = f"one {nodes[-1].op}"
        else:
            made, done[node.name] = CHANGERS[rule](node, tensors)
            nodes += made
    return _without_unread(replace(net, tensors=tensors, nodes=tuple(nodes))), done


def _merged(node: NetNode, makers: Mapping[str, NetNode], tensors: Tensors) -> NetNode:
    """One transpose for two; a reshape, which moves nothing, where they cancel each other."""
    before = makers[node.inputs[0] or ""]
    first, then = numbers(before, "perm"), numbers(node, "perm")
    if not first or not then:  # the one before was merged with that before it
        return node
    perm = [first[axis] for axis in then]
    if perm == sorted(perm):
        return replace(node, op="Reshape", inputs=before.inputs, params=())
    data = np.asarray(perm, np.uint32)
    name = fresh(f"{node.name}_perm", tensors)
    tensor = NetTensor(name, TensorKind.STATIC, abi.UINT_32, data.shape, data=data)
    return replace(node, inputs=before.inputs, params=(("perm", tensor),))


def _without_unread(net: Net) -> Net:
    """The graph without transposes whose result nothing reads any more, and without tensors of no node."""
    read = {*net.outputs, *(name for node in net.nodes for name in node.inputs)}
    nodes = tuple(node for node in net.nodes if node.outputs[0] in read or not numbers(node, "perm"))
    if len(nodes) < len(net.nodes):
        return _without_unread(replace(net, nodes=nodes))
    used = {*net.inputs, *net.outputs, *(n for node in nodes for n in (*node.inputs, *node.outputs))}
    return replace(net, tensors={name: each for name, each in net.tensors.items() if name in used})


def _constant(node: NetNode, index: int, tensors: Tensors) -> tuple[NetTensor | None, str]:
    """A static float operand with its data, or why it cannot be had."""
    tensor = tensors[node.inputs[index] or ""]
    if tensor.kind is not TensorKind.STATIC:
        return None, f"not changed: '{tensor.name}' is computed at run time"
    if tensor.data is None:
        return None, f"not changed: the numbers of '{tensor.name}' are in the .bin file (give it with --bin)"
    if tensor.dtype not in FLOATS:
        return (
            None,
            f"not changed: '{tensor.name}' is in fixed point: change the float model",
        )
    return tensor, ""


def _added(tensor: NetTensor, name: str, data: np.ndarray, tensors: Tensors) -> str:
    name = fresh(name, tensors)
    tensors[name] = replace(tensor, name=name, data=data.astype(abi.numpy_dtype(tensor.dtype)))
    return name


def _multiplied(node: NetNode, tensors: Tensors) -> Changed:
    divisor, why = _constant(node, 1, tensors)
    if divisor is None or divisor.data is None:
        return [node], why
    if not divisor.data.all():
        return [node], f"not changed: '{divisor.name}' holds zeros"
    reciprocal = _added(divisor, f"{divisor.name}_reciprocal", 1.0 / divisor.data.astype(np.float64), tensors)
    made = replace(node, op="ElementWiseMultiply", inputs=(node.inputs[0], reciprocal))
    return [made], f"ElementWiseMultiply by '{reciprocal}'"


def _maximum(node: NetNode, tensors: Tensors) -> Changed:
    slopes, why = _constant(node, 1, tensors)
    if slopes is None or slopes.data is None:
        return [node], why
    if slopes.data.min() < 0 or slopes.data.max() > 1:
        return [node], "not changed: slopes are not all between 0 and 1"
    result = tensors[node.outputs[0]]
    product = fresh(f"{node.outputs[0]}_slope", tensors)
    tensors[product] = replace(result, name=product, kind=TensorKind.NATIVE)
    first = NetNode(
        f"{node.name}_slope", node.package, "ElementWiseMultiply", (node.inputs[0], slopes.name), (product,)
    )
    last = NetNode(node.name, node.package, "ElementWiseMaximum", (node.inputs[0], product), node.outputs)
    return [first, last], "ElementWiseMultiply and ElementWiseMaximum"


CHANGERS: Final[dict[str, Callable[[NetNode, Tensors], Changed]]] = {
    "elwisediv": _multiplied,
    "prelu": _maximum,
    "openqnn.depth_multiplier": convolved,
    "openqnn.strided_slice": convolved,
    "openqnn.gather_channels": convolved,
    "openqnn.channel_mean": convolved,
}
