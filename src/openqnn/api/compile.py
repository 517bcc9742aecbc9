"""Compiling a graph for one of the vendor's libraries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openqnn.api.files import open_graph
from openqnn.errors import UsageError
from openqnn.ir import Graph

if TYPE_CHECKING:
    from openqnn.vendor.compiled_context import CompiledContext
    from openqnn.vendor.target_setup import Settings


def compile(
    graph: Graph | str | os.PathLike[str],
    backend: str | os.PathLike[str] = "htp",
    *,
    soc: str | int | None = None,
    settings: Settings | None = None,
    timeout: float | None = None,
) -> CompiledContext:
    """Compile a graph, or a file that holds one, for a vendor library; `.save("x.bin")` writes the result.

    `settings` are those that HTP has for a graph, by the names of its JSON file: {"vtcm_mb": 4, "O": 3}. One
    that does not take effect is an error.
    """
    from openqnn.vendor.compiled_context import compile_graphs
    from openqnn.vendor.target_setup import resolved

    library = resolved(os.fspath(backend))
    opened = graph if isinstance(graph, Graph) else open_graph(graph)
    check_seconds(timeout)
    return compile_graphs([opened], library, soc, timeout, settings)


def check_seconds(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout is {timeout}: it is a number of seconds above 0")
