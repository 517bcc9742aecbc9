"""Rules about what keeps a network from being fast on HTP: each finds nodes, gives a reason and advice.

Four are those of QNN's architecture checker; the others are ours, and say so by their id. Figures in reasons
are cycles that libQnnHtp's own cost model gives for single ops of 56x56, mostly at 64 channels, on QCS9100.
"""

from __future__ import annotations

from collections.abc import Iterator

from openqnn.analysis.architecture_kernels import KERNEL_RULES
from openqnn.analysis.architecture_rule import VTCM_BYTES, Finding, Inspected, Rule, bytes_of
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetNode, TensorKind

FEW_CHANNELS = 32
LARGE_IMAGE = 128
SHALLOW = 4
LARGE_TRANSPOSE = 64 << 10
CONVOLUTIONS = ("Conv2d", "DepthWiseConv2d", "TransposeConv2d", "Conv3d")
DIVIDE = "ElementWiseDivide"
PRELU = "Prelu"


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


def _boundary_casts(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Cast", "Convert", "Quantize", "Dequantize"):
        ends = node.outputs[0] in seen.net.outputs or node.inputs[0] in seen.net.inputs
        if ends:
            yield node


RULES = (
    Rule(
        "activation16",
        "The model has 16-bit activations, which take twice the memory of 8-bit ones (a convolution of 3x3: "
        "60,784 cycles against 27,115).",
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
        "A division: by a computed tensor it takes 50,674 cycles, at 16 bits 162,483 (an addition "
        "22,782 and 43,989).",
        "Multiply by the reciprocal.",
        lambda seen: seen.named(DIVIDE),
        "a constant divisor becomes its reciprocal, and the node ElementWiseMultiply",
    ),
    Rule(
        "prelu",
        "The checker of QNN names PRelu as an op to replace; libQnnHtp's cost model does not (13,729 cycles, "
        "a Relu 14,874, the change 48,952).",
        "With slopes between 0 and 1 it is the maximum of the input and its product with the slope.",
        lambda seen: seen.named(PRELU),
        "with slopes between 0 and 1 it becomes ElementWiseMultiply and ElementWiseMaximum, in float graphs",
    ),
    Rule(
        "openqnn.float",
        "Layers compute in floating point (a convolution of 3x3: 120,355 cycles, 60,784 with 16-bit "
        "activations, 27,115 with 8).",
        "Quantize the model: `openqnn quantize`.",
        _float_layers,
    ),
    Rule(
        "openqnn.batch",
        "The batch is above 1: an inference takes longer (batch 4: 96,563 cycles, batch 1: 27,115), and "
        "activations as many times the fast memory.",
        "Use batch 1 where each answer is waited for: for the work of many images a batch is no loss.",
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
        "A convolution reads a large image of few channels (224x224x3 by 7x7: 69,119 cycles, 47,682 folded).",
        "Fold space to depth in front: a kernel of stride 2 on 3 channels is one of stride 1 on 12.",
        _shallow_images,
    ),
    Rule(
        "openqnn.vtcm",
        "The weights of a layer are beyond 8 MB, the fast memory of most chips (a vector by 4096x4096: "
        "572,828 cycles).",
        "Use 4-bit weights (291,232 cycles). Splitting it does not help: a quarter takes 146,873.",
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
        "A transpose of 64 KB or more moves every byte and computes nothing (94,362 cycles).",
        "Keep one layout through the network: NHWC is QNN's own.",
        _large_transposes,
    ),
    Rule(
        "openqnn.transpose_pair",
        "Two transposes follow each other (between two Relus 94,313 cycles).",
        "Replace them by one, or none.",
        _transposed_twice,
        "they become one Transpose, or a Reshape where they cancel each other",
    ),
    Rule(
        "openqnn.float_island",
        "A part in floating point lies between parts in fixed point: values are converted on both sides "
        "(a Sigmoid between two convolutions: 151,169 cycles, in fixed point 34,895).",
        "Give the tensors of the part encodings.",
        _float_islands,
    ),
    Rule(
        "openqnn.rank",
        "A tensor has more than four dimensions, for which HTP has few kernels (a Sigmoid: 45,726 cycles, of "
        "four dimensions 14,874).",
        "Join neighbouring axes.",
        _high_ranks,
    ),
    Rule(
        "openqnn.scatter",
        "Indices of several dimensions (GatherNd of half the rows: 83,355 cycles, a slice of them 30,922).",
        "Use masks or slices with constant bounds.",
        _scattered,
    ),
    Rule(
        "openqnn.boundary_cast",
        "A conversion stands at the boundary of the graph (a Dequantize behind two convolutions: 71,296 "
        "cycles, without 34,895).",
        "Give and take the type that the graph computes in.",
        _boundary_casts,
    ),
    *KERNEL_RULES,
)


def inspect_architecture(net: Net) -> list[Finding]:
    """What all rules find, graph first, then in the order of the nodes."""
    seen = Inspected(net)
    order = {node.name: number for number, node in enumerate(net.nodes)}
    found = [finding for rule in RULES for finding in rule.findings(seen)]
    return sorted(found, key=lambda f: -1 if f.node is None else order[f.node.name])
