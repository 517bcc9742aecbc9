"""Any file that holds graphs, as plain QNN records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openqnn.emit import lower
from openqnn.errors import ModelError, UsageError, VerifyError
from openqnn.formats.container import is_container
from openqnn.ir import Graph
from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.ops.schema import OPS
from openqnn.pipeline import open_graph
from openqnn.qnn.net import Net
from openqnn.qnn.remote import read_dlc, read_model_library

_READERS = {".dlc": read_dlc, ".so": read_model_library}
HOLDS_SEVERAL = tuple(_READERS)
"""Suffixes of files that may hold more than one graph."""
_SECONDS = 300.0
_DAMAGED = "the file is damaged, or of another version: convert the model again"


def read_nets(path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> list[Net]:
    """The graphs of a file. `settings` are for models that are converted first; others have fixed shapes."""
    reader = _READERS.get(Path(path).suffix)
    if reader is not None:
        return reader(path, timeout=_SECONDS)
    return [lower(open_checked(path, {} if is_container(path) else settings or {}))]


def open_checked(path: str | os.PathLike[str], settings: Mapping[str, Any]) -> Graph:
    """A graph, and where it was read from a file of ours, the certainty that it makes sense."""
    graph = open_graph(path, **settings)
    if not is_container(path):
        return graph
    unknown = next((node for node in graph.nodes if node.op not in OPS), None)
    if unknown is not None:
        raise ModelError(f"{path}: {unknown.where}: there is no operation '{unknown.op}'", hint=_DAMAGED)
    try:
        verify(graph, infer_outputs)
    except VerifyError as error:
        raise ModelError(f"{path}: {error.message}", hint=_DAMAGED) from error
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise ModelError(f"{path}: the graph contradicts itself: {error}", hint=_DAMAGED) from error
    return graph


def read_net(path: str | os.PathLike[str], graph: str = "", settings: Mapping[str, Any] | None = None) -> Net:
    """The only graph of a file, or the named one."""
    nets = read_nets(path, settings)
    if len(nets) == 1:
        return nets[0]
    names = [net.name for net in nets]
    chosen = next((net for net in nets if net.name == graph), None)
    if chosen is None:
        what = f"has no graph '{graph}'" if graph else "holds several graphs"
        raise UsageError(f"{path} {what}", hint=f"name one with --graph: {', '.join(names) or 'none'}")
    return chosen
