"""Sources of graphs for a vendor's library (graphs, DLC files, model libraries), as records that suit it.

Everything is imported where it is needed: much of it takes long, and is for child processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import ModelError, OpenQnnError
from openqnn.qnn.backend import Backend
from openqnn.qnn.dlc import read_dlc
from openqnn.qnn.library import can_fork
from openqnn.qnn.model_library import PREFIX, read_model_library
from openqnn.qnn.net import Net, without_idle
from openqnn.qnn.system_api import SystemApi
from openqnn.targets.registry import target_of_library
from openqnn.worker.serve import Reporter

if TYPE_CHECKING:
    from openqnn.emit.boundary import Suited
    from openqnn.ir import Graph


@dataclass(frozen=True, slots=True)
class Source:
    """Where graphs come from: graphs, their records, files that hold them, or a context binary."""

    graphs: tuple[Graph, ...] = ()
    nets: tuple[Net, ...] = ()
    files: tuple[str, ...] = ()
    binary: str = ""
    prefix: str = PREFIX


def net_of(graph: Graph, library: str) -> Net:
    """A graph as records that suit a library."""
    from openqnn.emit import lower

    return lower(suited(graph, library))


def suited(graph: Graph, library: str, *, of_file: bool = False) -> Graph:
    target = target_of_library(library)
    return target.adapt_file(graph) if of_file else target.adapt(graph)


def nets_of(source: Source, library: str, reporter: Reporter) -> list[Net]:
    """The source's graphs as records that suit the library."""
    nets = [*(net_of(graph, library) for graph in source.graphs), *source.nets]
    for path in source.files:
        ahead = _ahead.pop(_stamp(path), None)
        for found in ahead or [_suited(net, library) for net in read_nets(path, reporter, source.prefix)]:
            nets.append(found.net)
            for remark in found.remarks:
                reporter.tell(remark)
    names = [net.name for net in nets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(
            f"two graphs are called '{twice[0]}', and a context takes each name once",
            hint="convert one of them again under another name",
        )
    return nets


def read_nets(path: str, reporter: Reporter, prefix: str = PREFIX) -> list[Net]:
    """The graphs of a DLC file or a model library, in a process that ends with its task.

    libQnnIr stands in for a backend: both compose their graphs in one.
    """
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    reporter.step(f"read {Path(path).name}")
    with Backend("ir", capture=False, progress=reporter.step) as backend:
        if Path(path).suffix == ".so":
            return read_model_library(backend, path, prefix)
        return read_dlc(backend, SystemApi(capture=False), path, borrow=True)


_ahead: dict[tuple[object, ...], list[Suited]] = {}
"""In a process that read files before its task came: their graphs, as they suit the only library there."""


def read_ahead(paths: Iterable[str], library: str, reporter: Reporter) -> None:
    """Read DLC files for a task that will come. What is wrong with them is told by the task."""
    for path in paths:
        with suppress(OpenQnnError):
            _ahead[_stamp(path)] = [_suited(net, library) for net in read_nets(path, reporter)]


def _stamp(path: str) -> tuple[object, ...]:
    """What changes with a file's content."""
    try:
        found = Path(path).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _suited(net: Net, library: str) -> Suited:
    """Applications go by the types of inputs and outputs that a file has, so these stay where they can."""
    from openqnn.emit import lower
    from openqnn.emit.boundary import Suited, boundary_changes

    made = without_idle(net)
    known = target_of_library(library).compiles or any(tensor.quant for tensor in net.tensors.values())
    graph = _graph_of(net) if known else None
    if graph is not None and (better := suited(graph, library, of_file=True)) is not graph:
        made = lower(better)
    return Suited(made, tuple(boundary_changes(net, made, target_of_library(library).title)))


def _graph_of(net: Net) -> Graph | None:
    """The graph behind the records; None where an operation is not one that is known here."""
    from openqnn.emit.graph_from_net import graph_of

    try:
        return graph_of(net)
    except ModelError:
        return None


def for_child(source: Source, library: str) -> Source:
    """What a job can be given: records travel to another process, and graphs only to a copy of this one."""
    if can_fork():
        return source
    nets = tuple(net_of(graph, library) for graph in source.graphs)
    return replace(source, graphs=(), nets=(*nets, *source.nets))
