"""Ranges that follow from the graph: how far a value can reach, and beyond where nobody can tell it apart.

A sigmoid of 30 is a sigmoid of 7, to 8 bits: a range of what goes into it that ends at 7 has finer steps and
loses nothing. That reaches back through sums and whatever only moves values. Forwards, sums and products of
bounded values are bounded, and need no room beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log

from openqnn.ir import Graph, Node, Value
from openqnn.ops import Kind, kind_of, schema_of

Range = tuple[float, float]
EVERYTHING: Range = (-inf, inf)
MODERATE = 1e3  # a factor up to that scales
CHOICES = (Kind.EXTREME, Kind.CHOICE)  # results are values of one or the other input


class Bounds:
    """What the graph says of its values.

    `seen` tells the range that calibration saw of one, and `told` of a node what it tells apart, where that
    depends on data.
    """

    def __init__(
        self,
        graph: Graph,
        width: int,
        seen: Callable[[Value], Range],
        told: Callable[[Node], Range | None] = lambda _: None,
    ) -> None:
        self._graph, self._width, self._seen, self._told = graph, width, seen, told
        self._reach: dict[Value, Range] = {}
        self._useful: dict[Value, Range] = {}
        for node in graph.nodes:
            for value in node.outputs:
                self._reach[value] = self._reach_of(node)
        for node in reversed(graph.nodes):
            for value in node.outputs:
                self.useful(value)
        for value in graph.values():  # now, for whoever asks may be about to change the graph
            self.useful(value)

    # -- forwards --------------------------------------------------------------------------------------------

    def reach(self, value: Value) -> Range:
        """What the value can be, whatever the data is."""
        if value.data is not None:
            return (float(value.data.min()), float(value.data.max())) if value.data.size else EVERYTHING
        return self._reach.get(value, EVERYTHING)

    def _reach_of(self, node: Node) -> Range:
        schema = schema_of(node)
        limits = schema.output_range or clip_limits(node)
        if limits is not None:
            return limits
        if _neuron(node) in ("SIGMOID", "HARD_SIGMOID"):
            return 0.0, 1.0
        data = [v for v in node.inputs if v is not None]
        if schema.hands_on(node) and data:
            return _union([self.reach(v) for v in data if v.dtype.is_float] or [EVERYTHING])
        if schema.kind not in (Kind.SUM, Kind.DIFFERENCE, Kind.PRODUCT):
            return EVERYTHING
        return _combined(schema.kind, self.reach(data[0]), self.reach(data[1]))

    # -- backwards -------------------------------------------------------------------------------------------

    def useful(self, value: Value) -> Range:
        """Beyond this range no reader can tell values apart."""
        if value not in self._useful:
            wanted = [self._wanted(user, value) for user in dict.fromkeys(value.users)]
            if self._graph.is_output(value) or not wanted:
                wanted.append(EVERYTHING)
            self._useful[value] = min(w[0] for w in wanted), max(w[1] for w in wanted)
        return self._useful[value]

    def _wanted(self, node: Node, value: Value) -> Range:
        limits = saturation(node, self._width) or self._told(node)
        if limits is not None:
            return limits
        kind = kind_of(node)
        if schema_of(node).hands_on(node) or kind in CHOICES:
            return _union([self.useful(v) for v in node.outputs])
        if kind in (Kind.PRODUCT, Kind.QUOTIENT):
            return self._before_scaling(node, value)
        if kind not in (Kind.SUM, Kind.DIFFERENCE) or node.x(0) is node.x(1):
            return EVERYTHING
        low, high = self.useful(node.out)
        other = node.x(1) if node.x(0) is value else node.x(0)
        least, most = self._seen(other) if other.data is None else self.reach(other)
        if kind is Kind.SUM:
            return low - most, high - least
        if value is node.x(0):
            return low + least, high + most
        return least - high, most - low

    def _before_scaling(self, node: Node, value: Value) -> Range:
        by = node.x(1) if value is node.x(0) else node.x(0)
        divides = kind_of(node) is Kind.QUOTIENT
        if by.data is None or by.size != 1 or (divides and by is node.x(0)):
            return EVERYTHING
        factor = float(by.data.reshape(-1)[0])
        factor = 1 / factor if divides and factor else factor
        if not 1 / MODERATE <= abs(factor) <= MODERATE:  # what makes a mask of zeros and ones is no scale
            return EVERYTHING
        ends = [end / factor for end in self.useful(node.out)]
        return min(ends), max(ends)


def clip_limits(node: Node) -> Range | None:
    """The two ends that a node clips its input to.

    Right behind what computes, the clip is left to the ends of the output's encoding, wherever these are.
    """
    if not schema_of(node).clips or "max_value" not in node.params:
        return None
    return node.float("min_value"), node.float("max_value")


def saturation(node: Node, width: int) -> Range | None:
    """The inputs beyond which the output changes by less than half a step."""
    kind = _neuron(node) or node.op.upper()
    end = log(2.0 * (1 << width))
    if kind == "SIGMOID":
        return -end, end
    if kind == "TANH":
        return -end / 2, end / 2
    if kind == "HARD_SIGMOID" and node.float("alpha") > 0:
        alpha, beta = node.float("alpha"), node.float("beta")
        return -beta / alpha, (1 - beta) / alpha
    return None


def _neuron(node: Node) -> str:
    return node.enum("operation") if node.op == "ElementWiseNeuron" else ""


def _union(ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _combined(kind: Kind, first: Range, second: Range) -> Range:
    """The range of a sum, a difference or a product by those of its operands (interval arithmetic)."""
    (a, b), (c, d) = first, second
    if inf in (abs(a), abs(b), abs(c), abs(d)):
        return EVERYTHING
    if kind is Kind.SUM:
        return a + c, b + d
    if kind is Kind.DIFFERENCE:
        return a - d, b - c
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)
