"""Nodes that are wider than activations: where that costs next to nothing, or their width is too little.

Small nodes, such as the gates of channels, the state of a recurrent layer and the last layers of a
classifier, are a fraction of a percent of a network's work, and what they lose all that follows loses. The
square of a number of 8 bits has 16: between a square and the root of it, and before a logarithm, 8 bits leave
nothing of small numbers. And 16 leave nothing of a spectrum in decibels, where the quietest tone counts as
much as the loudest: from the filters of it to the logarithm numbers are floating, and the filters have 16.
Of an angle of many turns 8 bits leave nothing of a part of one, which its sine is of. An output
that joins scores with boxes leaves nothing of the scores where it has steps of a pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from openqnn.ir import Given, Graph, Node, Value
from openqnn.ops import Kind, kind_of, schema_of
from openqnn.passes.boundary.split_joins import is_bounded
from openqnn.quant.plan import carries, is_real, is_weight, operands
from openqnn.quant.recipe import FLOAT, Recipe
from openqnn.targets.htp.kernels.words.products import goes_astray

WIDTH = 16
SMALL = 256  # times as large as what a small node makes is the largest tensor
READ = 16  # the same for what it reads, which may have to be converted
LOG_SPAN = 4.05  # 65535 steps of 2^-14, and a little more
LINEAR = (
    Kind.SUM, Kind.DIFFERENCE, Kind.PRODUCT, Kind.QUOTIENT, Kind.EXTREME, Kind.NEGATION, Kind.MEAN,
)  # fmt: skip

Test: TypeAlias = Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class Wide:
    """The width of a node that has another than activations, and why."""

    width: int
    reason: str
    weights: int | None = None

    def narrower(self, width: int, usual: int) -> int | None:
        """What such a node gets where HTP refuses that width; None where nothing is left to try."""
        after = WIDTH if width == FLOAT and self.width == FLOAT else usual if width == WIDTH else None
        return after if after != width else None


SMALL_NODE = Wide(WIDTH, "16 bits: small")
SQUARE = Wide(WIDTH, "16 bits: squares, roots and logarithms")
ANGLE = Wide(WIDTH, "16 bits: angles")
MIXED = Wide(WIDTH, "16 bits: an output that joins small and large values")
DECIBELS = Wide(FLOAT, "floating point: a spectrum before its logarithm")
FILTER = Wide(WIDTH, "16 bits: filters of a spectrum", weights=WIDTH)


def least_span(value: Value) -> float:
    """What a range of 16 bits spans at least: HTP's logarithm is one number for all data where its steps are
    finer than 2^-14."""
    maker = value.producer
    return LOG_SPAN if maker is not None and kind_of(maker) is Kind.LOGARITHM else 0.0


def is_level(value: Value) -> bool:
    """Whether a value is a level, as in decibels: the logarithm of squares, scaled, moved or clipped."""
    maker = value.producer
    if maker is None or not _is_level(maker):
        return False
    above = [maker] if _is_log(maker) else _before([maker], _is_level, _is_log)
    return any(_is_power(n) for n in above if _is_log(n))


def wide_nodes(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> dict[str, Wide]:
    """Nodes that get 16 bits, by name; those whose width somebody gave are left alone."""
    if not recipe.wide:
        return {}
    found = _spectra(graph, recipe.wide_weights or recipe.weight_bw == WIDTH)
    if recipe.act_bw < WIDTH:
        rules = (
            (MIXED, _mixed(graph)), (ANGLE, _angles(graph)), (SQUARE, _squares(graph)),
            (SMALL_NODE, _small(graph)),
        )  # fmt: skip
        found = {node: wide for wide, nodes in rules for node in nodes} | found
    return {
        node.name: wide
        for node, wide in found.items()
        if node.name not in recipe.widths and not any(v.name in given for v in _tensors(node))
    }


def with_wide(recipe: Recipe, wide: Mapping[str, Wide]) -> Recipe:
    """The recipe with the widths of such nodes, where it has none for them."""
    weights = {n: w.weights for n, w in wide.items() if w.weights is not None} if recipe.wide_weights else {}
    return replace(
        recipe,
        widths={name: w.width for name, w in wide.items()} | dict(recipe.widths),
        weight_widths=weights | dict(recipe.weight_widths),
    )


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


def _mixed(graph: Graph) -> Iterable[Node]:
    """What joins values of a known range, such as scores, with others, such as boxes, to a graph output."""
    joins = [n for n in graph.nodes if len(carries(n)) > 1 and _ends(graph, n)]
    return [n for n in joins if len({is_bounded(v) for v in carries(n)}) == 2]


def _ends(graph: Graph, node: Node) -> bool:
    """Whether nothing computes with what a node makes."""
    return all(carries(user) and _ends(graph, user) for v in node.outputs for user in v.users)


def _squares(graph: Graph) -> Iterable[Node]:
    """Roots of squares and logarithms, with all that is between: sums, means and constant factors."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if kind_of(node) in (Kind.ROOT, Kind.LOGARITHM):
            before = _before([node], _is_between, _is_square)
            if kind_of(node) is Kind.LOGARITHM or any(_is_square(n) for n in before):
                found |= dict.fromkeys(n for n in (node, *before) if _computes(n))
    return found


def _angles(graph: Graph) -> Iterable[Node]:
    """Sines and cosines, with the sums and products with constants that their angles are."""
    waves = [n for n in graph.nodes if kind_of(n) is Kind.WAVE]
    return [n for n in (*waves, *_before(waves, _is_between, _is_square)) if _computes(n)]


def _spectra(graph: Graph, wide_weights: bool) -> dict[Node, Wide]:
    """From the filters of a spectrum to the logarithm of its squares, and all filters before those.

    Filters that need weights of 16 bits and cannot have them stay in floating point, too.
    """
    power = [n for n in graph.nodes if _is_log(n) and _is_power(n)]
    below = _before(power, _is_linear, _is_square)
    squares = [n for n in below if _is_square(n)]
    above = _before(squares, _is_linear, _is_layer)
    filters = [n for n in above if _is_layer(n)]
    real = [n for n in (*power, *below, *above) if not _is_layer(n) or n in below]
    before = _before(filters, _is_linear, lambda _: False)
    astray = [n for n in (*filters, *before) if wide_weights and _is_layer(n) and goes_astray(n)]
    return dict.fromkeys((*filters, *before), FILTER) | dict.fromkeys((*real, *astray), DECIBELS)


def _before(nodes: Iterable[Node], among: Test, until: Test) -> list[Node]:
    """Nodes of a kind that others read from, and those that these read from, back to nodes of another."""
    found: dict[Node, None] = {}
    waiting = [v for node in nodes for _, v, _ in operands(node)]
    while waiting:
        above = waiting.pop().producer
        if above is None or above in found or not among(above):
            continue
        found[above] = None
        if not until(above):
            waiting += [v for _, v, _ in operands(above)]
    return list(found)


def _is_log(node: Node) -> bool:
    return kind_of(node) is Kind.LOGARITHM


def _is_power(node: Node) -> bool:
    """Whether a node reads squares, or sums of them."""
    return any(map(_is_square, _before([node], _is_linear, _is_square)))


def _is_level(node: Node) -> bool:
    return _is_log(node) or _is_between(node)


def _is_layer(node: Node) -> bool:
    return any(is_weight(v, o) and o.channel_axis is not None for _, v, o in operands(node))


def _is_linear(node: Node) -> bool:
    return _is_layer(node) or _is_between(node)


def _is_between(node: Node) -> bool:
    if _is_square(node) or carries(node) or schema_of(node).clips or kind_of(node) is Kind.ROOT:
        return True
    if kind_of(node) not in LINEAR:
        return False
    return kind_of(node) is not Kind.PRODUCT or any(v.is_constant for _, v, _ in operands(node))


def _is_square(node: Node) -> bool:
    if kind_of(node) is Kind.PRODUCT:
        return node.x(0) is node.x(1)
    data = node.x(1).data if kind_of(node) is Kind.POWER else None
    return data is not None and data.size == 1 and float(data.reshape(-1)[0]) == 2.0
