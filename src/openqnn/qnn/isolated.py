"""Run graphs on a vendor library in a child process, so that a crash or a hang becomes an error.

One child serves many graphs; it is started with the first one and again after it had to be given up.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from openqnn.errors import UsageError
from openqnn.qnn import tasks
from openqnn.qnn.child import Child, DiedIdleError
from openqnn.qnn.library import find_library
from openqnn.qnn.messages import Done, Failed, Task
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import DeviceOptions

DEFAULT_TIMEOUT = 60.0

Name: TypeAlias = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Timing:
    """Outputs, and how long one inference took inside the child (no transport in it)."""

    outputs: dict[str, Array]
    seconds: float


class Worker:
    """A child process that runs graphs. Use it as a context manager, or call `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is a child."""
        return self._child.pid if self._child else None

    def run(
        self,
        net: Net,
        inputs: Mapping[str, Array],
        library: Name = "cpu",
        *,
        soc: int | None = None,
        validate: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> dict[str, Array]:
        """Compose, finalize and execute a graph; gives its outputs."""
        ran = self.call(
            "run_net", library, timeout,
            net=net, inputs=[dict(inputs)], device=_device(soc), validate=validate,
        )  # fmt: skip
        return ran.outputs[0]

    def measure(
        self,
        net: Net,
        inputs: Mapping[str, Array],
        repeat: int,
        library: Name = "cpu",
        *,
        soc: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Timing:
        """The same with `repeat` further inferences, measured inside the child."""
        if repeat < 1:
            raise UsageError(f"repeat must be at least 1, not {repeat}")
        ran = self.call(
            "run_net", library, timeout,
            net=net, inputs=[dict(inputs)], device=_device(soc), repeat=repeat,
        )  # fmt: skip
        return Timing(ran.outputs[0], ran.seconds)

    def call(
        self,
        task: str,
        library: Name,
        timeout: float = DEFAULT_TIMEOUT,
        hear: Callable[[Any], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """A function of `openqnn.qnn.tasks` in the child; `openqnn.qnn.remote` has them with their types."""
        path = find_library(library)
        if self._folder not in (None, path.parent):
            self.close()  # libraries of two versions get in each other's way
        self._folder = path.parent
        job = Task(getattr(tasks, task), (), {**arguments, "library": str(path)})
        return self._submit(job, path.name, timeout, hear)

    def close(self) -> None:
        """End the child; the next graph would start another."""
        with self._lock:
            self._end_child()

    def _submit(self, task: Task, name: str, timeout: float, hear: Callable[[Any], None] | None) -> Any:
        with self._lock:
            try:
                answer = self._ask(task, name, timeout, hear)
            except BaseException:  # an interrupt also leaves the child in the middle of a task
                self._end_child()
                raise
        if isinstance(answer, Failed):
            raise answer.error
        return answer.value

    def _ask(
        self, task: Task, name: str, timeout: float, hear: Callable[[Any], None] | None
    ) -> Done | Failed:
        if self._child is not None:
            try:
                return self._child.ask(task, name, timeout, hear)
            except DiedIdleError:
                self._end_child()
        self._child = Child()
        return self._child.ask(task, name, timeout, hear)

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


def run_isolated(
    net: Net,
    inputs: Mapping[str, Array],
    library: str | PathLike[str] = "cpu",
    timeout: float = DEFAULT_TIMEOUT,
    *,
    soc: int | None = None,
    validate: bool = True,
) -> dict[str, Array]:
    """Run a graph in the process's shared worker."""
    return shared_worker().run(net, inputs, library, soc=soc, validate=validate, timeout=timeout)


def measure_isolated(
    net: Net,
    inputs: Mapping[str, Array],
    repeat: int,
    library: str | PathLike[str] = "cpu",
    timeout: float = DEFAULT_TIMEOUT,
    *,
    soc: int | None = None,
) -> Timing:
    """Measure a graph in the process's shared worker."""
    return shared_worker().measure(net, inputs, repeat, library, soc=soc, timeout=timeout)


@cache
def shared_worker() -> Worker:
    """One worker for all who have no reason for their own."""
    worker = Worker()
    atexit.register(worker.close)
    return worker


if hasattr(os, "register_at_fork"):  # a copy of this process must not speak with the original's child
    os.register_at_fork(after_in_child=lambda: shared_worker.cache_clear())


def _device(soc: int | None) -> DeviceOptions | None:
    return None if soc is None else DeviceOptions(soc)
