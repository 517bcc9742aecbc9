"""Run a function in a child process, so that a crash or a hang of a vendor library becomes one message.

The child serves one job and ends. Only the job and its answer travel between the processes; arrays of the
inferences stay in the child, which reads and writes the files itself.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from openqnn.errors import BackendError, OpenQnnError
from openqnn.qnn import capture

_LAST_WORDS = 8
_PATIENCE = 3600.0  # seconds: the longest that a poll waits before it looks at the deadline again
_BETWEEN_STEPS = 0.2


@dataclass(frozen=True, slots=True)
class Task:
    """What the child is to do: a function of a module, its arguments, and how messages call the work."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What the child is about to do."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    result: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """An error to be raised in the parent."""

    kind: type[OpenQnnError]
    message: str
    hint: str


class Reporter:
    """The child's way to tell how far it is; given to the function as its last argument."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection
        self._last = 0.0

    def step(self, text: str) -> None:
        """Before every step that may not come back."""
        if self._connection is not None:
            self._connection.send(Step(text))

    def often(self, text: str) -> None:
        """The same for steps of microseconds: told only now and then."""
        now = time.monotonic()
        if now - self._last > _BETWEEN_STEPS:
            self._last = now
            self.step(text)

    def note(self, text: str) -> None:
        if self._connection is not None:
            self._connection.send(Note(text))


def guarded(
    function: Callable[..., Any],
    *arguments: Any,
    name: str,
    timeout: float | None = None,
    note: Callable[[str], None] | None = None,
    log: Callable[[str], None] | None = None,
    until: tuple[float, str] | None = None,
) -> Any:
    """`function(*arguments, reporter)` in a child process; `name` is who is to blame when it dies.

    `note` hears the lines that the child has for the user, `log` what the libraries printed and logged.
    `until` is another time limit, which a step that starts with the given word lifts.
    """
    output = capture.scratch_file()
    ours, theirs = socket.socketpair()
    connection = Connection(ours.detach())
    with theirs:
        process = _start(theirs.fileno(), output)
    try:
        answer = _answer(connection, process, output, Task(function, arguments), name, timeout, note, until)
    finally:
        connection.close()
        process.kill()
        process.wait()
        if log is not None:
            log(capture.read(output))
        os.close(output)
    if isinstance(answer, Refused):
        raise answer.kind(answer.message, hint=answer.hint)
    return answer.result


def _answer(
    connection: Connection,
    process: subprocess.Popen[bytes],
    output: int,
    task: Task,
    name: str,
    timeout: float | None,
    note: Callable[[str], None] | None,
    until: tuple[float, str] | None,
) -> Finished | Refused:
    step = ""
    last = time.monotonic() + timeout if timeout else None
    deadline = min(time.monotonic() + until[0], last or float("inf")) if until else last
    try:
        connection.send(task)
        while True:
            if not connection.poll(_PATIENCE if deadline is None else max(0.0, deadline - time.monotonic())):
                if deadline is None:
                    continue
                limit = f"{until[0] if until else timeout:g} s"
                raise BackendError(
                    f"{name} gave no answer in {limit}; last step: {step or 'start'}{_tail(output)}",
                    hint="allow more time with --timeout, or check the node's parameters",
                )
            message = connection.recv()
            if isinstance(message, Step):
                step = message.text
                if until and step.startswith(until[1]):
                    until, deadline = None, last
            elif isinstance(message, Note):
                (note or _ignore)(message.text)
            else:
                return message
    except (EOFError, ConnectionError):
        end = describe_exit(process.wait())
        raise BackendError(
            f"{name} crashed ({end}); last step: {step or 'start'}{_tail(output)}",
            hint="the library does not survive some inputs: check the file or the node that the step names",
        ) from None


def _start(descriptor: int, output: int) -> subprocess.Popen[bytes]:
    # The child must find this very package, however the parent came to find it.
    home = str(Path(__file__).parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "openqnn.runtime.guarded", str(descriptor), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def describe_exit(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _tail(output: int) -> str:
    lines = capture.read(output).splitlines()
    return "".join(f"\n  log: {line}" for line in lines[-_LAST_WORDS:] if line.strip())


def _ignore(text: str) -> None:
    del text
