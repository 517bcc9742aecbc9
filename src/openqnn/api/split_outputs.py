"""Outputs that join boxes and scores, split: a graph that ends before the join."""

from __future__ import annotations

from collections.abc import Collection

from openqnn.errors import UsageError
from openqnn.ir import Graph
from openqnn.ir.clone import clone_graph
from openqnn.passes.boundary.split_joins import joins_of, split_joins


def split_outputs(graph: Graph, names: Collection[str] = ()) -> Graph:
    """A graph that gives the parts of such outputs instead: in fixed point each has steps of its own.

    Those that join values of a known range, such as scores, with others, such as boxes, are split in two;
    outputs in `names` are split in any case, into all that they are joined from. A part that was a tensor of
    its own keeps that name, another gets the output's with a number.
    """
    if not isinstance(graph, Graph):
        said = f"a {type(graph).__name__} is no graph whose outputs can be split"
        raise UsageError(said, hint="openqnn.convert makes a graph of a model")
    if isinstance(names, str):
        raise UsageError(f"names is a list of outputs, not {names!r}", hint=f"[{names!r}]")
    if any(v.dtype.is_fixed for n in graph.nodes for v in n.outputs):
        raise UsageError(
            f"graph '{graph.name}' is in fixed point, where parts have the steps of the whole",
            hint="split the graph in floating point, and quantize that",
        )
    made = clone_graph(graph)
    if not split_joins(made, names):
        joined = [j.output for j in joins_of(graph)]
        raise UsageError(
            "no output joins values of a known range with others",
            hint=f"name the outputs to split: {', '.join(joined)}" if joined else "",
        )
    return made
