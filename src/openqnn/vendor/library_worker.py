"""A child process for jobs on the vendor's libraries, and the one that all share."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from openqnn.errors import UsageError
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor import jobs
from openqnn.worker.messages import Task
from openqnn.worker.worker import Worker

DEFAULT_TIMEOUT = 60.0

Name: TypeAlias = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Timing:
    """Outputs, and how long one inference took inside the child (no transport in it)."""

    outputs: dict[str, Array]
    seconds: float


class LibraryWorker(Worker):
    """A child process that does jobs of `openqnn.vendor.jobs`, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None

    def ask(
        self,
        job: Callable[..., Any],
        library: Name,
        timeout: float | None = DEFAULT_TIMEOUT,
        hear: Callable[[Any], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """A job with a library; it gets the library's full path as `library`."""
        path = find_library(library)
        if self._folder not in (None, path.parent):
            self.close()  # libraries of two versions get in each other's way
        self._folder = path.parent
        return self.call(Task(job, (), {**arguments, "library": str(path)}), path.name, timeout, hear)

    def run(
        self,
        net: Net,
        inputs: Mapping[str, Array],
        library: Name = "cpu",
        *,
        soc: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> dict[str, Array]:
        """Compose, finalize and execute a graph; gives its outputs."""
        ran = self.ask(jobs.run_net, library, timeout, net=net, inputs=[dict(inputs)], device=_device(soc))
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
        """Run a graph once, and `repeat` times more to measure it inside the child."""
        if repeat < 1:
            raise UsageError(f"repeat must be at least 1, not {repeat}")
        ran = self.ask(
            jobs.run_net, library, timeout,
            net=net, inputs=[dict(inputs)], device=_device(soc), repeat=repeat,
        )  # fmt: skip
        return Timing(ran.outputs[0], ran.seconds)


@cache
def shared_worker() -> LibraryWorker:
    """One worker for all who have no reason for their own."""
    worker = LibraryWorker()
    atexit.register(worker.close)
    return worker


def _device(soc: int | None) -> DeviceOptions | None:
    return None if soc is None else DeviceOptions(soc)
