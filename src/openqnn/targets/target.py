"""What a target is: the forms that a backend takes and how graphs are brought into them, before and after
quantization."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from openqnn.errors import Problem, UnsupportedError

if TYPE_CHECKING:
    from openqnn.ir import Graph, Node


class Target:
    """A backend that takes every graph as it is, as the built-in one does; others say what they need.

    A new target is a module here with a subclass, and a row in `openqnn.targets.registry`.
    """

    name: str = "cpu"
    libraries: tuple[str, ...] = ()
    """File names of its libraries; the built-in backend has none."""
    title: str = "the built-in backend"
    """What messages call it."""
    compiles: bool = False
    """Whether graphs are compiled for chips: there are SoCs, settings and context binaries then, and a
    simulator runs them here."""
    fixed_point_of: str = "cpu"
    """The target whose fixed point it takes, by name: `quantize` makes graphs for that one."""
    half_precision: bool = False
    """Whether floats are computed in half precision."""
    asked_in_fixed_point: bool = False
    """Whether its library is asked which nodes it takes in fixed point, rather than taking all."""

    @property
    def is_built_in(self) -> bool:
        """Whether it needs no library of Qualcomm's."""
        return not self.libraries

    def problems(self, graph: Graph) -> Sequence[Problem]:
        """Every node that it cannot run, and why."""
        try:
            self.adapt(graph)
        except UnsupportedError as error:
            return error.problems or [Problem("", "", error.message, error.hint)]
        return []

    def adapt(self, graph: Graph, *, keeps_border: bool = False) -> Graph:
        """The graph itself, or one that computes the same in forms that the backend takes.

        With `keeps_border` inputs and outputs keep their types wherever the backend can convert them.
        """
        return graph

    def adapt_file(self, graph: Graph) -> Graph:
        """The graph of a file that a tool wrote: its fixed point was made for this target and stays."""
        return self.adapt(graph, keeps_border=True)

    def adapt_float(self, graph: Graph) -> Graph:
        """A graph in floating point that will be quantized, before its ranges are measured."""
        return graph

    def prepare_fixed(self, graph: Graph, width: int, widths: Mapping[str, int]) -> Graph:
        """What `adapt_float` gave, in forms that are computed right in fixed point of up to that width.

        `widths` are those of nodes that have another one.
        """
        return graph

    def finish_fixed(self, graph: Graph, *, clips: bool) -> None:
        """Last changes to a graph in fixed point; `clips` where given ranges may be there to clip values."""

    def known_faults(self, graph: Graph) -> Iterable[tuple[Node, str]]:
        """Nodes of a graph in fixed point that its library is known to compute wrongly: how, and what to
        write instead."""
        return ()
