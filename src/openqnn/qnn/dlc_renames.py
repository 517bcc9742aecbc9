"""What libQnnIr makes of operations when it writes a DLC, and how to undo it.

Found by writing every operation and reading it back (QNN 2.47 and 2.51). Three kinds: operations that come
back under a family name with an `operation` number, Resize that comes back as one of its older forms, and
operations that the library writes wrong or cannot read back, which are written in other words instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from openqnn.errors import BackendError
from openqnn.qnn import abi
from openqnn.qnn.net import BUILTIN_PACKAGE, Net, NetNode, NetScalar, NetTensor

RENAMED: dict[str, tuple[str, int]] = {
    **{f"ElementWise{name}": ("ElementWiseBinary", number) for number, name in enumerate((
        "Add", "And", "Divide", "Equal", "FloorDiv", "Fmod", "Greater", "GreaterEqual", "Less", "LessEqual",
        "Maximum", "Minimum", "Mod", "Multiply", "NotEqual", "Or", "Power", "SquaredDifference", "Subtract",
        "Xor",
    ))},
    **{f"ElementWise{name}": ("ElementWiseUnary", number) for number, name in enumerate((
        "Abs", "Asin", "Atan", "Ceil", "Cos", "Exp", "Floor", "Log", "Neg", "Not", "Reciprocal", "Round",
        "Rsqrt", "Sign", "Sin", "SquareRoot",
    )) if name != "Reciprocal"},
    "Elu": ("ElementWiseNeuron", 0),
    "Gelu": ("ElementWiseNeuron", 1),
    "HardSwish": ("ElementWiseNeuron", 3),
    "Relu": ("ElementWiseNeuron", 4),
    "ReluMinMax": ("ElementWiseNeuron", 5),
    "Sigmoid": ("ElementWiseNeuron", 6),
    "ElementWiseSoftplus": ("ElementWiseNeuron", 7),
    "Tanh": ("ElementWiseNeuron", 8),
}  # fmt: skip
"""Operation: the family that it comes back as, and its number there."""

UNREADABLE: frozenset[str] = frozenset({
    "BboxTransform", "Col2Im", "ConstantOfShape", "Correlation1D", "DeformConv2d", "DepthWiseConv1d",
    "DistributeFpnProposals", "HeatMapMaxKeyPoint", "If", "Im2Col", "NonMaxSuppression", "ReduceSumSquare",
    "Shape",
})  # fmt: skip
"""libQnnIr writes these, and libQnnSystem finds no graph in the file then."""

UNWRITABLE: frozenset[str] = frozenset({"Gru", "Lstm"})
"""libQnnIr ends the whole process: it wants a parameter hidden_size, which the operations do not have."""

# HTP lacks the first two and computes the third wrong, but not their families: strangers keep those.
_WEAKER = ("ElementWiseFmod", "ElementWiseSoftplus", "ElementWiseFloorDiv")
_SINGLE = {family: name for name, family in RENAMED.items() if name not in _WEAKER}
_CLIPS = {"Relu6": (0.0, 6.0), "Relu1": (-1.0, 1.0)}
_RESIZES = ("ResizeBilinear", "ResizeNearestNeighbor")
_RESIZE_EXTRAS = ("align_corners", "antialias", "half_pixel_centers")


def writable(net: Net) -> Net:
    """The graph with other words for the operations that the library would spoil."""
    refused = [node for node in net.nodes if _builtin(node) and node.op in UNREADABLE | UNWRITABLE]
    if refused:
        text = ", ".join(str(node) for node in refused[:5])
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise BackendError(
            f"graph '{net.name}' cannot be written as DLC: {text}{more}",
            hint="Qualcomm's DLC libraries cannot handle these operations; write a context binary instead",
        )
    return replace(net, nodes=tuple(_written(node) for node in net.nodes))


def notes(net: Net) -> dict[str, Any]:
    """What the file cannot say: operations that `restored` would guess wrong, where nodes came from, and the
    order of the outputs."""
    guessed = restored(replace(net, nodes=tuple(_as_read(_written(node)) for node in net.nodes)), {})
    pairs = zip(net.nodes, guessed.nodes, strict=True)
    return {
        "ops": {node.name: node.op for node, guess in pairs if guess.op != node.op},
        "sources": {node.name: node.source for node in net.nodes if node.source},
        "outputs": list(net.outputs),
    }


def restored(net: Net, noted: Mapping[str, Any]) -> Net:
    """The graph with the operations that were written; without notes, with the single ones of each family."""
    ops, sources = noted.get("ops", {}), noted.get("sources", {})
    nodes = [
        replace(_restored(node, ops.get(node.name)), source=sources.get(node.name, "")) for node in net.nodes
    ]
    outputs = noted.get("outputs", [])
    same = len(outputs) == len(net.outputs) and set(outputs) == set(net.outputs)
    return replace(net, nodes=tuple(nodes), outputs=tuple(outputs) if same else net.outputs)


def _written(node: NetNode) -> NetNode:
    if not _builtin(node):
        return node
    if node.op in ("HardSwish", "ElementWiseSoftplus"):  # the first would come back as a hard sigmoid
        return _as_read(node)
    if node.op in _CLIPS:
        low, high = (NetScalar(abi.FLOAT_32, value) for value in _CLIPS[node.op])
        return replace(node, op="ReluMinMax", params=(("max_value", high), ("min_value", low)))
    return node


def _as_read(node: NetNode) -> NetNode:
    """What the library makes of it, without its changes to Resize."""
    if not _builtin(node) or node.op not in RENAMED:
        return node
    family, number = RENAMED[node.op]
    return replace(node, op=family, params=(*node.params, ("operation", NetScalar(abi.UINT_32, number))))


def _restored(node: NetNode, noted: str | None) -> NetNode:
    if not _builtin(node) or noted == node.op:
        return node
    params = dict(node.params)
    if node.op in _RESIZES and "interpolation_mode" in params:
        return replace(node, op="Resize", params=_without(node, _RESIZE_EXTRAS))
    operation = params.get("operation")
    if not isinstance(operation, NetScalar):
        return node
    family = node.op, int(operation.value)
    if noted in _CLIPS and family == RENAMED["ReluMinMax"]:
        return replace(node, op=noted, params=())
    single = noted if noted is not None and RENAMED.get(noted) == family else _SINGLE.get(family)
    return node if single is None else replace(node, op=single, params=_without(node, ("operation",)))


def _without(node: NetNode, names: Iterable[str]) -> tuple[tuple[str, NetScalar | NetTensor], ...]:
    dropped = set(names)
    return tuple((name, value) for name, value in node.params if name not in dropped)


def _builtin(node: NetNode) -> bool:
    return node.package == BUILTIN_PACKAGE
