"""What a child process does with the vendor's libraries: every function that one can be asked for.

Each gets a `Reporter` and arguments that can travel, and gives plain records.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import BackendError, InputError
from openqnn.formats.atomic import replacing_path
from openqnn.qnn.context import Context
from openqnn.qnn.context_info import ContextInfo, context_info
from openqnn.qnn.dlc import read_dlc, write_dlc
from openqnn.qnn.graph import Composer, Graph
from openqnn.qnn.htp_config import check_taken
from openqnn.qnn.marshal import Arena
from openqnn.qnn.model_library import read_model_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.qnn.options import DeviceOptions, GraphOptions
from openqnn.qnn.profile import Level, Profile, ProfileEvent
from openqnn.qnn.shared_states import check_caches
from openqnn.qnn.tensor_structs import TensorStructs
from openqnn.vendor.extra_outputs import Wanted, tell_compiled_in, with_wanted
from openqnn.vendor.model import Meter, VendorModel, open_backend, open_system, read_binary, system_beside
from openqnn.vendor.net_run.run_graphs import GraphRun, RunSettings, run_graphs, write_profile
from openqnn.vendor.reserve_memory import keep_freed
from openqnn.vendor.source import Source, nets_of
from openqnn.vendor.standby import is_warm
from openqnn.vendor.target_setup import Profiling, Target
from openqnn.worker.serve import Reporter

if TYPE_CHECKING:
    from openqnn.vendor.throughput.plan import ThroughputPlan
    from openqnn.vendor.throughput.run import ThroughputRun


@dataclass(frozen=True, slots=True)
class Ran:
    """Outputs per set of inputs, and seconds per inference where it was measured."""

    outputs: list[dict[str, Array]]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a compilation made: `size` in bytes, and the seconds in each function of the library."""

    graphs: tuple[str, ...]
    size: int
    seconds: Mapping[str, float]
    info: ContextInfo | None = None


# -- arrays in, arrays out -----------------------------------------------------------------------------------


def run_net(
    net: Net,
    inputs: Sequence[Mapping[str, Array]],
    library: str,
    reporter: Reporter,
    device: DeviceOptions | None = None,
    options: GraphOptions | None = None,
    repeat: int = 0,
    keep: bool = False,
    packages: tuple[OpPackageLibrary, ...] = (),
) -> Ran:
    """Compose, finalize and execute; `repeat` above zero measures as many further inferences.

    A setting that did not take is an error. With `keep` the graph stays compiled, for `run_kept`.
    """
    target = Target(library, device, graphs={} if options is None else {net.name: options}, packages=packages)
    model = VendorModel(target, [net], progress=reporter.step)
    with _kept.holding(library if keep else None, model):
        _check_settings(model, target)
        return _ran(model.graphs[net.name], inputs, repeat)


def run_kept(inputs: Sequence[Mapping[str, Array]], library: str, reporter: Reporter) -> Ran | None:
    """Execute the graph that `run_net` kept; None where this process has none."""
    del reporter  # the one of the task that compiled the graph is still told
    model = _kept.model(library)
    return None if model is None else _ran(next(iter(model.graphs.values())), inputs)


def run_context(
    path: str,
    inputs: Sequence[Mapping[str, Array]],
    library: str,
    reporter: Reporter,
    device: DeviceOptions | None = None,
    graph: str | None = None,
    repeat: int = 0,
    keep: bool = False,
    packages: tuple[OpPackageLibrary, ...] = (),
) -> Ran:
    """Execute one of the graphs of a context binary: the named one, or the only one.

    With `keep` the context stays loaded for the next task, as long as the file is the same.
    """
    file = Path(path).stat()
    key = (path, file.st_ino, file.st_mtime_ns, file.st_size, library, device, packages)
    model = _kept.model(key) if keep else None
    if model is None:
        model = VendorModel(Target(library, device, packages=packages), binary=path, progress=reporter.step)
    with _kept.holding(key if keep else None, model):
        return _ran(model.graphs[_choose(list(model.graphs), graph)], inputs, repeat)


def _ran(graph: Graph, inputs: Sequence[Mapping[str, Array]], repeat: int = 0) -> Ran:
    outputs = [graph.execute(each) for each in inputs]
    return Ran(outputs, graph.bind(inputs[0]).run_many(repeat) if repeat else 0.0)


def _choose(names: list[str], wanted: str | None) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        raise InputError(f"the context binary has the graphs {names}: name one of them, not {wanted!r}")
    return wanted


class _Kept:
    """The model that stays open between the tasks of a worker: one, the last that was asked for."""

    def __init__(self) -> None:
        self._key: object = None
        self._model: VendorModel | None = None

    def model(self, key: object) -> VendorModel | None:
        if key != self._key:
            self._replace(None, None)
        return self._model

    @contextmanager
    def holding(self, key: object, model: VendorModel) -> Generator[None]:
        """Keep the model when the block ends well, unless `key` is None; else close it."""
        is_kept = model is self._model
        try:
            yield
        except BaseException:
            if not is_kept:
                model.close()
            raise
        if key is None:
            model.close()
        elif not is_kept:
            self._replace(key, model)

    def _replace(self, key: object, model: VendorModel | None) -> None:
        before = self._model
        self._key = key
        self._model = model
        if before is not None:
            before.close()


_kept = _Kept()


# -- files in, files out -------------------------------------------------------------------------------------


def run_files(
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
        target, nets, source.binary, meter=Meter(profiling), progress=reporter.step, mapped=mapped
    ) as model:
        if source.binary:
            tell_compiled_in([t.name for g in model.graphs.values() for t in g.outputs], wanted, reporter)
        else:
            _check_settings(model, target)
        reporter.opened()
        return run_graphs(model, settings, Path(folder), reporter)


def suited_nets(source: Source, library: str, wanted: Wanted, reporter: Reporter) -> list[Net]:
    """The graphs of a source as records that suit a library, with what is wanted as outputs."""
    return with_wanted(nets_of(source, library, reporter), wanted, reporter)


def run_throughput(plan: ThroughputPlan, reporter: Reporter) -> ThroughputRun:
    """Run several models, backends and threads at once."""
    from openqnn.vendor.throughput.run import run_plan

    return run_plan(plan, reporter)


def compile_file(
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
        model = VendorModel(target, drafts, meter=Meter(profiling), progress=reporter.step, backend=backend)
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


def _drafts(source: Source, target: Target, wanted: Wanted, reporter: Reporter) -> list[TensorStructs]:
    nets = with_wanted(nets_of(source, target.library, reporter), wanted, reporter)
    check_caches(nets)
    return [TensorStructs(net) for net in nets]


def _fill(drafting: Future[list[TensorStructs]]) -> None:
    for draft in drafting.result():
        draft.fill()


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


def finalize_events(
    net: Net, library: str, reporter: Reporter, device: DeviceOptions | None = None
) -> tuple[ProfileEvent, ...]:
    """Compose and finalize a graph, and give what the library tells of it on the way."""
    meter = Meter(Profiling(Level.BASIC))
    with VendorModel(Target(library, device), [net], meter=meter, progress=reporter.step) as model:
        return tuple(event for measured in model.meter.found for event in measured.events)


def finalize_traced(
    net: Net, library: str, reporter: Reporter, device: DeviceOptions | None = None
) -> tuple[tuple[ProfileEvent, ...], bytes]:
    """Finalize a graph with an optrace: the events, and the schematic that the library leaves in the working
    directory."""
    meter = Meter(Profiling(Level.DETAILED, optrace=True))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with VendorModel(Target(library, device), [net], meter=meter, progress=reporter.step) as model:
            events = tuple(event for measured in model.meter.found for event in measured.events)
        left = sorted(Path(folder).glob("*_schematic.bin"))
        return events, left[0].read_bytes() if left else b""


def execute_events(
    net: Net,
    inputs: Mapping[str, Array],
    library: str,
    reporter: Reporter,
    device: DeviceOptions | None = None,
    level: Level = Level.DETAILED,
    runs: int = 1,
) -> tuple[ProfileEvent, ...]:
    """Execute a graph, and give what the library measured of each node in the last run."""
    with VendorModel(Target(library, device), [net], progress=reporter.step) as model:
        graph = model.graphs[net.name]
        for _ in range(runs - 1):
            graph.execute(inputs)
        with Profile(model.backend, level) as profile:
            graph.execute(inputs, profile.handle)
            return profile.events()


def describe_context(path: str, library: str, reporter: Reporter) -> ContextInfo:
    """What libQnnSystem, which is the library here, says about a context binary."""
    reporter.step(f"read what is in {Path(path).name}")
    return context_info(read_binary(path), open_system(library))


def write_dlc_file(nets: Sequence[Net], path: str, library: str, reporter: Reporter) -> None:
    with open_backend(Target(library), reporter.step) as backend:
        write_dlc(backend, nets, path)


def read_dlc_file(path: str, library: str, reporter: Reporter) -> list[Net]:
    with open_backend(Target(library), reporter.step) as backend:
        return read_dlc(backend, system_beside(library), path)


def read_library(path: str, library: str, reporter: Reporter) -> list[Net]:
    with open_backend(Target(library), reporter.step) as backend:
        return read_model_library(backend, path)


def read_bundle(program: str, folder: str, library: str, reporter: Reporter) -> list[Net]:
    from openqnn.qnn.saver import replay

    with open_backend(Target(library), reporter.step) as backend:
        return replay(backend, program, folder)


def save_bundle(nets: Sequence[Net], folder: str, library: str, reporter: Reporter) -> None:
    from openqnn.qnn.saver import save_nets

    save_nets(nets, folder, library, reporter.step)


# -- verdicts ------------------------------------------------------------------------------------------------


def validate_nodes(
    net: Net,
    nodes: Iterable[int],
    library: str,
    reporter: Reporter,
    device: DeviceOptions | None = None,
    packages: tuple[OpPackageLibrary, ...] = (),
) -> None:
    """Put nodes to the library, one by one; each verdict is sent at once, for the next may be the end."""
    target = Target(library, device, packages=packages)
    with open_backend(target, reporter.step) as backend, Context(backend) as context:
        composer = Composer(backend, context.handle, net, None, Arena())
        for index in nodes:
            node = net.nodes[index]
            try:
                composer.validate(node, composer.config(node))
            except BackendError as error:
                reporter.tell((index, error.message))
            else:
                reporter.tell((index, ""))
