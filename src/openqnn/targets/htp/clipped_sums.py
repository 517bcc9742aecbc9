"""Sums that HTP joins with what their operands are made by, though a clip stands between.

In fixed point a clip right behind what computes is left to the ends of its encoding, and is no op any more.
What is then a sum of products, or of differences, HTP computes as one op, to no ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from openqnn.ir import Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.layout import is_reshape
from openqnn.passes.patterns import terms
from openqnn.passes.rewrite import Any, Match, Number, find

_X: Final = Any("x")
_SUM: Final = terms.add(Any("a"), Any("b"))
_MULTIPLE: Final = terms.mul(_X, Number(name="factor"))
_DIFFERENCE: Final = terms.sub(_X, Any("less"))


def keep_clips(graph: Graph) -> None:
    """Brings such sums into forms that HTP does not join."""
    for node in graph.nodes:
        if find(_SUM, node.out) is not None:
            _separate_multiples(graph, node)
            _put_last(graph, node)


def _separate_multiples(graph: Graph, node: Node) -> None:
    """HTP adds two tensors times a number each in one op. Times a number for each channel it does not."""
    sources = [unclipped(v) for v in (node.x(0), node.x(1))]
    multiples = [find(_MULTIPLE, made) for made, _ in sources]
    for found, (_, clipped) in zip(multiples, sources, strict=True):
        if clipped and all(multiples) and found is not None:
            _spread(graph, found)
            return


def _spread(graph: Graph, multiple: Match) -> None:
    node, factor = multiple.root, multiple["factor"]
    if factor.data is None:
        return
    shape = [1] * node.out.rank
    axis = next((i for i in reversed(range(node.out.rank)) if node.out.shape[i] > 1), -1)
    shape[axis] = node.out.shape[axis]
    each = np.full(shape, factor.data.reshape(()))
    index = next(i for i, v in enumerate(node.inputs) if v is factor)
    graph.set_input(node, index, graph.constant(factor.name, each, factor.dtype))


def _put_last(graph: Graph, node: Node) -> None:
    """HTP makes x of (x - y) + y, and of max(x - y, 0) + y, too, but not with y first."""
    first, second = node.x(0), node.x(1)
    made, clipped = unclipped(first)
    found = find(_DIFFERENCE, made)
    if found is not None and clipped and found["less"] is second:
        graph.set_input(node, 0, second)
        graph.set_input(node, 1, first)


def unclipped(value: Value) -> tuple[Value, bool]:
    """What a tensor was before it was clipped and reshaped, and whether it was clipped."""
    clipped = False
    while (node := value.producer) is not None and (schema_of(node).clips or is_reshape(node)):
        clipped |= schema_of(node).clips
        value = node.x(0)
    return value, clipped
