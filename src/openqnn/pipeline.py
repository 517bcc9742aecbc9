"""The Python API: convert, check, load, compile."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openqnn.errors import ModelError, OpenQnnWarning, ShapeError, UsageError, VerifyError
from openqnn.formats.container import is_container
from openqnn.ir import Array, DType, Graph
from openqnn.ir.store import WRITERS, load_graph
from openqnn.runtime.arrays import is_coded, outside_dtype

if TYPE_CHECKING:
    import onnx

    from openqnn.compiler import CompiledContext, Settings
    from openqnn.formats.custom_io import Described
    from openqnn.frontends.onnx import Importer, Problem
    from openqnn.passes import Explain
    from openqnn.passes.io import Borders

Progress = Callable[[str, int, int], None]  # stage, done, total
DLC = ".dlc"
VENDOR_FILES = (DLC, ".so", ".c")
CONTEXT = ".bin"
DLC_TIMEOUT = 600.0  # seconds
LARGEST_TENSOR = 1 << 38  # bytes
KNOWN = ".given"  # ends the name of the record in which a DLC keeps what is known of encodings beside them
DEAD_CODE = "remove_dead_code"  # the pass without which nodes stay that no output depends on


def convert(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    outputs: Sequence[str] = (),
    borders: Borders | None = None,
    float_bits: int | None = None,
    bias_bits: int | None = None,
    keep_quant_nodes: bool = False,
    without: Collection[str] = (),
    explain: Explain | None = None,
    progress: Progress | None = None,
) -> Graph:
    """The QNN graph of an ONNX model.

    Dynamic dimensions are settled by input name (`input_shapes`), by symbol (`dims`) or by `batch`. `outputs`
    ends the graph at these tensors of the model, `borders` says how inputs and outputs look from outside,
    `float_bits` (16 or 32) how wide floats are, and `without` names passes that are left out. The
    model's quantize nodes are taken out: the graph computes in floating point, and `quantize` uses their
    encodings. With `keep_quant_nodes` they stay, and the graph rounds where the model does. Raises
    UnsupportedError with every node that has no QNN equivalent, ModelError when the file is damaged, and
    DynamicShapeError when a dimension is left open.
    """
    from openqnn.passes import run_passes
    from openqnn.passes.border import warn_of_idle_inputs
    from openqnn.passes.given import settle_given, spread_given
    from openqnn.passes.io import arrange_borders, type_borders
    from openqnn.passes.precision import set_float_width

    prune = DEAD_CODE not in without
    importer = _importer(
        model, input_shapes, dims, batch, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes
    )
    _warn_of_bad_weights(importer.model.arrays)
    if progress is not None:
        importer.on_node = lambda done, total: progress("translate", done, total)
    graph = importer.run()
    spread_given(graph)
    if progress is not None:
        progress("optimise", 0, 1)
    if borders is not None:
        arrange_borders(graph, borders)
    log = run_passes(graph, explain, without=without)
    settle_given(graph, log, importer.model.taken.notes)
    source = {*importer.model.arrays, *(name for node in importer.model.graph.node for name in node.output)}
    graph.merged = frozenset(source - {v.name for v in graph.values()})
    graph.folded = _folded(graph, importer.model.arrays)
    if float_bits is not None:
        set_float_width(graph, float_bits, bias_bits)
    if borders is not None:
        type_borders(graph, borders)
    _check_sizes(graph)
    warn_of_idle_inputs(graph)
    return graph


def _folded(graph: Graph, arrays: Mapping[str, Array]) -> frozenset[str]:
    """The constants that passes computed anew: views of the source are the same numbers in any order."""
    pairs = ((v.name, v.data, arrays.get(v.name)) for v in graph.constants())
    return frozenset(n for n, a, b in pairs if a is not None and b is not None and _differ(a, b))


def _differ(made: Array, source: Array) -> bool:
    if made.size == source.size and np.may_share_memory(made, source):
        return False
    size = lambda array: float(np.abs(array.astype(np.float64)).sum())
    return made.size != source.size or not np.isclose(size(made), size(source), rtol=1e-6)


def _check_sizes(graph: Graph) -> None:
    """QNN has no empty tensors; and a few bytes of shape can ask for more memory than any machine has."""
    for node in graph.nodes:
        for value in node.outputs:
            if 0 in value.shape:
                raise ShapeError(
                    f"{node.where}: its result '{value.name}' {list(value.shape)} has a dimension of size 0;"
                    " QNN has no empty tensors"
                )
            if value.nbytes > LARGEST_TENSOR:
                size = f"{value.nbytes / (1 << 30):,.0f} GiB"
                raise ShapeError(f"{node.where}: its result '{value.name}' {list(value.shape)} takes {size}")


def _importer(
    model: str | os.PathLike[str] | onnx.ModelProto,
    input_shapes: Mapping[str, Sequence[int]] | None,
    dims: Mapping[str, int] | None,
    batch: int | None,
    outputs: Sequence[str] = (),
    *,
    prune: bool = True,
    keep_quant_nodes: bool = False,
) -> Importer:
    from openqnn.frontends.onnx import Dimensions, importer
    from openqnn.frontends.onnx.inputs import is_batch_unused

    said = Dimensions(dict(input_shapes or {}), dict(dims or {}), batch)
    found = importer(model, said, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes)
    infos = [i for i in found.model.graph.input if i.name not in found.model.arrays]
    inputs = [i.name for i in infos]
    for name in input_shapes or {}:
        if name not in inputs:
            raise UsageError(
                f"the model has no input '{name}'", hint=f"its inputs: {', '.join(map(repr, inputs))}"
            )
    if is_batch_unused(said, infos):
        raise UsageError(f"batch {batch} has no effect: no input has it", hint="leave it out")
    symbols = {
        d.dim_param for i in found.model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param
    }
    for name in dims or {}:
        if name not in symbols:
            known = ", ".join(sorted(map(repr, symbols))) or "none"
            raise UsageError(f"the model has no dimension '{name}'", hint=f"its symbols: {known}")
    return found


def _warn_of_bad_weights(arrays: Mapping[str, Array]) -> None:
    bad = [name for name, array in arrays.items() if _is_bad(array)]
    if bad:
        names = ", ".join(f"'{n}'" for n in bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        warnings.warn(f"weights with NaN or infinite values: {names}", OpenQnnWarning, stacklevel=3)


def _is_bad(array: Array) -> bool:
    """A sum finds almost all good tensors in one pass; only a suspicious one is looked at element by
    element."""
    if array.dtype.kind != "f" or not array.size:
        return False
    with np.errstate(all="ignore"):
        return not np.isfinite(array.sum()) and not np.isfinite(array).all()


@dataclass(frozen=True)
class Report:
    """What `check` found: how often each source op is translated, and every node that cannot be."""

    supported: Mapping[str, int]
    problems: Sequence[Problem]
    unused_inputs: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def check(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    outputs: Sequence[str] = (),
) -> Report:
    """A dry run: what is supported, what is not and why; nothing is written."""
    from openqnn.errors import UnsupportedError

    importer = _importer(model, input_shapes, dims, batch, outputs)
    try:
        importer.run()
    except UnsupportedError as e:
        if not e.problems:
            raise
    unused = [v.name for v in importer.graph.inputs if not v.users]
    return Report(dict(importer.covered), tuple(importer.problems), () if importer.problems else unused)


def describe_borders(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int | None = None,
    outputs: Sequence[str] = (),
) -> tuple[list[Described], list[Described]]:
    """Inputs and outputs of a model: type, what the axes seem to mean, shape."""
    from openqnn.formats.custom_io import Described
    from openqnn.passes.io import describe_layout

    graph = _importer(model, input_shapes, dims, batch, outputs).run()
    found = [
        [Described(v.name, graph.ports[v.name].dtype.label, describe_layout(v), v.shape) for v in values]
        for values in (graph.inputs, graph.outputs)
    ]
    return found[0], found[1]


def load(path: str | os.PathLike[str], graph: str = "") -> Graph:
    """A graph from an .oqnn file, a DLC, a model library or a Saver bundle (saver_output.c).

    `graph` chooses one where there are several.
    """
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    if Path(path).suffix == CONTEXT and not is_container(path):
        hint = "a Session runs it, and `openqnn inspect` tells what is in it"
        raise UsageError(f"{path}: no graph can be read from a context binary: it is compiled", hint=hint)
    if Path(path).suffix not in VENDOR_FILES:
        return _sound(load_graph(path), path)
    from openqnn.emit.read import graph_of
    from openqnn.emit.saver_library import read_saver
    from openqnn.qnn.remote import read_dlc, read_model_library

    nets = {DLC: read_dlc, ".so": read_model_library, ".c": read_saver}[Path(path).suffix](path)
    names = [net.name for net in nets]
    if len(nets) > 1 and not graph:
        raise UsageError(f"{path} holds several graphs", hint=f"name one: {', '.join(names)}")
    chosen = next((net for net in nets if graph in ("", net.name)), None)
    if chosen is None:
        raise UsageError(f"{path} has no graph '{graph}'", hint=f"it has: {', '.join(names) or 'none'}")
    found = graph_of(chosen)
    if Path(path).suffix == DLC:
        from openqnn.formats.dlc_metadata import read_record
        from openqnn.ir.text import parse_known

        found.given, found.provenance = parse_known(read_record(path, f"{chosen.name}{KNOWN}"))
    return found


def _sound(graph: Graph, path: str | os.PathLike[str]) -> Graph:
    """A graph that makes sense, or ModelError: any text can stand in a file."""
    from openqnn.ir.verify import verify
    from openqnn.ops import infer_outputs
    from openqnn.ops.schema import OPS

    damaged = "the file is damaged, or of another version: convert the model again"
    unknown = next((node for node in graph.nodes if node.op not in OPS), None)
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
    from openqnn.emit import lower
    from openqnn.emit.compose import with_package
    from openqnn.formats.dlc_metadata import add_metadata, add_record
    from openqnn.formats.files import replacing_path
    from openqnn.ir.text import print_known
    from openqnn.qnn.remote import write_dlc

    names: dict[str, str] = {}
    net = lower(graph, names)
    with replacing_path(path) as temporary:
        write_dlc([with_package(net, package) if package else net], temporary, timeout=DLC_TIMEOUT)
        add_metadata(temporary, metadata or {})
        if graph.given or graph.provenance:
            given = {names[name]: said for name, said in graph.given.items() if name in names}
            sources = {names[name]: source for name, source in graph.provenance.items() if name in names}
            add_record(temporary, f"{net.name}{KNOWN}", print_known(given, sources))


WRITERS[DLC] = save_dlc


def open_graph(path: str | os.PathLike[str], **settings: Any) -> Graph:
    """A graph from a file that holds one, or by converting a model."""
    if not is_container(path) and Path(path).suffix not in VENDOR_FILES:
        return convert(path, **settings)
    check_static(path, settings)
    return load(path)


def check_static(path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """UsageError where a file that holds a graph is given shapes."""
    given = [k for k, v in settings.items() if v and k in ("input_shapes", "dims", "batch")]
    if given:
        raise UsageError(
            f"{path} has static shapes: {given[0]} does not apply", hint="convert the source model again"
        )


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
    from openqnn.compiler import compile_graphs, resolved

    library = resolved(os.fspath(backend))
    opened = graph if isinstance(graph, Graph) else open_graph(graph)
    check_seconds(timeout)
    return compile_graphs([opened], library, soc, timeout, settings)


def check_seconds(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout is {timeout}: it is a number of seconds above 0")


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Arrays that fit the graph's inputs: normal floats, small integers, coin-flip booleans."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for value in graph.inputs:
        port = graph.ports[value.name]
        if is_coded(value, port) or port.dtype.is_float:
            made[value.name] = rng.standard_normal(port.shape).astype(outside_dtype(port).numpy)
        else:
            high = 2 if port.dtype is DType.BOOL_8 else 10
            made[value.name] = rng.integers(0, high, port.shape).astype(port.dtype.numpy)
    return made
