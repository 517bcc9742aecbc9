"""Where Softmax stops to tell numbers apart: far enough below the largest of their row all of them are zero.

Masks put numbers there, the least that a float has among them, and a range that reached down to it would have
no steps left for the others. How large the largest of a row is at least, calibration has to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log

import numpy as np

from openqnn.ir import Graph, Node
from openqnn.ir.clone import clone_graph
from openqnn.ops import Builder, Kind, kind_of
from openqnn.quant.observe.observers import Statistics
from openqnn.quant.range_analysis import Bounds, Range
from openqnn.quant.widen_ranges import widening

MASKED = -1e3  # what is below is no score
PADDING = -1e8  # what is below in all of a row is none of any network's: sums of squares may reach -1e3
LEAST_FACTOR = -65504.0  # that zeros and ones are multiplied by; half precision has no lower one


def with_tops(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph with the largest number of each row that a Softmax reads, and the names of these.

    A row that is masked as a whole, that of padding, has no scores: zero stands for its largest.
    """
    made = clone_graph(graph)
    names: list[str] = []
    for node in [n for n in made.nodes if kind_of(n) is Kind.SOFTMAX]:
        b = Builder(made, node.source, before=node)
        most = b.reduce_max(node.x(0), (node.int("axis"),), keep_dims=False)
        tops = b.select(b.less(most, PADDING), b.scalar(0.0, like=most), most)
        tops.name = _name(node)
        names.append(tops.name)
    return (made, names) if names else (graph, [])


def told_apart(node: Node, width: int, statistics: Mapping[str, Statistics]) -> Range | None:
    """The inputs of a Softmax of that width that are not all zero to it, even many of them together."""
    seen = statistics.get(_name(node)) if kind_of(node) is Kind.SOFTMAX else None
    if seen is None or not seen.count:
        return None
    margin = (widening(width, seen.count) - 1) * (seen.high - seen.low)
    row = node.x(0).shape[node.int("axis")]
    return seen.low - margin - log(2.0 * (1 << width) * row) / node.float("beta"), inf


def is_masked(low: float) -> bool:
    return low < MASKED


def cut_constants(node: Node, bounds: Bounds) -> None:
    """Takes from constants that a node reads what nobody tells from numbers that are nearer to zero.

    A factor that makes a mask of zeros and ones is cut as well: chips multiply by the least float wrong.
    """
    for value in node.inputs:
        if value is None or value.data is None or not value.dtype.is_float or not value.size:
            continue
        first = bounds.useful(node.out if kind_of(node) is Kind.PRODUCT else value)[0]
        if kind_of(node) is Kind.PRODUCT:
            first = min(first, LEAST_FACTOR)
        if is_masked(float(value.data.min())):
            value.data = np.maximum(value.data, first).astype(value.data.dtype)


def _name(node: Node) -> str:
    return f"{node.x(0).name} | largest of the rows for {node.name}"
