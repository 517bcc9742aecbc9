"""Graphs in files: .oqnn, DLC, model libraries and Saver bundles are read, .oqnn and DLC are written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import ModelError, UsageError, VerifyError
from openqnn.formats.oqnn import is_oqnn
from openqnn.ir import BUILTIN_PACKAGE, Graph
from openqnn.ir.oqnn import load_graph

if TYPE_CHECKING:
    from openqnn.qnn.net import Net

DLC = ".dlc"
VENDOR_FILES = (DLC, ".so", ".c")
CONTEXT = ".bin"
DLC_TIMEOUT = 600.0  # seconds
PACKAGE = ".package"  # ends the names of the records in which a DLC keeps declarations of custom ops
KNOWN = ".given"  # ends the name of the record in which a DLC keeps what is known of encodings beside them


def load(path: str | os.PathLike[str], graph: str = "", *, trust: bool = False) -> Graph:
    """A graph from an .oqnn file, a DLC, a model library or a Saver bundle (saver_output.c).

    `graph` chooses one where there are several. The last two are programs, which are run to be read: with
    `trust` only.
    """
    check_path(path)
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    if Path(path).suffix == CONTEXT and not is_oqnn(path):
        hint = "a Session runs it, and `openqnn inspect` tells what is in it"
        raise UsageError(f"{path}: no graph can be read from a context binary: it is compiled", hint=hint)
    if Path(path).suffix not in VENDOR_FILES:
        return _sound(load_graph(path), path)
    nets = _nets(path, trust=trust)
    if len(nets) > 1 and not graph:
        hint = f"name one: {', '.join(net.name for net in nets)}"
        raise UsageError(f"{path} holds several graphs", hint=hint)
    chosen = next((net for net in nets if graph in ("", net.name)), None)
    if chosen is None:
        names = ", ".join(net.name for net in nets) or "none"
        raise UsageError(f"{path} has no graph '{graph}'", hint=f"it has: {names}")
    return _graph(chosen, path)


def load_all(path: str | os.PathLike[str], *, trust: bool = False) -> list[Graph]:
    """Every graph of a file that `load` reads."""
    if not Path(path).is_file() or Path(path).suffix not in VENDOR_FILES:
        return [load(path)]
    return [_graph(net, path) for net in _nets(path, trust=trust)]


def _nets(path: str | os.PathLike[str], *, trust: bool) -> list[Net]:
    """The records of the graphs in one of the vendor's files."""
    from openqnn.vendor.remote import read_dlc, read_model_library
    from openqnn.vendor.saver_library import read_saver
    from openqnn.vendor.trust import check_trusted, trusting

    with trusting(trust):
        check_trusted(path)
    return {DLC: read_dlc, ".so": read_model_library, ".c": read_saver}[Path(path).suffix](path)


def _graph(net: Net, path: str | os.PathLike[str]) -> Graph:
    from openqnn.emit.graph_from_net import graph_of
    from openqnn.formats.dlc_metadata import read_record
    from openqnn.ir.graph_text import parse_known

    _declare_stored(path, f"{net.name}.")
    found = graph_of(net)
    if Path(path).suffix == DLC:
        found.given, found.provenance = parse_known(read_record(path, f"{net.name}{KNOWN}"))
    return found


def _declare_stored(path: str | os.PathLike[str], prefix: str) -> None:
    """Custom ops as the file's writer knew them, where nobody declares them otherwise."""
    from openqnn.formats.dlc_metadata import read_record, record_names
    from openqnn.ops.custom_store import declare_texts

    if Path(path).suffix != DLC:
        return
    names = [n for n in record_names(path) if n.startswith(prefix) and n.endswith(PACKAGE)]
    declare_texts([read_record(path, name) for name in names], str(path))


def _sound(graph: Graph, path: str | os.PathLike[str]) -> Graph:
    """A graph that makes sense, or ModelError: any text can stand in a file."""
    from openqnn.ir.verify import verify
    from openqnn.ops import infer_outputs
    from openqnn.ops.custom import unknown_op
    from openqnn.ops.schema import OPS

    damaged = "the file is damaged, or of another version: convert the model again"
    for node in graph.nodes:
        if node.op not in OPS and node.op_name in OPS:
            node.op = node.op_name  # QNN's own op under another package's name
    unknown = next((node for node in graph.nodes if node.op not in OPS), None)
    if unknown is not None and unknown.package != BUILTIN_PACKAGE:
        error = unknown_op(unknown.package, unknown.op_name)
        raise ModelError(f"{path}: {error.message}", hint=error.hint)
    if unknown is not None:
        raise ModelError(f"{path}: {unknown.where}: there is no operation '{unknown.op}'", hint=damaged)
    try:
        verify(graph, infer_outputs)
    except VerifyError as error:
        raise ModelError(f"{path}: {error.message}", hint=damaged) from error
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise ModelError(f"{path}: the graph contradicts itself: {error}", hint=damaged) from error
    return graph


def save_dlc(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    package: str = "",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a DLC file, which appears whole or not at all. `package` is the op package of every node."""
    save_graphs([graph], path, package=package, metadata=metadata)


def save_graphs(
    graphs: Sequence[Graph],
    path: str | os.PathLike[str],
    *,
    package: str = "",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes several graphs to one DLC: weights that they have in common are stored once."""
    from openqnn.emit import lower
    from openqnn.emit.emission_order import with_package
    from openqnn.formats.atomic import replacing_path
    from openqnn.formats.dlc_metadata import add_metadata
    from openqnn.vendor.remote import write_dlc

    names: list[dict[str, str]] = [{} for _ in graphs]
    nets = [lower(graph, own) for graph, own in zip(graphs, names, strict=True)]
    with replacing_path(path) as temporary:
        packed = [with_package(net, package) if package else net for net in nets]
        write_dlc(packed, temporary, timeout=DLC_TIMEOUT)
        add_metadata(temporary, metadata or {})
        for graph, net, own in zip(graphs, nets, names, strict=True):
            _add_known(graph, net.name, own, temporary)


def _add_known(graph: Graph, name: str, names: Mapping[str, str], path: Path) -> None:
    """The records that only these tools read: custom ops, and what is known of encodings."""
    from openqnn.formats.dlc_metadata import add_record
    from openqnn.formats.op_package_xml import print_op_package
    from openqnn.ir.graph_text import print_known
    from openqnn.ops.custom import packages_of

    for declared in packages_of(graph):
        add_record(path, f"{name}.{declared.name}{PACKAGE}", print_op_package(declared))
    if graph.given or graph.provenance:
        given = {names[key]: said for key, said in graph.given.items() if key in names}
        sources = {names[key]: source for key, source in graph.provenance.items() if key in names}
        add_record(path, f"{name}{KNOWN}", print_known(given, sources))


def check_path(given: object, hint: str = "openqnn.convert makes a graph of a model") -> None:
    """UsageError for what is no path of a file."""
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"a {type(given).__name__} is neither a graph nor the path of a file", hint=hint)


def holds_graph(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds a graph of QNN operations, and no model of a framework."""
    check_path(path)
    return is_oqnn(path) or Path(path).suffix in VENDOR_FILES


def open_graph(path: str | os.PathLike[str], **settings: Any) -> Graph:
    """A graph from a file that holds one, or by converting a model."""
    if not holds_graph(path):
        from openqnn.api.convert import convert

        return convert(path, **settings)
    check_static(path, settings)
    return load(path)


def check_static(path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """UsageError where a file that holds a graph is given shapes."""
    if settings.get("source_options"):
        raise UsageError(f"{path} holds a graph: options of source models do not apply")
    given = [k for k, v in settings.items() if v and k in ("input_shapes", "dims", "batch", "input_values")]
    if given:
        raise UsageError(
            f"{path} has static shapes: {given[0]} does not apply", hint="convert the source model again"
        )
