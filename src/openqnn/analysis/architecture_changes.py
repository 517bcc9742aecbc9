"""Changes that architecture rules propose, made on the records of a graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openqnn.analysis.architecture_rules import DIVIDE, PRELU
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetNode, NetTensor, TensorKind

FLOATS = (abi.FLOAT_32, abi.FLOAT_16)


def change_architecture(net: Net, rules: set[str]) -> tuple[Net, dict[str, str]]:
    """The graph with the changes of some rules, and by node what was done or why it was not."""
    changers = {"elwisediv": _multiplied, "prelu": _maximum}
    tensors = dict(net.tensors)
    nodes: list[NetNode] = []
    done: dict[str, str] = {}
    for node in net.nodes:
        rule = {DIVIDE: "elwisediv", PRELU: "prelu"}.get(node.op, "")
        if rule in rules:
            made, said = changers[rule](node, tensors)
            nodes += made
            done[node.name] = said
        else:
            nodes.append(node)
    return replace(net, tensors=tensors, nodes=tuple(nodes)), done


def _constant(node: NetNode, index: int, tensors: dict[str, NetTensor]) -> tuple[NetTensor | None, str]:
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


def _added(tensor: NetTensor, name: str, data: np.ndarray, tensors: dict[str, NetTensor]) -> str:
    while name in tensors:
        name += "_"
    tensors[name] = replace(tensor, name=name, data=data.astype(abi.numpy_dtype(tensor.dtype)))
    return name


def _multiplied(node: NetNode, tensors: dict[str, NetTensor]) -> tuple[list[NetNode], str]:
    divisor, why = _constant(node, 1, tensors)
    if divisor is None or divisor.data is None:
        return [node], why
    if not divisor.data.all():
        return [node], f"not changed: '{divisor.name}' holds zeros"
    reciprocal = _added(divisor, f"{divisor.name}_reciprocal", 1.0 / divisor.data.astype(np.float64), tensors)
    made = replace(node, op="ElementWiseMultiply", inputs=(node.inputs[0], reciprocal))
    return [made], f"ElementWiseMultiply by '{reciprocal}'"


def _maximum(node: NetNode, tensors: dict[str, NetTensor]) -> tuple[list[NetNode], str]:
    slopes, why = _constant(node, 1, tensors)
    if slopes is None or slopes.data is None:
        return [node], why
    if slopes.data.min() < 0 or slopes.data.max() > 1:
        return [node], "not changed: slopes are not all between 0 and 1"
    result = tensors[node.outputs[0]]
    product = f"{node.outputs[0]}_slope"
    while product in tensors:
        product += "_"
    tensors[product] = replace(result, name=product, kind=TensorKind.NATIVE)
    first = NetNode(
        f"{node.name}_slope", node.package, "ElementWiseMultiply", (node.inputs[0], slopes.name), (product,)
    )
    last = NetNode(node.name, node.package, "ElementWiseMaximum", (node.inputs[0], product), node.outputs)
    return [first, last], "ElementWiseMultiply and ElementWiseMaximum"
