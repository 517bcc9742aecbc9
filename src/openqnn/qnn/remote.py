"""The whole binding in a child process: everything risky, with a crash or a hang turned into an error.

Paths and plain records in, plain records out. Each function takes a `Worker`, or uses the shared one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from openqnn.errors import BackendError, ModelError, OutputError
from openqnn.qnn.context_info import ContextInfo
from openqnn.qnn.isolated import DEFAULT_TIMEOUT, Name, Worker, shared_worker
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions
from openqnn.qnn.profile import Level
from openqnn.qnn.tasks import Ran


class CompiledNet:
    """A graph that a worker of its own compiles for the first run, and keeps for those that follow."""

    def __init__(
        self,
        net: Net,
        library: Name,
        *,
        device: DeviceOptions | None = None,
        options: GraphOptions | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._net, self._library, self._timeout = net, library, timeout
        self._device, self._options = device, options
        self._worker = Worker()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        given = [dict(inputs)]
        return (self._again(given) or self._first(given)).outputs[0]

    def _first(self, inputs: list[dict[str, Array]]) -> Ran:
        return self._worker.call(
            "run_net", self._library, self._timeout,
            net=self._net, inputs=inputs, device=self._device, options=self._options,
            system=_system("system", self._library), keep=True,
        )  # fmt: skip

    def _again(self, inputs: list[dict[str, Array]]) -> Ran | None:
        """None without a child that has the graph; one that died is replaced by one that keeps nothing."""
        if self._worker.pid is None:
            return None
        return self._worker.call("run_kept", self._library, self._timeout, inputs=inputs)

    def close(self) -> None:
        self._worker.close()


def profile_net(
    net: Net,
    inputs: Sequence[Mapping[str, Array]],
    library: Name,
    level: Level = Level.DETAILED,
    *,
    device: DeviceOptions | None = None,
    options: GraphOptions | None = None,
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Ran:
    """Run a graph on each set of inputs, with the events of compiling and of all runs."""
    return _of(worker).call(
        "run_net", library, timeout,
        net=net, inputs=[dict(each) for each in inputs], device=device, options=options, level=level,
    )  # fmt: skip


def build_context(
    nets: Sequence[Net],
    path: str | PathLike[str],
    library: Name = "htp",
    *,
    device: DeviceOptions | None = None,
    context_options: ContextOptions | None = None,
    options: Mapping[str, GraphOptions] | None = None,
    system: Name | None = "system",
    validate: bool = True,
    worker: Worker | None = None,
    timeout: float = 600.0,
) -> int:
    """Compile graphs into one context binary, which appears whole or not at all; gives its size in bytes.

    With `system`, the result is read back, and a setting that did not take is an error.
    """
    target = Path(path).absolute()
    part = _temporary(target)
    try:
        size: int = _of(worker).call(
            "build_context", library, timeout,
            nets=list(nets), target=str(part), device=device, context_options=context_options,
            options=dict(options or {}), system=_system(system, library), validate=validate,
        )  # fmt: skip
        _publish(part, target)
    finally:
        part.unlink(missing_ok=True)
    return size


def run_context(
    path: str | PathLike[str],
    inputs: Sequence[Mapping[str, Array]],
    library: Name = "htp",
    *,
    graph: str | None = None,
    device: DeviceOptions | None = None,
    repeat: int = 0,
    system: Name = "system",
    keep: bool = False,
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Ran:
    """Load a context binary and execute one of its graphs on each set of inputs.

    With `keep` the worker leaves it loaded for the next call, as long as the file stays the same.
    """
    return _of(worker).call(
        "run_context", library, timeout,
        path=_existing(path), inputs=[dict(each) for each in inputs], system=_system(system, library),
        device=device, graph=graph, repeat=repeat, keep=keep,
    )  # fmt: skip


def describe_context(
    path: str | PathLike[str],
    *,
    system: Name = "system",
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> ContextInfo:
    """What is in a context binary."""
    try:
        return _of(worker).call("describe_context", system, timeout, path=_existing(path))
    except BackendError as error:
        raise ModelError(f"{path} is damaged: {error.message}") from error


def write_dlc(
    nets: Sequence[Net],
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Write graphs to a DLC file, which appears whole or not at all."""
    target = str(Path(path).absolute())
    _of(worker).call("write_dlc_file", library, timeout, nets=list(nets), path=target)


def read_dlc(
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    system: Name = "system",
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a DLC file."""
    wanted = _system(system, library)
    try:
        return _of(worker).call("read_dlc_file", library, timeout, path=_existing(path), system=wanted)
    except BackendError as error:
        raise ModelError(f"{path} is damaged: {error.message}") from error


def read_model_library(
    path: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a model library (.so)."""
    return _of(worker).call("read_library", library, timeout, path=_existing(path))


def read_saver(
    program: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    library: Name = "ir",
    worker: Worker | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Net]:
    """The graphs of a Saver bundle in a folder, whose program was built as a library."""
    where = str(Path(folder).absolute())
    return _of(worker).call("read_bundle", library, timeout, program=_existing(program), folder=where)


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
    with Worker() as worker:
        worker.call("save", library, timeout, nets=list(nets), folder=str(target))


def _of(worker: Worker | None) -> Worker:
    return worker or shared_worker()


def _system(system: Name | None, library: Name) -> str | None:
    """libQnnSystem for a backend: of the same folder where nobody says otherwise, since versions must fit."""
    if system is None:
        return None
    beside = find_library(library).with_name("libQnnSystem.so")
    return str(beside if system == "system" and beside.is_file() else find_library(system))


def _existing(path: str | PathLike[str]) -> str:
    file = Path(path).absolute()
    if not file.is_file():
        raise ModelError(f"there is no file {path}")
    return str(file)


def _temporary(target: Path) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".openqnn-")
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
    os.close(descriptor)
    return Path(name)


def _publish(part: Path, target: Path) -> None:
    current = os.umask(0)
    os.umask(current)
    try:
        part.chmod(0o666 & ~current)
        part.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
