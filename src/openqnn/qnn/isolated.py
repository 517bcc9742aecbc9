"""Run graphs on a vendor library in a child process, so that a crash or a hang becomes an error.

One child serves many graphs; it is started with the first one and again after it had to be given up.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from openqnn.errors import BackendError, UsageError
from openqnn.qnn import capture
from openqnn.qnn.library import find_library
from openqnn.qnn.messages import Answer, Done, Failed, Job, Partial, Step
from openqnn.qnn.net import Array, Net
from openqnn.qnn.options import DeviceOptions

DEFAULT_TIMEOUT = 60.0
_LAST_WORDS = 8

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
        self._child: _Child | None = None
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
        on_partial: Callable[[Any], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """A function of `openqnn.qnn.tasks` in the child; `openqnn.qnn.remote` has them with their types."""
        path = find_library(library)
        if self._folder not in (None, path.parent):
            self.close()  # libraries of two versions get in each other's way
        self._folder = path.parent
        return self._submit(Job(task, path.name, {**arguments, "library": str(path)}), timeout, on_partial)

    def close(self) -> None:
        """End the child; the next graph would start another."""
        with self._lock:
            self._end_child()

    def _submit(self, job: Job, timeout: float, on_partial: Callable[[Any], None] | None) -> Any:
        with self._lock:
            try:
                answer = self._ask(job, timeout, on_partial or _ignore)
            except BaseException:  # an interrupt also leaves the child in the middle of a job
                self._end_child()
                raise
        if isinstance(answer, Failed):
            raise answer.kind(answer.message, hint=answer.hint)
        return answer.value

    def _ask(self, job: Job, timeout: float, on_partial: Callable[[Any], None]) -> Done | Failed:
        if self._child is not None:
            try:
                return self._child.answer(job, timeout, on_partial)
            except _DiedIdleError:
                self._end_child()
        self._child = _Child()
        return self._child.answer(job, timeout, on_partial)

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


class _DiedIdleError(Exception):
    """The child was gone before it got the job, so the job is not to blame."""


class _Child:
    """One process, from its start to its end."""

    def __init__(self) -> None:
        self._output = capture.scratch_file()
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        with theirs:
            self._process = self._start(theirs.fileno())
        self._has_served = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer(self, job: Job, timeout: float, on_partial: Callable[[Any], None]) -> Done | Failed:
        """Hand over a job and wait; a child that dies or stays silent makes an error."""
        step = ""
        deadline = time.monotonic() + timeout
        capture.empty(self._output)
        try:
            self._connection.send(job)
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                message: Answer = self._connection.recv()
                if isinstance(message, Step):
                    step = message.text
                elif isinstance(message, Partial):
                    on_partial(message.value)
                else:
                    self._has_served = True
                    return message
        except (EOFError, ConnectionError):
            if self._has_served and not step:
                raise _DiedIdleError from None
            raise self._crash(job, step) from None
        last = f"last step: {step or 'start'}{self._last_words()}"
        raise BackendError(
            f"{job.subject} gave no answer in {timeout:g} s; {last}",
            hint="allow more time, or check the node's parameters: some combinations make the library hang",
        )

    def end(self) -> None:
        """Stop the process, at work or not; it holds nothing that would need an orderly exit."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        os.close(self._output)

    def _start(self, theirs: int) -> subprocess.Popen[bytes]:
        # The child must find this very package, however the parent came to find it.
        home = str(Path(__file__).parents[2])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "openqnn.qnn.worker", str(theirs), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def _crash(self, job: Job, step: str) -> BackendError:
        end = _describe_exit(self._process.wait())
        return BackendError(
            f"{job.subject} crashed ({end}); last step: {step or 'start'}{self._last_words()}",
            hint="check the node's inputs and parameters: the library does not survive some combinations",
        )

    def _last_words(self) -> str:
        lines = capture.read(self._output).splitlines()
        return "".join(f"\n  log: {line}" for line in lines[-_LAST_WORDS:] if line.strip())


def _device(soc: int | None) -> DeviceOptions | None:
    return None if soc is None else DeviceOptions(soc)


def _ignore(value: Any) -> None:
    del value


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
