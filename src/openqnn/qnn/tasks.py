"""What a worker process can be asked to do. Each function gets a `Reporter` and picklable arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.errors import BackendError, InputError, ModelError
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.context_info import AGAIN, ContextInfo, context_info
from openqnn.qnn.dlc import read_dlc, write_dlc
from openqnn.qnn.graph import Composer, Graph
from openqnn.qnn.htp_config import check_taken
from openqnn.qnn.marshal import Arena
from openqnn.qnn.model_library import read_model_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions
from openqnn.qnn.profile import Level, Profile, ProfileEvent
from openqnn.qnn.saver import replay, save_nets
from openqnn.qnn.system_api import SystemApi
from openqnn.qnn.worker import Reporter


@dataclass(frozen=True, slots=True)
class Ran:
    """Outputs per set of inputs, seconds per inference where it was measured, and events where profiled."""

    outputs: list[dict[str, Array]]
    seconds: float = 0.0
    finalize_events: tuple[ProfileEvent, ...] = ()
    execute_events: tuple[ProfileEvent, ...] = ()


@contextmanager
def _backend(reporter: Reporter, library: str, device: DeviceOptions | None = None) -> Iterator[Backend]:
    # Nothing to capture: this process's stdout and stderr are not the user's.
    with Backend(library, device, capture=False, progress=reporter.step) as backend:
        backend.api.log.echo = sys.stderr.fileno()
        yield backend


def _system(library: str) -> SystemApi:
    system = SystemApi(library, capture=False)
    system.log.echo = sys.stderr.fileno()
    return system


def run_net(
    reporter: Reporter,
    net: Net,
    inputs: Sequence[Mapping[str, Array]],
    library: str,
    device: DeviceOptions | None = None,
    validate: bool = True,
    repeat: int = 0,
    options: GraphOptions | None = None,
    level: Level | None = None,
    system: str | None = None,
    keep: bool = False,
) -> Ran:
    """Compose, finalize and execute; `repeat` above zero measures as many further inferences.

    With `system`, libQnnSystem reads what was compiled, and a setting that did not take is an error. With
    `keep` the graph stays compiled, for `run_kept`.
    """
    with ExitStack() as unless_kept:
        backend = unless_kept.enter_context(_backend(reporter, library, device))
        context = unless_kept.enter_context(Context(backend))
        graph = context.compose(net, validate=validate, options=options)
        if level is not None:
            return _profiled(backend, graph, inputs, level)
        graph.finalize()
        if system is not None and options is not None:
            check_taken(context_info(context.binary(), _system(system)), {net.name: options}, device)
        ran = _ran(graph, inputs, repeat)
        if keep:
            _kept.hold(library, context, unless_kept.pop_all())
        return ran


def run_kept(reporter: Reporter, inputs: Sequence[Mapping[str, Array]], library: str) -> Ran | None:
    """Execute the graph that `run_net` kept; None where this process has none."""
    del reporter  # the one of the task that compiled the graph is still told
    context = _kept.context(library)
    return context and _ran(next(iter(context.graphs.values())), inputs)


def _ran(graph: Graph, inputs: Sequence[Mapping[str, Array]], repeat: int = 0) -> Ran:
    outputs = [graph.execute(each) for each in inputs]
    return Ran(outputs, graph.bind(inputs[0]).run_many(repeat) if repeat else 0.0)


def _profiled(backend: Backend, graph: Graph, inputs: Sequence[Mapping[str, Array]], level: Level) -> Ran:
    with Profile(backend, level) as compiling, Profile(backend, level) as running:
        graph.finalize(compiling.handle)
        outputs = [graph.execute(each, running.handle) for each in inputs]
        return Ran(outputs, 0.0, compiling.events(), running.events())


def build_context(
    reporter: Reporter,
    nets: Sequence[Net],
    library: str,
    target: str,
    device: DeviceOptions | None = None,
    context_options: ContextOptions | None = None,
    options: Mapping[str, GraphOptions] | None = None,
    system: str | None = None,
    validate: bool = True,
) -> int:
    """Compile graphs into one context binary and write it to `target`; gives its size.

    With `system`, libQnnSystem reads the result, and a setting that did not take is an error.
    """
    chosen = options or {}
    with _backend(reporter, library, device) as backend, Context(backend, context_options) as context:
        for net in nets:
            context.compose(net, validate=validate, options=chosen.get(net.name)).finalize()
        blob = context.binary()
    if system is not None:
        check_taken(context_info(blob, _system(system)), chosen, device, context_options)
    reporter.step(f"write {target}")
    blob.tofile(target)
    return blob.nbytes


def run_context(
    reporter: Reporter,
    path: str,
    inputs: Sequence[Mapping[str, Array]],
    library: str,
    system: str,
    device: DeviceOptions | None = None,
    graph: str | None = None,
    repeat: int = 0,
    keep: bool = False,
) -> Ran:
    """Execute one of the graphs of a context binary: the named one, or the only one.

    With `keep` the context stays loaded for the next task, as long as the file is the same.
    """
    file = Path(path).stat()
    key = (path, file.st_ino, file.st_mtime_ns, file.st_size, library, system, device)
    with ExitStack() as unless_kept:
        context = _kept.context(key) if keep else None
        if context is None:
            context = unless_kept.enter_context(_loaded(reporter, path, library, system, device))
        ran = _ran(context.graphs[_choose(context, graph)], inputs, repeat)
        if keep:
            _kept.hold(key, context, unless_kept.pop_all())
    return ran


@contextmanager
def _loaded(
    reporter: Reporter, path: str, library: str, system: str, device: DeviceOptions | None
) -> Iterator[Context]:
    blob = _map(path)
    reporter.step(f"describe {Path(path).name}")
    info = context_info(blob, _system(system))
    with _backend(reporter, library, device) as backend, Context.from_binary(backend, blob, info) as context:
        yield context


class _Kept:
    """The context that stays loaded between the tasks of a worker: one, the last that was asked for."""

    def __init__(self) -> None:
        self._key: object = None
        self._context: Context | None = None
        self._handles = ExitStack()

    def context(self, key: object) -> Context | None:
        if key != self._key:
            self.hold(None, None, ExitStack())
        return self._context

    def hold(self, key: object, context: Context | None, handles: ExitStack) -> None:
        if context is not None and context is self._context:
            return
        self._handles.close()
        self._key, self._context, self._handles = key, context, handles


_kept = _Kept()


def describe_context(reporter: Reporter, path: str, library: str) -> ContextInfo:
    """What libQnnSystem says about a context binary."""
    reporter.step(f"describe {Path(path).name}")
    return context_info(_map(path), _system(library))


def write_dlc_file(reporter: Reporter, nets: Sequence[Net], path: str, library: str) -> None:
    with _backend(reporter, library) as backend:
        write_dlc(backend, nets, path)


def read_dlc_file(reporter: Reporter, path: str, library: str, system: str) -> list[Net]:
    with _backend(reporter, library) as backend:
        return read_dlc(backend, _system(system), path)


def read_library(reporter: Reporter, path: str, library: str) -> list[Net]:
    with _backend(reporter, library) as backend:
        return read_model_library(backend, path)


def read_bundle(reporter: Reporter, program: str, folder: str, library: str) -> list[Net]:
    with _backend(reporter, library) as backend:
        return replay(backend, program, folder)


def save(reporter: Reporter, nets: Sequence[Net], folder: str, library: str) -> None:
    save_nets(nets, folder, library, reporter.step)


def validate_nodes(
    reporter: Reporter, net: Net, nodes: Iterable[int], library: str, device: DeviceOptions | None = None
) -> None:
    """Put nodes to the library, one by one; each verdict is sent at once, for the next may be the end."""
    with _backend(reporter, library, device) as backend, Context(backend) as context:
        composer = Composer(backend, context.handle, net, None, Arena())
        for index in nodes:
            node = net.nodes[index]
            try:
                composer.validate(node, composer.config(node))
            except BackendError as error:
                reporter.tell((index, error.message))
            else:
                reporter.tell((index, ""))


def _map(path: str) -> Array:
    if not os.path.getsize(path):
        raise ModelError(f"{path}: the file is empty", hint=AGAIN)
    try:
        return np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path}: {error}") from error


def _choose(context: Context, wanted: str | None) -> str:
    names = list(context.graphs)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        raise InputError(f"the context binary has the graphs {names}: name one of them, not {wanted!r}")
    return wanted
