"""Where half precision, in which HTP computes floats, cannot hold what a graph computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from openqnn.ir import Array, Graph, Node
from openqnn.quant.calibration import calibrate
from openqnn.quant.observe.observers import Watch
from openqnn.quant.range_analysis import Bounds, Range
from openqnn.quant.softmax_masks import is_masked

LARGEST = 65504.0
LEAST = 2.0**-14  # less than that loses accuracy
COARSE = 256.0  # from there on numbers are a quarter apart, and more: exponents are not told apart by less
SHARPNESS = "beta"  # the parameter by which a softmax is known


@dataclass(frozen=True, slots=True)
class HalfProblem:
    """A node, the tensor that half precision cannot hold, how far that reaches, and what becomes of it."""

    node: str
    op: str
    tensor: str
    reach: float
    known_by: str
    what: str

    def __str__(self) -> str:
        reach = f"'{self.tensor}' reaches {self.reach:.3g} ({self.known_by})"
        return f"{self.op} '{self.node}': {reach}: {self.what}"


def half_problems(graph: Graph, samples: Iterable[Mapping[str, Array]] | None = None) -> list[HalfProblem]:
    """What half precision cannot hold, by the samples where there are any, else by what the graph says."""
    made = [v for n in graph.nodes for v in n.outputs if v.dtype.is_float and not v.is_constant]
    if samples is None:
        bounds = Bounds(graph, 16, lambda _: (-np.inf, np.inf))
        ranges = {v.name: bounds.reach(v) for v in made}
    else:
        names = [*(v.name for v in graph.inputs if v.dtype.is_float), *(v.name for v in made)]
        seen = calibrate(graph, samples, dict.fromkeys(names, Watch.EXTREMES))
        ranges = {name: (found.low, found.high) for name, found in seen.items()}
    known_by = "by the graph" if samples is None else "by the samples"
    return [p for node in graph.nodes for p in _of_node(node, ranges, known_by)]


def _of_node(node: Node, ranges: Mapping[str, Range], known_by: str) -> Iterable[HalfProblem]:
    for value in node.outputs:
        reach = _reach(ranges.get(value.name))
        if reach > LARGEST:
            yield HalfProblem(node.name, node.op, value.name, reach, known_by, "infinite beyond 65504")
        elif 0 < reach < LEAST:
            yield HalfProblem(node.name, node.op, value.name, reach, known_by, "loses digits, or is zero")
    if SHARPNESS in node.params:
        data = node.x(0)
        reach = _reach(ranges.get(data.name))
        if COARSE <= reach <= LARGEST:
            step = 2.0 ** (np.floor(np.log2(reach)) - 10)
            what = f"steps of {step:g} there, and exponents tell less than one apart"
            yield HalfProblem(node.name, node.op, data.name, reach, known_by, what)


def _reach(found: Range | None) -> float:
    """How far from zero a tensor gets; masks of attention, which only have to be far below, do not count."""
    if found is None or not (isfinite(found[0]) and isfinite(found[1])):
        return 0.0
    low = 0.0 if is_masked(found[0]) and abs(found[1]) < COARSE else found[0]
    return max(abs(low), abs(found[1]))
