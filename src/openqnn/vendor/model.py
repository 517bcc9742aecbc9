"""Graphs on a vendor library, in this process: composed from records, or loaded from a context binary."""

from __future__ import annotations

import errno
import mmap
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np

from openqnn.errors import BackendError, ModelError, UsageError
from openqnn.formats.sniff import other_than_context
from openqnn.qnn.backend import Backend, Progress
from openqnn.qnn.binding import Slot
from openqnn.qnn.context import Context
from openqnn.qnn.context_info import AGAIN, ContextInfo, context_info
from openqnn.qnn.graph import Composer, Graph
from openqnn.qnn.marshal import Arena
from openqnn.qnn.net import Array, Net
from openqnn.qnn.op_package_library import hinted, register_op_package
from openqnn.qnn.profile import Profile
from openqnn.qnn.profile_log import Measured, Method
from openqnn.qnn.soc import find_soc
from openqnn.qnn.system_api import SystemApi
from openqnn.qnn.tensor_structs import TensorStructs
from openqnn.vendor.target_setup import Profiling, Target

T = TypeVar("T")


class Meter:
    """Measures calls for the profiling log; does nothing but call while no level is set."""

    def __init__(self, profiling: Profiling | None = None) -> None:
        asked = profiling or Profiling()
        self.level = asked.level
        self._times = asked.times or asked.level is not None
        self._optrace = asked.optrace
        self.found: list[Measured] = []

    @property
    def active(self) -> bool:
        return self._times

    def call(self, backend: Backend, method: Method, graph: str, function: Callable[[Any], T]) -> T:
        """`function(handle)`; the handle is None when the library is not to measure."""
        if not self._times:
            return function(None)
        if self.level is None:
            start = now()
            result = function(None)
            self.found.append(Measured(method, (), graph, start, now()))
            return result
        with Profile(backend, self.level, optrace=self._optrace) as profile:
            start = now()
            result = function(profile.handle)
            self.found.append(Measured(method, profile.events(), graph, start, now()))
        return result


def now() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


class VendorModel:
    """A backend, one context on it, and the graphs in the context, ready to run. A context manager.

    `backend` is one that was opened before; a draft stands for its net and has part of the work done.
    """

    def __init__(
        self,
        target: Target,
        nets: Sequence[Net | TensorStructs] = (),
        binary: str | PathLike[str] = "",
        *,
        meter: Meter | None = None,
        progress: Progress | None = None,
        mapped: bool = True,
        backend: Backend | None = None,
    ) -> None:
        self.meter, self._handles = meter or Meter(), ExitStack()
        self.arena = Arena()
        with ExitStack() as on_failure:
            on_failure.push(self._handles)
            self.backend = self._handles.enter_context(backend or open_backend(target, progress))
            self.context = self._load(target, binary, mapped) if binary else self._compose(target, nets)
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._handles.close()

    @property
    def graphs(self) -> dict[str, Graph]:
        return self.context.graphs

    def save(self, path: str | PathLike[str]) -> Array:
        """Write the compiled context to an empty file, and give its bytes."""
        with open(path, "r+b") as file:
            if not _can_map(file):
                blob = self.context.binary()
                file.write(blob.data)
                return blob
            blob = self.context.binary(lambda size: _mapped(file, size))
            file.truncate(blob.nbytes)
            return blob

    def _compose(self, target: Target, given: Sequence[Net | TensorStructs]) -> Context:
        context = self._handles.enter_context(Context(self.backend, target.context))
        drafts = {item.net.name: item for item in given if isinstance(item, TensorStructs)}
        nets = [item.net if isinstance(item, TensorStructs) else item for item in given]
        _check_named((*target.graphs, *target.named), [net.name for net in nets])
        for net in nets:
            try:
                graph = context.compose(net, options=target.options_of(net.name), draft=drafts.get(net.name))
            except BackendError as error:
                packages = self.backend.packages
                raise hinted(error, packages, is_htp=self.backend.is_htp) from error
            self.meter.call(self.backend, Method.FINALIZE, net.name, graph.finalize)
        return context

    def _load(self, target: Target, path: str | PathLike[str], mapped: bool) -> Context:
        blob = read_binary(path, mapped)
        self.backend.progress(f"read what is in {Path(path).name}")
        try:
            info = context_info(blob, system_beside(target.library))
            _check_named(target.named, [graph.name for graph in info.graphs])
            info = _selected(info, target.enabled)
        except ModelError as error:
            raise of_file(path, error) from error
        if target.asked and target.device is not None:
            check_soc(path, info, target.device.soc)
        context = self.meter.call(
            self.backend, Method.CREATE_FROM_BINARY, "",
            lambda handle: Context.from_binary(self.backend, blob, info, target.context, handle),
        )  # fmt: skip
        return self._handles.enter_context(context)


def _mapped(file: BinaryIO, size: int) -> Array:
    """The file as memory, which saves writing it from other memory."""
    os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, and would be a crash later
    return np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)


def _can_map(file: BinaryIO) -> bool:
    """Not every file system lets files be memory."""
    try:
        _mapped(file, mmap.PAGESIZE)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        return False
    return True


def open_backend(target: Target, progress: Progress | None = None, *, warm: bool = False) -> Backend:
    """A target's library in a process of its own. A `warm` one has done what it does for its first graph."""
    backend = Backend(
        target.library, target.device, capture=False, log_level=target.log_level, progress=progress
    )
    backend.api.log.echo = sys.stderr.fileno()  # where a crash leaves it
    for package in target.packages:
        backend.progress(f"register op package {Path(package.path).name}")
        register_op_package(backend.api, backend.handle, package)
        backend.packages.append(Path(package.path).name)
    if warm and backend.is_htp:
        with Context(backend) as context:
            Composer(backend, context.handle, Net("warm", {}, (), (), ()), None, Arena())
    return backend


def system_beside(library: str | PathLike[str]) -> SystemApi:
    """libQnnSystem of the same build where it stands beside the library: an older one misreads it."""
    beside = Path(library).with_name("libQnnSystem.so")
    return open_system(beside if beside.is_file() else "system")


def open_system(library: str | PathLike[str] = "system") -> SystemApi:
    """libQnnSystem in a process of its own."""
    system = SystemApi(library, capture=False)
    system.log.echo = sys.stderr.fileno()  # where a crash leaves it
    return system


def of_file(path: str | PathLike[str], error: ModelError) -> ModelError:
    """What is wrong with a context binary, with the file's name and what it may be instead."""
    name = "" if str(path) in error.message else f"{path}: "
    return ModelError(f"{name}{error.message}", hint=other_than_context(path) or error.hint)


def check_soc(path: str | PathLike[str], info: ContextInfo, soc: str | int | None) -> None:
    """A binary runs as the chip that it was compiled for; that it should run as another cannot be had."""
    if soc is None or not info.soc_model or info.soc_model == find_soc(soc).model:
        return
    raise UsageError(
        f"{path} is compiled for {find_soc(info.soc_model)}, not for {find_soc(soc)}",
        hint="compile the model again for that SoC, or name none; `openqnn context check` tells whether"
        " the binary loads on it",
    )


def _check_named(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name and name not in known:
            raise ModelError(f"the configuration is for graph '{name}'; the graphs are {known}")


def _selected(info: ContextInfo, enabled: Sequence[str]) -> ContextInfo:
    known = [graph.name for graph in info.graphs]
    for name in enabled:
        if name not in known:
            raise ModelError(f"enable_graphs names '{name}'; the binary has {known}")
    if not enabled:
        return info
    return replace(info, graphs=tuple(graph for graph in info.graphs if graph.name in enabled))


def read_binary(path: str | PathLike[str], mapped: bool = True) -> Array:
    """A context binary's bytes, memory-mapped unless told otherwise."""
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{path}: no such file")
    if not file.stat().st_size:
        raise ModelError(f"{path}: the file is empty", hint=AGAIN)
    try:
        return np.memmap(file, np.uint8, "r") if mapped else np.fromfile(file, np.uint8)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error


def multiplied(model: VendorModel, graph: Graph, factor: int) -> Graph:
    """The graph with inputs and outputs of so many times the batch that it was composed with."""
    if factor == 1:
        return graph
    backend, arena = model.backend, model.arena
    if not backend.is_htp:  # libQnnCpu takes such tensors without a word and computes the first part only
        raise BackendError(
            f"{backend.api.library.name} runs the batch that the graph was composed with and no other",
            hint="leave --batch_multiplier out, or convert the model with a larger batch",
        )

    def grown(slot: Slot) -> Slot:
        tensor = replace(slot.tensor, dims=(slot.tensor.dims[0] * factor, *slot.tensor.dims[1:]))
        struct = arena.tensor(tensor)
        struct.body.v1.id = slot.struct.body.v1.id
        return Slot(tensor, struct)

    inputs, outputs = ([grown(slot) for slot in slots] for slots in graph._slots)  # pyright: ignore[reportPrivateUsage]
    return Graph(backend, graph.name, graph.handle, inputs, outputs, finalized=True, subject=graph.subject)
