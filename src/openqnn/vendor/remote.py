"""The facade of the vendor's libraries: each job in a child process, a crash or a hang turned into an error.

Paths and plain records in, plain records out. Jobs on arrays take a worker, or use the shared one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import BackendError, ModelError, OutputError, ResourceError
from openqnn.qnn.context_info import ContextInfo
from openqnn.qnn.library import can_fork, find_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor import jobs
from openqnn.vendor.extra_outputs import Wanted
from openqnn.vendor.library_worker import DEFAULT_TIMEOUT, LibraryWorker, Name, shared_worker
from openqnn.vendor.model import of_file
from openqnn.vendor.net_run.run_graphs import GraphRun, RunSettings
from openqnn.vendor.source import Source, for_child
from openqnn.vendor.standby import taken_standby
from openqnn.vendor.target_setup import Profiling, Target, check_compiles
from openqnn.worker.run_once import run_once

if TYPE_CHECKING:
    from openqnn.vendor.throughput.plan import ThroughputPlan
    from openqnn.vendor.throughput.run import ThroughputRun

LARGE = 16 << 20  # bytes of weights
DESCRIBING = 120.0  # seconds: a damaged binary can make libQnnSystem loop for ever


class CompiledNet:
    """A graph that a worker of its own compiles for the first run, and keeps for those that follow.

    Without `keep` it is freed at once.
    """

    def __init__(
        self, net: Net, target: Target, *, timeout: float = DEFAULT_TIMEOUT, keep: bool = True
    ) -> None:
        self._net, self._keep = net, keep
        self._target = target
        self._timeout = timeout
        self._worker = LibraryWorker()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        given = [dict(inputs)]
        return (self._again(given) or self._first(given)).outputs[0]

    def _first(self, inputs: list[dict[str, Array]]) -> jobs.Ran:
        return self._worker.ask(
            jobs.run_net, self._target.library, self._timeout,
            net=self._net, inputs=inputs, device=self._target.device,
            options=self._target.options_of(self._net.name), keep=self._keep, packages=self._target.packages,
        )  # fmt: skip

    def _again(self, inputs: list[dict[str, Array]]) -> jobs.Ran | None:
        """None without a child that has the graph; one that died is replaced by one that keeps nothing."""
        if self._worker.pid is None:
            return None
        return self._worker.ask(jobs.run_kept, self._target.library, self._timeout, inputs=inputs)

    def close(self) -> None:
        self._worker.close()


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
) -> jobs.Compiled:
    """Compile in a child process, into a file where one is named."""
    check_compiles(target.library)
    return run_once(
        jobs.compile_file, for_child(source, target.library), target, wanted or Wanted(),
        profiling or Profiling(), file, folder,
        name=Path(target.library).name, fork=can_fork(), timeout=timeout, log=log, note=note,
        waiting=taken_standby(target.library, fits=not source.graphs),
    )  # fmt: skip


def run_files(
    source: Source,
    target: Target,
    settings: RunSettings,
    folder: str | PathLike[str],
    wanted: Wanted | None = None,
    profiling: Profiling | None = None,
    *,
    mapped: bool = True,
    timeout: float | None = None,
    opening: float | None = None,
    log: Callable[[str], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[GraphRun]:
    """Run a source on files in a child process, with the results in a folder.

    `opening` is the time limit for loading a context binary.
    """
    return run_once(
        jobs.run_files, for_child(source, target.library), target, settings, wanted or Wanted(),
        profiling or Profiling(), str(folder), mapped,
        name=Path(target.library).name, fork=can_fork(), timeout=timeout, opening=opening, log=log,
        note=note, waiting=taken_standby(target.library, fits=not source.graphs),
    )  # fmt: skip


def suited_nets(
    source: Source, library: str, wanted: Wanted, *, note: Callable[[str], None] | None = None
) -> list[Net]:
    """The graphs of a source as records that suit a library, read in a child process."""
    return run_once(
        jobs.suited_nets, for_child(source, library), library, wanted,
        name="libQnnIr.so", fork=can_fork(), note=note,
    )  # fmt: skip


def run_throughput(
    plan: ThroughputPlan,
    *,
    log: Callable[[str], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ThroughputRun:
    """Run several models, backends and threads at once, all in one child process."""
    libraries = sorted({Path(backend.target.library).name for backend in plan.backends.values()})
    models = {
        name: replace(model, source=for_child(model.source, _library_of(plan, name)))
        for name, model in plan.models.items()
    }
    return run_once(
        jobs.run_throughput, replace(plan, models=models),
        name=" or ".join(libraries), fork=can_fork(), log=log, note=note,
    )  # fmt: skip


def _library_of(plan: ThroughputPlan, model: str) -> str:
    """The library that a model runs on; the first, where it runs on several."""
    thread = next(thread for thread in plan.config.threads if thread.model == model)
    return plan.backends[thread.backend].target.library


def run_context(
    path: str | PathLike[str],
    inputs: Sequence[Mapping[str, Array]],
    library: Name = "htp",
    *,
    graph: str | None = None,
    device: DeviceOptions | None = None,
    repeat: int = 0,
    keep: bool = False,
    packages: tuple[OpPackageLibrary, ...] = (),
    worker: LibraryWorker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> jobs.Ran:
    """Load a context binary and execute one of its graphs on each set of inputs.

    With `keep` the worker leaves it loaded for the next call, as long as the file stays the same.
    """
    return _of(worker).ask(
        jobs.run_context, library, timeout,
        path=_existing(path), inputs=[dict(each) for each in inputs],
        device=device, graph=graph, repeat=repeat, keep=keep, packages=packages,
    )  # fmt: skip


def describe_context(
    path: str | PathLike[str],
    *,
    system: Name = "system",
    worker: LibraryWorker | None = None,
    timeout: float = DESCRIBING,
) -> ContextInfo:
    """What is in a context binary; the message about a damaged one names the file."""
    file = _existing(path)
    try:
        if worker is None and can_fork():  # a copy of this process is sooner at work than a new interpreter
            library = find_library(system)
            return run_once(
                jobs.describe_context, file, str(library), name=library.name, fork=True, timeout=timeout
            )
        return _of(worker).ask(jobs.describe_context, system, timeout, path=file)
    except ResourceError:
        raise
    except BackendError as error:
        raise ModelError(f"{path} is damaged: {error.message}") from error
    except ModelError as error:
        error.message = error.message.replace(file, str(path))
        raise of_file(path, error) from error


def write_dlc(
    nets: Sequence[Net],
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: LibraryWorker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Write graphs to a DLC file, which appears whole or not at all.

    Large weights go to a copy of this process, which has them already: to be sent they would be copied twice.
    """
    target = str(Path(path).absolute())
    if worker is None and can_fork() and _weights_size(nets) > LARGE:
        found = find_library(library)
        run_once(
            jobs.write_dlc_file, list(nets), target, str(found),
            name=found.name, fork=True, timeout=timeout,
        )  # fmt: skip
        return
    _of(worker).ask(jobs.write_dlc_file, library, timeout, nets=list(nets), path=target)


def _weights_size(nets: Sequence[Net]) -> int:
    return sum(t.data.nbytes for net in nets for t in net.tensors.values() if t.data is not None)


def read_dlc(
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: LibraryWorker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a DLC file."""
    file = _existing(path)
    try:
        return _of(worker).ask(jobs.read_dlc_file, library, timeout, path=file)
    except ResourceError:
        raise
    except BackendError as error:
        raise ModelError(f"{path} is damaged: {error.message}") from error


def read_model_library(
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: LibraryWorker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a model library (.so)."""
    return _of(worker).ask(jobs.read_library, library, timeout, path=_existing(path))


def read_saver(
    program: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: LibraryWorker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a Saver bundle in a folder, whose program was built as a library."""
    where = str(Path(folder).absolute())
    return _of(worker).ask(jobs.read_bundle, library, timeout, program=_existing(program), folder=where)


def save_bundle(
    nets: Sequence[Net],
    folder: str | PathLike[str],
    *,
    library: Name = "saver",
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Record graphs as a Saver bundle, in a child of its own: the library works once per process."""
    target = Path(folder).absolute()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {target}: {error.strerror}") from error
    with LibraryWorker() as worker:
        worker.ask(jobs.save_bundle, library, timeout, nets=list(nets), folder=str(target))


def _of(worker: LibraryWorker | None) -> LibraryWorker:
    return worker or shared_worker()


def _existing(path: str | PathLike[str]) -> str:
    file = Path(path).absolute()
    if not file.is_file():
        raise ModelError(f"there is no file {path}")
    return str(file)
