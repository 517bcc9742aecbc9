"""Encodings that plain calibration would choose for a graph: what a suspicious graph is held against."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from openqnn.errors import OpenQnnError, OpenQnnWarning
from openqnn.ir import Array, Graph, Value
from openqnn.ops import schema_of
from openqnn.quant.apply_recipe import apply_recipe, measure
from openqnn.quant.plan import is_weight, operands
from openqnn.quant.recipe import FLOAT, WEIGHT_WIDTHS, Recipe


def usual_graph(real: Graph, fixed: Graph, samples: Iterable[Mapping[str, Array]]) -> Graph | None:
    """The graph in floating point, put into fixed point by plain calibration on the samples.

    Every node has the width that it has in `fixed`. None where that cannot be done, as with a graph whose
    nodes have other names.
    """
    recipe = _recipe_like(real, fixed)
    if recipe is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        try:
            return apply_recipe(measure(real, samples, recipe, {}), recipe, {}).graph
        except (OpenQnnError, ValueError):
            return None


def _recipe_like(real: Graph, fixed: Graph) -> Recipe | None:
    known = {node.name: node for node in fixed.nodes}
    widths: dict[str, int] = {}
    for node in real.nodes:
        other = known.get(node.name)
        if other is None or schema_of(node).on_stored:
            continue
        bits = [v.encoding.bitwidth for v in other.outputs if v.encoding is not None]
        widths[node.name] = bits[0] if bits else FLOAT
    if not any(widths.values()):
        return None
    weights = usual_weights(fixed)
    recipe = Recipe(
        headroom=False, wide=False, wide_weights=False, per_channel=weights[1], per_row=weights[1]
    )
    usual = min(weights[0], 8)
    wide = {n: b for n, b in _weight_bits(fixed).items() if b == 16 and widths.get(n) == 16}
    return replace(recipe, weight_bw=usual, widths=widths, weight_widths=wide)


def usual_weights(fixed: Graph) -> tuple[int, bool]:
    """The width that most weights of a graph have, and whether most have a scale for each channel."""
    found = [v for node in fixed.nodes for _, v, o in operands(node) if is_weight(v, o)]
    coded = [v.encoding for v in dict.fromkeys(found) if v.encoding is not None]
    if not coded:
        return 8, True
    width = Counter(e.bitwidth for e in coded).most_common(1)[0][0]
    return (width if width in WEIGHT_WIDTHS else 8), sum(e.axis is not None for e in coded) * 2 >= len(coded)


def _weight_bits(fixed: Graph) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in fixed.nodes:
        for _, value, operand in operands(node):
            if is_weight(value, operand) and value.encoding is not None:
                found[node.name] = value.encoding.bitwidth
    return found


def by_name(graph: Graph | None) -> dict[str, Value]:
    """Every value of a graph that has an encoding."""
    return {} if graph is None else {v.name: v for v in graph.values() if v.encoding is not None}
