"""Graphs for Qualcomm's HTP: what it does not take, or computes wrongly, is said in another way.

`legalise_htp(graph)` gives the graph to compile. The rules stand in one module per family; a new one is a
function with `@rule(op)`, a comment on what the library does, and a case in tests/htp. All that is said of an
op stands in one of them.
"""

from openqnn.targets.htp import (
    elementwise,
    gather,
    half_range,
    image,
    joined_tokens,
    matmul,
    norm,
    qdq_pairs,
    reduce,
    rnn,
    shape,
)  # registers the rules
from openqnn.targets.htp.legalise import convolve_blocks, legalise_htp
from openqnn.targets.htp.rules import RULES, Refusal

__all__ = [
    "RULES",
    "Refusal",
    "convolve_blocks",
    "elementwise",
    "gather",
    "half_range",
    "image",
    "joined_tokens",
    "legalise_htp",
    "matmul",
    "norm",
    "qdq_pairs",
    "reduce",
    "rnn",
    "shape",
]
