"""Any source on a vendor library: nets from graphs, DLC files and model libraries; jobs for a child process.

The jobs run where a crash of a library does no harm, see `openqnn.runtime.guard`. Only they touch libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from openqnn.errors import ModelError, OpenQnnError, UsageError
from openqnn.formats.atomic import Parked, replacing_path
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.child import can_fork
from openqnn.qnn.context_info import ContextInfo, context_info
from openqnn.qnn.dlc import read_dlc
from openqnn.qnn.htp_config import check_memory, check_taken, graph_options
from openqnn.qnn.library import find_library, is_htp
from openqnn.qnn.memory import keep_freed
from openqnn.qnn.model_library import read_model_library
from openqnn.qnn.net import Array, Net, without_idle
from openqnn.qnn.options import DeviceOptions, GraphOptions
from openqnn.qnn.profile import Level
from openqnn.qnn.soc import find_soc
from openqnn.qnn.system_api import SystemApi
from openqnn.qnn.tensor_structs import Draft
from openqnn.qnn.worker import Reporter
from openqnn.runtime.guard import guarded
from openqnn.runtime.net_run import GraphRun, RunSettings, run_graphs, write_profile
from openqnn.runtime.standby import is_warm, taken
from openqnn.runtime.vendor import (
    Meter,
    Target,
    VendorModel,
    of_file,
    open_backend,
    read_binary,
    system_beside,
)
from openqnn.runtime.wanted import Wanted, tell_compiled_in, with_wanted

if TYPE_CHECKING:  # takes long to import, and is for child processes
    from openqnn.emit.boundary import Suited
    from openqnn.ir import Graph

Settings: TypeAlias = Mapping[str, bool | float]
"""Of HTP's graphs, by the names that they have in its file."""
IR_LIBRARY, SAVER_LIBRARY = "libQnnIr", "libQnnSaver"


@dataclass(frozen=True, slots=True)
class Source:
    """Where graphs come from: graphs, their records, files that hold them, or a context binary."""

    graphs: tuple[Graph, ...] = ()
    nets: tuple[Net, ...] = ()
    files: tuple[str, ...] = ()
    binary: str = ""
    prefix: str = "QnnModel"


@dataclass(frozen=True, slots=True)
class Profiling:
    """What is measured: `level` by the library, `times` by us alone."""

    level: Level | None = None
    times: bool = False
    optrace: bool = False

    def meter(self) -> Meter:
        return Meter(self.level, times=self.times, optrace=self.optrace)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a compilation made: `size` in bytes, and the seconds in each function of the library."""

    graphs: tuple[str, ...]
    size: int
    seconds: Mapping[str, float]
    info: ContextInfo | None = None


def check_computes(library: str) -> None:
    """libQnnIr takes part like a backend, and gives out memory that nothing was written to."""
    if Path(library).name.startswith(IR_LIBRARY):
        raise UsageError(
            f"{Path(library).name} writes DLC files and computes nothing",
            hint="qairt-converter writes a DLC file; --backend htp or cpu runs it",
        )


def check_compiles(library: str) -> None:
    """Two libraries take part like backends and end in nothing, or in a program that stops in the middle."""
    if Path(library).name.startswith((IR_LIBRARY, SAVER_LIBRARY)):
        raise UsageError(
            f"{Path(library).name} makes no context binaries",
            hint="--backend htp or cpu does; qairt-converter writes a DLC file, and "
            "qnn-net-run --backend saver a Saver program",
        )


def net_of(graph: Graph, library: str) -> Net:
    """A graph as records that suit a library."""
    from openqnn.emit import lower

    return lower(suited(graph, library))


def suited(graph: Graph, library: str, *, of_file: bool = False) -> Graph:
    from openqnn.passes.suit import suit, suit_file

    return (suit_file if of_file else suit)(graph, Path(library).name)


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


def read_nets(path: str, reporter: Reporter, prefix: str = "QnnModel") -> list[Net]:
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
    from openqnn.emit.boundary import Suited, border_changes

    made = without_idle(net)
    known = is_htp(library) or any(tensor.quant for tensor in net.tensors.values())
    graph = _graph_of(net) if known else None
    if graph is not None and (better := suited(graph, library, of_file=True)) is not graph:
        made = lower(better)
    return Suited(made, tuple(border_changes(net, made)))


def _graph_of(net: Net) -> Graph | None:
    """The graph behind the records; None where an operation is not one that is known here."""
    from openqnn.emit.graph_from_net import graph_of

    try:
        return graph_of(net)
    except ModelError:
        return None


def run_job(
    source: Source,
    target: Target,
    settings: RunSettings,
    wanted: Wanted,
    profiling: Profiling,
    folder: str,
    mapped: bool,
    reporter: Reporter,
) -> list[GraphRun]:
    """Run a source on files, with results in a folder."""
    nets = [] if source.binary else with_wanted(nets_of(source, target.library, reporter), wanted, reporter)
    with VendorModel(
        target, nets, source.binary, meter=profiling.meter(), progress=reporter.step, mapped=mapped
    ) as model:
        if source.binary:
            tell_compiled_in([t.name for g in model.graphs.values() for t in g.outputs], wanted, reporter)
        else:
            _check_settings(model, target)
        reporter.opened()
        return run_graphs(model, settings, Path(folder), reporter)


def compile_job(
    source: Source,
    target: Target,
    wanted: Wanted,
    profiling: Profiling,
    file: str,
    folder: str,
    reporter: Reporter,
) -> Compiled:
    """Compile a source into one context and write it to a file ("" writes none).

    The graphs get ready in a thread while the library does, and the library stays in this one: each thread
    that enters it costs 5 MB, and memory that is allocated in others grows page by page. Nothing is freed at
    the end: the process that this runs in is done with its answer.
    """
    keep_freed()
    blob = info = None
    with ThreadPoolExecutor(1) as aside:
        drafting = aside.submit(_drafts, source, target, wanted, reporter)
        aside.submit(_fill, drafting)
        backend = open_backend(target, reporter.step, warm=not is_warm())
        drafts = drafting.result()
        # Not before: two libraries that are loaded at once hold each other up.
        loading = aside.submit(system_beside, target.library) if file else None
        model = VendorModel(target, drafts, meter=profiling.meter(), progress=reporter.step, backend=backend)
        system = loading.result() if loading else None
    if system is not None:
        with replacing_path(file) as temporary:
            blob = model.save(temporary)
            info = context_info(blob, system)
            check_taken(info, _asked(target, list(model.graphs)), target.device, target.context)
    else:
        _check_settings(model, target)
    if model.meter.active and folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_profile(model, Path(folder), "qnn-context-binary-generator")
    size = 0 if blob is None else int(blob.nbytes)
    reporter.hold(model, blob)
    return Compiled(tuple(model.graphs), size, dict(backend.api.seconds), info)


def _drafts(source: Source, target: Target, wanted: Wanted, reporter: Reporter) -> list[Draft]:
    return [Draft(net) for net in with_wanted(nets_of(source, target.library, reporter), wanted, reporter)]


def _fill(drafting: Future[list[Draft]]) -> None:
    for draft in drafting.result():
        draft.fill()


def for_child(source: Source, library: str) -> Source:
    """What a job can be given: records travel to another process, and graphs only to a copy of this one."""
    if can_fork():
        return source
    nets = tuple(net_of(graph, library) for graph in source.graphs)
    return replace(source, graphs=(), nets=(*nets, *source.nets))


def compile_source(
    source: Source,
    target: Target,
    wanted: Wanted | None = None,
    profiling: Profiling | None = None,
    *,
    file: str = "",
    folder: str = "",
    timeout: float | None = None,
    log: Callable[[str], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> Compiled:
    """Compile in a child process, into a file where one is named."""
    check_compiles(target.library)
    return guarded(
        compile_job, for_child(source, target.library), target, wanted or Wanted(), profiling or Profiling(),
        file, folder,
        name=Path(target.library).name, timeout=timeout, log=log, note=note,
        waiting=taken(target.library, fits=not source.graphs),
    )  # fmt: skip


def info_job(path: str, reporter: Reporter) -> ContextInfo:
    """What is in a context binary."""
    reporter.step(f"read what is in {Path(path).name}")
    try:
        return context_info(read_binary(path), capture=False)
    except ModelError as error:
        raise of_file(path, error) from error


def _asked(target: Target, graphs: Sequence[str]) -> dict[str, GraphOptions]:
    """The options of each graph, where it has any."""
    found = {name: target.options_of(name) for name in graphs}
    return {name: options for name, options in found.items() if options is not None}


def _check_settings(model: VendorModel, target: Target) -> None:
    """The library takes settings that it does not follow, and only the compiled context tells which.

    That takes time, and is left out where there are none.
    """
    asked = _asked(target, list(model.graphs))
    by_arch = target.device is not None and target.device.arch is not None
    if asked or by_arch or (target.context is not None and target.context.weight_sharing):
        info = context_info(model.context.binary(), system_beside(target.library))
        check_taken(info, asked, target.device, target.context)


def source_of(paths: Sequence[str], prefix: str = "QnnModel") -> Source:
    """The files of a command line; a context binary stands alone."""
    if any(Path(path).suffix == ".bin" for path in paths):
        if len(paths) > 1:
            raise UsageError("a context binary is opened alone: its graphs are compiled together already")
        return Source(binary=paths[0])
    return Source(files=tuple(paths), prefix=prefix)


def resolved(library: str) -> str:
    """The library's full path."""
    return str(find_library(library))


def check_binary_name(path: str | PathLike[str]) -> None:
    """UsageError for names that other kinds of files have."""
    if Path(path).suffix in (".dlc", ".so", ".oqnn"):
        hint = "save the graph itself to have it as .oqnn or .dlc"
        raise UsageError(f"{path}: a compiled context is saved as .bin or .onnx", hint=hint)


@dataclass(frozen=True, slots=True, repr=False)
class CompiledContext:
    """Graphs as a library compiled them. `save` writes a context binary, or an EPContext model for .onnx."""

    file: Parked
    info: ContextInfo
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """The time that the library took, by its functions."""

    def __repr__(self) -> str:
        backend = abi.backend_name(self.info.backend_id)
        chip = f", {find_soc(self.info.soc_model)}" if self.info.soc_model else ""
        return f"<CompiledContext of {', '.join(self.graphs)} for {backend}{chip}>"

    @property
    def graphs(self) -> tuple[str, ...]:
        return tuple(graph.name for graph in self.info.graphs)

    @property
    def blob(self) -> Array:
        """The context binary, read anew each time."""
        return np.frombuffer(self.file.read(), np.uint8)

    def save(self, path: str | PathLike[str]) -> None:
        """The file appears whole or not at all."""
        check_binary_name(path)
        if Path(path).suffix == ".onnx":
            from openqnn.emit.epcontext import write_epcontext

            write_epcontext(path, self.blob, self.info)
        else:
            self.file.put(path)


def compile_graphs(
    graphs: Sequence[Graph],
    library: str,
    soc: str | int | None = None,
    timeout: float | None = None,
    settings: Settings | None = None,
) -> CompiledContext:
    """Compile in a child process. HTP compiles for SM8650 unless another SoC is named."""
    path = resolved(library)
    device = device_of(path, soc)
    options = options_of(path, device, settings)
    target = Target(path, device, graphs={} if options is None else {"": options})
    file = Parked("context.bin")
    made = compile_source(Source(tuple(graphs)), target, file=str(file.path), timeout=timeout)
    assert made.info is not None
    return CompiledContext(file, made.info, made.seconds)


def device_of(library: str, soc: str | int | None) -> DeviceOptions | None:
    if is_htp(library):
        return DeviceOptions(find_soc(soc).model)
    if soc is not None:
        raise UsageError(f"a SoC can only be chosen for HTP, not for {Path(library).name}")
    return None


def options_of(library: str, device: DeviceOptions | None, settings: Settings | None) -> GraphOptions | None:
    if not settings:
        return None
    if not is_htp(library):
        raise UsageError(f"settings are those of HTP, and {Path(library).name} is not HTP")
    options = graph_options(settings)
    check_memory("settings", device, {"": options})
    return options
