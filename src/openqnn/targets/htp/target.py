"""HTP as a target: its rules, put together in the order in which a graph needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openqnn.ir import Graph, Node
from openqnn.targets.htp.known_faults import known_faults
from openqnn.targets.htp.legalise import computes_fixed, legalise_htp
from openqnn.targets.htp.prepare_fixed import prepare_fixed
from openqnn.targets.htp.qdq_pairs import keep_pairs, spread_numbers
from openqnn.targets.target import Target


class HtpTarget(Target):
    """The Hexagon Tensor Processor, by libQnnHtp."""

    name = "htp"
    libraries = ("libQnnHtp.so",)
    compiles = True
    asked_in_fixed_point = True

    def adapt(self, graph: Graph, *, keeps_border: bool = False) -> Graph:
        return legalise_htp(graph, keeps_border=keeps_border)

    def adapt_file(self, graph: Graph) -> Graph:
        return graph if computes_fixed(graph) else self.adapt(graph, keeps_border=True)

    def adapt_float(self, graph: Graph) -> Graph:
        return legalise_htp(graph, to_fix=True)

    def prepare_fixed(self, graph: Graph, width: int, widths: Mapping[str, int]) -> Graph:
        return prepare_fixed(graph, width, dict(widths))

    def finish_fixed(self, graph: Graph, *, clips: bool) -> None:
        spread_numbers(graph)
        if clips:
            keep_pairs(graph)

    def known_faults(self, graph: Graph) -> Iterable[tuple[Node, str]]:
        return ((node, str(fault)) for node, fault in known_faults(graph))
