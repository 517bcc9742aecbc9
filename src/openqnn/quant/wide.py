"""Nodes that compute in 16 bits though activations have 8: where it costs next to nothing, or 8 are too few.

Small nodes, such as the gates of channels, the state of a recurrent layer and the last layers of a
classifier, are a fraction of a percent of a network's work, and what they lose all that follows loses. The
square of a number of 8 bits has 16: between a square and the root of it, and before a logarithm, 8 bits leave
nothing of small numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from openqnn.ir import Given, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.quant.bounds import ADD, MULTIPLY, SUBTRACT
from openqnn.quant.plan import carries, is_real, operands
from openqnn.quant.recipe import Recipe

WIDTH = 16
SMALL = 256  # times as large as what a small node makes is the largest tensor
READ = 16  # the same for what it reads, which may have to be converted
SMALL_REASON, SQUARE_REASON = "16 bits: small", "16 bits: squares, roots and logarithms"
ROOTS = ("ElementWiseSquareRoot", "ElementWiseRsqrt")
LOGARITHM, POWER = "ElementWiseLog", "ElementWisePower"
LINEAR = (
    ADD, SUBTRACT, MULTIPLY, "ElementWiseDivide", "ElementWiseMaximum", "ElementWiseMinimum", "ReduceMean",
    "ReduceSum",
)  # fmt: skip


def wide_nodes(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> dict[str, str]:
    """The names of such nodes, and why. Those of which somebody said something are left alone."""
    if not recipe.wide or recipe.act_bw >= WIDTH:
        return {}
    found = dict.fromkeys(_squares(graph), SQUARE_REASON) | dict.fromkeys(_small(graph), SMALL_REASON)
    return {
        node.name: reason
        for node, reason in found.items()
        if node.name not in recipe.widths and not any(v.name in given for v in _tensors(node))
    }


def _tensors(node: Node) -> list[Value]:
    return [*(v for v in node.inputs if v is not None), *node.outputs]


def _computes(node: Node) -> bool:
    """Whether a node makes real numbers of its own: what only moves them has the width of what it moves."""
    return all(is_real(v) for v in node.outputs) and not carries(node) and not schema_of(node).on_stored


def _small(graph: Graph) -> Iterable[Node]:
    made = [v for node in graph.nodes for v in node.outputs]
    largest = max((v.size for v in (*graph.inputs, *made)), default=0)
    return [n for n in graph.nodes if _computes(n) and _is_small(n, largest)]


def _is_small(node: Node, largest: int) -> bool:
    read = [v for _, v, _ in operands(node) if not v.is_constant]
    made = sum(v.size for v in node.outputs)
    return made * SMALL <= largest and sum(v.size for v in read) * READ <= largest


def _squares(graph: Graph) -> Collection[Node]:
    """Roots of squares and logarithms, with all that is between: sums, means and constant factors."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op in ROOTS or node.op == LOGARITHM:
            before = _before(node)
            if node.op == LOGARITHM or any(_is_square(n) for n in before):
                found |= dict.fromkeys(n for n in (node, *before) if _computes(n))
    return found


def _before(node: Node) -> list[Node]:
    """What a root is taken of, back to squares and to what is no sum."""
    found: dict[Node, None] = {}
    waiting = [v for _, v, _ in operands(node)]
    while waiting:
        above = waiting.pop().producer
        if above is None or above in found or not _is_between(above):
            continue
        found[above] = None
        if not _is_square(above):
            waiting += [v for _, v, _ in operands(above)]
    return list(found)


def _is_between(node: Node) -> bool:
    if _is_square(node) or carries(node) or schema_of(node).clips or node.op in ROOTS:
        return True
    if node.op not in LINEAR:
        return False
    return node.op != MULTIPLY or any(v.is_constant for _, v, _ in operands(node))


def _is_square(node: Node) -> bool:
    if node.op == MULTIPLY:
        return node.x(0) is node.x(1)
    data = node.x(1).data if node.op == POWER else None
    return data is not None and data.size == 1 and float(data.reshape(-1)[0]) == 2.0
