"""What HTP asks of encodings: the limits that the quantizer keeps to, beside those of its kernels."""

from __future__ import annotations

from openqnn.ir import Node
from openqnn.targets.htp.kernels.bytes.norms import LACKING
from openqnn.targets.htp.kernels.words.divide import is_share

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
