"""HTP as a target: what is true of it, and its rules, put together in the order in which a graph needs them.

The rules are imported when they are used: many ask only what is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from openqnn.targets.target import Target

if TYPE_CHECKING:
    from openqnn.ir import Graph, Node


class HtpTarget(Target):
    """The Hexagon Tensor Processor, by libQnnHtp."""

    name = "htp"
    libraries = ("libQnnHtp.so",)
    title = "HTP"
    fixed_point_of = name
    compiles = True
    half_precision = True
    asked_in_fixed_point = True

    def adapt(self, graph: Graph, *, keeps_border: bool = False) -> Graph:
        from openqnn.targets.htp.legalise import legalise_htp

        return legalise_htp(graph, keeps_border=keeps_border)

    def adapt_file(self, graph: Graph) -> Graph:
        from openqnn.targets.htp.legalise import computes_fixed

        return graph if computes_fixed(graph) else self.adapt(graph, keeps_border=True)

    def adapt_float(self, graph: Graph) -> Graph:
        from openqnn.targets.htp.legalise import legalise_htp

        return legalise_htp(graph, to_fix=True)

    def prepare_fixed(self, graph: Graph, width: int, widths: Mapping[str, int]) -> Graph:
        from openqnn.targets.htp.prepare_fixed import prepare_fixed

        return prepare_fixed(graph, width, dict(widths))

    def finish_fixed(self, graph: Graph, *, clips: bool) -> None:
        from openqnn.targets.htp.qdq_pairs import keep_pairs, spread_numbers

        spread_numbers(graph)
        if clips:
            keep_pairs(graph)

    def known_faults(self, graph: Graph) -> Iterable[tuple[Node, str]]:
        from openqnn.targets.htp.known_faults import known_faults

        return ((node, str(fault)) for node, fault in known_faults(graph))
