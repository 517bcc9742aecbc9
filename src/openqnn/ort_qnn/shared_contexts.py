"""Contexts that several sessions share: graphs of several models in one binary, as the provider makes them.

Sessions with `ep.share_ep_contexts` put their graphs aside. The one that has `ep.stop_share_ep_contexts` too
compiles them all into one binary, beside its own context model, and every context model names that binary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from openqnn.errors import UsageError
from openqnn.ir import Graph


@dataclass(frozen=True, slots=True)
class WaitingGraph:
    """A graph that is to share a context, and where its context model goes."""

    graph: Graph
    target: Path
    library: str
    soc: int | None


_WAITING: Final[list[WaitingGraph]] = []
_BINARIES: Final[dict[str, Path]] = {}


def put_aside(waiting: WaitingGraph) -> None:
    """Keep a graph until the last of those that share the context is there."""
    for other in _WAITING:
        if (other.library, other.soc) != (waiting.library, waiting.soc):
            raise UsageError(
                f"{waiting.target} shares a context with {other.target}, of another library or chip"
            )
        if other.target == waiting.target:
            raise UsageError(f"two models that share a context would both be written to {waiting.target}")
        if other.graph.name == waiting.graph.name:
            raise UsageError(
                f"two models that share a context have a graph of the name '{waiting.graph.name}'",
                hint="ep.context_node_name_prefix makes a name another one",
            )
    _WAITING.append(waiting)


def forget_waiting() -> None:
    """Nothing is put aside any more."""
    _WAITING.clear()


def write_shared() -> list[Path]:
    """Compile all that was put aside into one binary, and write the context models; gives the files.

    Whether it works out or not, nothing is put aside any more.
    """
    from openqnn.emit.epcontext import write_epcontexts
    from openqnn.vendor.compiled_context import compile_graphs
    from openqnn.vendor.target_setup import resolved

    waiting = list(_WAITING)
    forget_waiting()
    last = waiting[-1]
    made = compile_graphs(
        [each.graph for each in waiting], resolved(last.library), last.soc, share_weights=len(waiting) > 1
    )
    infos = {
        each.target: replace(
            made.info, graphs=tuple(g for g in made.info.graphs if g.name == each.graph.name)
        )
        for each in waiting
    }
    binary = last.target.with_name(f"{last.target.stem}_qnn.bin")
    return write_epcontexts(infos, binary, made.blob)


def remember_binary(graphs: tuple[str, ...], file: Path) -> None:
    """Where the graphs of an opened context are, for models that hold no binary of their own."""
    _BINARIES.update(dict.fromkeys(graphs, file))


def binary_of(graphs: tuple[str, ...], model: str) -> Path:
    """The binary of a session before that has the graphs; UsageError where none has."""
    found = {_BINARIES[name] for name in graphs if name in _BINARIES}
    if len(found) != 1 or any(name not in _BINARIES for name in graphs):
        raise UsageError(
            f"{model} holds no context binary, and no session before has {', '.join(graphs)}",
            hint="open the model with the binary first, with ep.share_ep_contexts set to 1",
        )
    return found.pop()
