"""Compiling a graph for one of the vendor's libraries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openqnn.api.family import Family, graphs_of
from openqnn.errors import UsageError
from openqnn.ir import Graph

if TYPE_CHECKING:
    from openqnn.vendor.compiled_context import CompiledContext
    from openqnn.vendor.target_setup import Settings


def compile(
    graph: Graph | Family | str | os.PathLike[str],
    backend: str | os.PathLike[str] = "htp",
    *,
    soc: str | int | None = None,
    settings: Settings | None = None,
    timeout: float | None = None,
    share_weights: bool = True,
) -> CompiledContext:
    """Compile a graph, a family, or a file that holds one, for a vendor library; `.save("x.bin")` writes it.

    Graphs of a family share their weights on HTP, unless told otherwise: its simulator loads no context with
    shared ones. `settings` are those that HTP has for a graph, by the names of its JSON file:
    {"vtcm_mb": 4, "O": 3}. One that does not take effect is an error.
    """
    from openqnn.vendor.compiled_context import compile_graphs
    from openqnn.vendor.target_setup import resolved

    library = resolved(os.fspath(backend))
    check_seconds(timeout)
    if isinstance(graph, Graph):
        return compile_graphs([graph], library, soc, timeout, settings)
    family = graph if isinstance(graph, Family) else Family(graphs_of(graph))
    return compile_graphs(family.graphs, library, soc, timeout, settings, share_weights=share_weights)


def check_seconds(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout is {timeout}: it is a number of seconds above 0")
