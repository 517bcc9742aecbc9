"""Tokens that are joined, such as a class token with patches, are computed with apart where that is exact.

In fixed point a join has one encoding: a class token of 0.1 beside patches of thousands is less than a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.targets.htp.rules import Instead, again, rule
from openqnn.targets.htp.shape import is_join

RANK, TOKENS = 3, 1  # of batch, tokens, channels


@rule("LayerNorm")
def norm_of_each(node: Node, b: Builder) -> Instead:
    # Right as it is, but a step of the join can be more than all of a token, whose norm is noise then.
    found = _joined(node.x(0))
    if not found or list(node.ints("axes")) not in ([RANK - 1], [-1]):
        return None
    return b.concat([again(b, node, v, *node.inputs[1:], shape=v.shape) for v in found], TOKENS)


@rule("ElementWiseAdd")
def sum_of_each(node: Node, b: Builder) -> Instead:
    # The same: the residual of two joins of the same tokens.
    first, second = _joined(node.x(0)), _joined(node.x(1))
    if not first or [v.shape for v in first] != [v.shape for v in second]:
        return None
    return b.concat([b.add(x, y) for x, y in zip(first, second, strict=True)], TOKENS)


@rule("StridedSlice")
def one_of_the_joined(node: Node, b: Builder) -> Instead:
    # What was joined and is cut out again never needs to be in the encoding of the join.
    x = node.x(0)
    if node.out.rank != x.rank or not _joined(x):
        return None
    rows = [(*row,) for row in node.rows("ranges")]
    (begin, end, step), others = rows[TOKENS], [rows[0], rows[2]]
    if step != 1 or others != [(0, x.shape[0], 1), (0, x.shape[2], 1)]:
        return None
    return _part(x, begin, end)


@rule("Gather")
def token_of_the_joined(node: Node, b: Builder) -> Instead:
    # The same with the place as an index, as frameworks write x[:, 0].
    places = node.x(1).data
    if places is None or places.shape != (1,) or node.int("axis") != TOKENS:
        return None
    return _part(node.x(0), int(places[0]), int(places[0]) + 1)


def _joined(x: Value) -> Sequence[Value]:
    """What makes up a tensor, where that is floats of several tokens that were joined."""
    node = x.producer
    if node is None or not is_join(node) or x.rank != RANK or node.int("axis") != TOKENS:
        return ()
    return [v for v in node.inputs if v is not None] if x.dtype.is_float else ()


def _part(x: Value, begin: int, end: int) -> Value | None:
    """The one of the joined that lies there."""
    at = 0
    for value in _joined(x):
        if (at, at + value.shape[TOKENS]) == (begin, end):
            return value
        at += value.shape[TOKENS]
    return None
