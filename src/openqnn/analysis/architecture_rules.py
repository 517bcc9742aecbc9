"""Rules about what keeps a network from being fast on HTP: each finds nodes, gives a reason and advice.

Four are those of QNN's architecture checker; the others are ours, and say so by their id. Figures in reasons
are cycles that libQnnHtp's own cost model gives for single ops of 56x56 on QCS9100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetNode, NetTensor, TensorKind

FEW_CHANNELS = 32
VTCM_BYTES = 8 << 20
LARGE_IMAGE = 128
SHALLOW = 4
LARGE_TRANSPOSE = 64 << 10
CONVOLUTIONS = ("Conv2d", "DepthWiseConv2d", "TransposeConv2d", "Conv3d")
DIVIDE = "ElementWiseDivide"
PRELU = "Prelu"


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


def bytes_of(tensor: NetTensor) -> int:
    return prod(tensor.dims) * abi.numpy_dtype(tensor.dtype).itemsize


def _wide_activations(seen: Inspected) -> Iterator[None]:
    if any(tensor.dtype in (abi.UFIXED_16, abi.SFIXED_16) for tensor in seen.activations()):
        yield None


def _float_layers(seen: Inspected) -> Iterator[None]:
    layers = seen.named(*CONVOLUTIONS, "MatMul", "FullyConnected")
    if any(seen.output(node).dtype in (abi.FLOAT_16, abi.FLOAT_32) for node in layers):
        yield None


def _batches(seen: Inspected) -> Iterator[None]:
    tensors = [seen.net.tensors[name] for name in seen.net.inputs]
    if any(len(tensor.dims) == 4 and tensor.dims[0] > 1 for tensor in tensors):
        yield None


def _few_channels(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(*CONVOLUTIONS):
        data = seen.tensor(node, 0)
        if data is not None and min(data.dims[-1], seen.output(node).dims[-1]) < FEW_CHANNELS:
            yield node


def _uneven_channels(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(*CONVOLUTIONS):
        channels = seen.output(node).dims[-1]
        if channels > FEW_CHANNELS and channels % FEW_CHANNELS == 1:
            yield node


def _shallow_images(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Conv2d"):
        data = seen.tensor(node, 0)
        if data is not None and data.dims[-1] <= SHALLOW and min(data.dims[1:3]) >= LARGE_IMAGE:
            yield node


def _beyond_vtcm(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(*CONVOLUTIONS, "MatMul", "FullyConnected"):
        weights = seen.tensor(node, 1)
        if weights is not None and weights.kind is TensorKind.STATIC and bytes_of(weights) > VTCM_BYTES:
            yield node


def _wide_curves(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Sigmoid", "Softmax", "Tanh", "Gelu", "HardSwish"):
        if seen.output(node).dtype in (abi.UFIXED_16, abi.SFIXED_16):
            yield node


def _large_transposes(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Transpose"):
        if bytes_of(seen.output(node)) >= LARGE_TRANSPOSE:
            yield node


def _transposed_twice(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Transpose"):
        before = seen.makers.get(node.inputs[0] or "")
        if before is not None and before.op == "Transpose":
            yield node


def _float_islands(seen: Inspected) -> Iterator[NetNode]:
    """A Dequantize whose floats come back into fixed point further on."""
    for node in seen.named("Dequantize"):
        if node.outputs[0] not in seen.net.outputs:
            yield node


def _high_ranks(seen: Inspected) -> Iterator[NetNode]:
    return (node for node in seen.net.nodes if len(seen.output(node).dims) > 4)


def _scattered(seen: Inspected) -> Iterator[NetNode]:
    return seen.named("GatherNd", "ScatterNd", "ScatterElements", "NonZero")


def _squares(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("ElementWisePower"):
        exponent = seen.tensor(node, 1)
        if exponent is not None and exponent.kind is TensorKind.STATIC and prod(exponent.dims) == 1:
            yield node


def _boundary_casts(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Cast", "Convert"):
        ends = node.outputs[0] in seen.net.outputs or node.inputs[0] in seen.net.inputs
        if ends:
            yield node


def _constant_products(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("MatMul"):
        weights = seen.tensor(node, 1)
        if weights is not None and weights.kind is TensorKind.STATIC and len(weights.dims) == 2:
            yield node


RULES = (
    Rule(
        "activation16",
        "The model has 16-bit activations, which take twice the memory of 8-bit ones.",
        "Use 8 bits where the accuracy allows it: `openqnn quantize --target_sqnr` finds the nodes.",
        _wide_activations,
    ),
    Rule(
        "channels",
        "A convolution has fewer than 32 channels in its input or output.",
        "Use 32 channels or more: HTP works on 32 at a time.",
        _few_channels,
    ),
    Rule(
        "elwisediv",
        "A division is slower than a multiplication (50,674 against 22,782 cycles for an addition).",
        "Multiply by the reciprocal.",
        lambda seen: seen.named(DIVIDE),
        "a constant divisor becomes its reciprocal, and the node ElementWiseMultiply",
    ),
    Rule(
        "prelu",
        "The checker of QNN names PRelu as an op to replace; no figure of it was measured here.",
        "With slopes between 0 and 1 it is the maximum of the input and its product with the slope.",
        lambda seen: seen.named(PRELU),
        "with slopes between 0 and 1 it becomes ElementWiseMultiply and ElementWiseMaximum, in float graphs",
    ),
    Rule(
        "openqnn.float",
        "Layers compute in floating point, which takes HTP 5 to 10 times the cycles of 8 bits.",
        "Quantize the model: `openqnn quantize`.",
        _float_layers,
    ),
    Rule(
        "openqnn.batch",
        "The batch is above 1: activations take as many times the fast memory.",
        "Use batch 1 and run several inferences.",
        _batches,
    ),
    Rule(
        "openqnn.channels_32n1",
        "The channels are one more than a multiple of 32 (33 channels: 17,045 cycles, 32: 16,125).",
        "Remove one channel, or use the next multiple of 32.",
        _uneven_channels,
    ),
    Rule(
        "openqnn.shallow_image",
        "A convolution reads a large image of few channels, most of its lanes empty.",
        "Fold space to depth in front: a kernel of stride 2 on 3 channels is one of stride 1 on 12.",
        _shallow_images,
    ),
    Rule(
        "openqnn.vtcm",
        "The weights of a layer are beyond 8 MB, the fast memory of most chips: they are streamed.",
        "Split the layer, or use 4-bit weights.",
        _beyond_vtcm,
    ),
    Rule(
        "openqnn.wide_curve",
        "An activation function at 16 bits (Sigmoid: 79,277 cycles against 14,874 at 8 bits).",
        "Use 8 bits for this node, or a piecewise linear function such as HardSigmoid.",
        _wide_curves,
    ),
    Rule(
        "openqnn.transpose",
        "A transpose of 64 KB or more moves every byte and computes nothing.",
        "Keep one layout through the network: NHWC is QNN's own.",
        _large_transposes,
    ),
    Rule(
        "openqnn.transpose_pair",
        "Two transposes follow each other.",
        "Replace them by one, or none.",
        _transposed_twice,
    ),
    Rule(
        "openqnn.float_island",
        "A part in floating point lies between parts in fixed point: values are converted on both sides.",
        "Give the tensors of the part encodings.",
        _float_islands,
    ),
    Rule(
        "openqnn.rank",
        "A tensor has more than four dimensions, for which HTP has few kernels.",
        "Join neighbouring axes.",
        _high_ranks,
    ),
    Rule(
        "openqnn.scatter",
        "Indices that are computed at run time defeat tiling.",
        "Use masks or slices with constant bounds.",
        _scattered,
    ),
    Rule(
        "openqnn.power",
        "A power with a constant exponent.",
        "Multiply the value by itself, or take ElementWiseSquareRoot.",
        _squares,
    ),
    Rule(
        "openqnn.boundary_cast",
        "A cast stands at the boundary of the graph.",
        "Give and take the type that the graph computes in.",
        _boundary_casts,
    ),
    Rule(
        "openqnn.constant_matmul",
        "A product with constant weights is a MatMul.",
        "FullyConnected, or a convolution of 1x1, keeps weights in HTP's own order.",
        _constant_products,
    ),
)


def inspect_architecture(net: Net) -> list[Finding]:
    """What all rules find, graph first, then in the order of the nodes."""
    seen = Inspected(net)
    order = {node.name: number for number, node in enumerate(net.nodes)}
    found = [finding for rule in RULES for finding in rule.findings(seen)]
    return sorted(found, key=lambda f: -1 if f.node is None else order[f.node.name])
