"""A child process that works for this one, so that a crash or a hang of a library becomes one message.

There are two kinds. A spawned one is a new interpreter: it starts clean, takes a moment to do so, and serves
many tasks. A forked one starts at once, with everything that this process has in memory, and serves one, or
gets ready first and then serves those that it is asked.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

from openqnn.errors import BackendError, ResourceError
from openqnn.worker import capture, serve
from openqnn.worker.interpreter import interpreter_command, interpreter_environment
from openqnn.worker.messages import Answer, Done, Failed, Number, Opened, Task, Word
from openqnn.worker.serve import Board, Reporter

_LAST_WORDS = 8
_TURN = 0.0005  # seconds: how long a thread that comes back from a library waits for one that works in Python
_GLANCE = 15.0  # seconds: the longest that a poll waits before it looks at the deadline again
_PATIENCE = 60.0  # seconds at one step, after which whoever waits is told
_STARTING = 150.0  # seconds until the first step: a library that hangs while it is loaded never takes one


_STARVED = ("std::bad_alloc", "Cannot allocate memory", "MemoryError")
"""What a process that gets no memory says last."""


_OF_A_PACKAGE = re.compile(r"\bop package |\b\w+::\w+ '")
"""A step in which an op package of the user's is at work."""
_PACKAGE_HINT = (
    "the op package may be at fault: `openqnn op-package check LIBRARY --custom_ops my_ops.py` runs its"
    " operations one by one"
)


class DiedIdleError(Exception):
    """The child was gone before it got the task, so the task is not to blame."""


class _Stay:
    """How long a child has been at one step; who waits is told once of each that takes long."""

    def __init__(self, name: str, tell: Callable[[str], None] | None) -> None:
        self._name, self._tell = name, tell
        self._step, self._since, self._told = "", time.monotonic(), False

    def look(self, step: str) -> None:
        if step != self._step:
            self._step, self._since, self._told = step, time.monotonic(), False
        if self._told or not step or self._tell is None or time.monotonic() - self._since < _PATIENCE:
            return
        self._told = True
        self._tell(f"{self._name} has been at one step for {_PATIENCE:g} s: {step}; Ctrl-C ends it")


class _Process(Protocol):
    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class Child:
    """One process, from its start to its end. With a task it is forked to do just that; so it is with what it
    does to get `ready`, and then it waits for tasks."""

    def __init__(self, task: Task | None = None, *, ready: Callable[[Reporter], None] | None = None) -> None:
        self._output = capture.scratch_file()
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        self._has_served = False
        self._number: Number = (os.getpid(), 0)
        with theirs:
            if task is not None or ready is not None:
                self._board = Board()
                self._process = self._fork(theirs, task, ready)
                return
            page = os.memfd_create("openqnn-board")  # memory with a number that another program can be given
            try:
                os.ftruncate(page, Board.SIZE)
                self._board = Board(page)
                self._process = self._spawn(theirs.fileno(), page)
            finally:
                os.close(page)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What the libraries printed and logged."""
        return capture.read(self._output)

    def ask(
        self,
        task: Task,
        name: str,
        timeout: float | None,
        hear: Callable[[Any], None] | None = None,
        opening: float | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Done | Failed:
        """Hand over a task and wait. A child that still gets ready has a step on the board, and words."""
        if self._has_served or not self._board.read():
            capture.empty(self._output)
            self._board.write("")
        self._number = (os.getpid(), self._number[1] + 1)
        try:
            self._connection.send((self._number, task))
        except ConnectionError:
            raise self._end_of(name) from None
        return self.answer(name, timeout, hear, opening, tell)

    def answer(
        self,
        name: str,
        timeout: float | None,
        hear: Callable[[Any], None] | None = None,
        opening: float | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Done | Failed:
        """Wait for the answer; a child that dies or stays silent makes an error that blames `name`.

        `opening` is the time limit until the libraries are ready, `timeout` the one from then on. `tell` is
        told of a step that takes long.
        """
        start = time.monotonic()
        limit, at = opening or timeout, _Stay(name, tell)
        try:
            while True:
                left = math.inf if limit is None else max(0.0, start + limit - time.monotonic())
                if not self._connection.poll(min(left, _GLANCE)):
                    self._check_silence(name, left, limit, time.monotonic() - start)
                    at.look(self._board.read())
                    continue
                message = self._receive(name)
                if isinstance(message, Word):
                    (hear or _ignore)(message.value)
                elif isinstance(message, Opened):
                    limit, start = timeout, time.monotonic()
                else:
                    self._has_served = True
                    return message
        except (EOFError, ConnectionError):
            raise self._end_of(name) from None

    def _check_silence(self, name: str, left: float, limit: float | None, passed: float) -> None:
        """An error where the time is up, or where not even the first step was taken for long."""
        if left <= _GLANCE and limit is not None:
            raise self._silence(name, limit)
        if passed > _STARTING and not self._board.read():
            raise self._silence(name, _STARTING)

    def _receive(self, name: str) -> Answer:
        """The next word or answer to the task at hand; anything else on the socket is an error."""
        try:
            number, message = self._connection.recv()
        except (EOFError, OSError):
            raise
        except Exception as error:  # whatever pickle makes of bytes that are none of ours
            raise BackendError(f"{name} sent what is no answer: {type(error).__name__}: {error}") from error
        if number != self._number:
            raise BackendError(
                f"{name} answered another process's task",
                hint="open the session after the fork, in the process that uses it",
            )
        return message

    def abandon(self) -> None:
        """Forget a child that is another process's, of which this one is a copy; it goes on undisturbed."""
        self._connection.close()
        os.close(self._output)

    def end(self, *, wait: bool = True) -> None:
        """Stop the process, at work or not; it holds nothing that would need an orderly exit.

        There is no need to wait for a forked one that has answered: giving back its memory takes a while.
        """
        self._connection.close()
        self._process.kill()
        if not wait and isinstance(self._process, _Forked):
            _leaving.append(self._process)
        else:
            self._process.wait()
        os.close(self._output)

    def _spawn(self, theirs: int, page: int) -> _Process:
        return subprocess.Popen(
            interpreter_command("-m", serve.__name__, str(theirs), str(page), str(os.getpid())),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs, page),
            env=interpreter_environment(),
        )

    def _fork(
        self, theirs: socket.socket, task: Task | None, ready: Callable[[Reporter], None] | None
    ) -> _Process:
        capture.flush()  # or the child would write it once more
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of threads that native libraries keep. They wait for work, and hold no locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            return _Forked(pid)
        code = 1
        try:
            self._become_child(parent)
            connection = Connection(theirs.detach())
            if task is not None:
                serve.answer_task(connection, self._board, self._number, task)
            if ready is not None:
                ready(Reporter(self._board))
                self._board.write("")
                serve.serve(connection, self._board)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _become_child(self, parent: int) -> None:
        """What a new interpreter would start with; nothing of the parent's is touched."""
        faulthandler.disable()  # it would report a crash to the parent's terminal
        sys.setswitchinterval(_TURN)
        gc.freeze()  # what came from the parent is not ours to collect, and looking at it would copy it
        self._connection.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (self._output, 1), (self._output, 2)):
            os.dup2(source, target)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
        serve.settle(parent)

    def _silence(self, name: str, limit: float) -> BackendError:
        return BackendError(
            f"{name} gave no answer in {limit:g} s; last step: {self._last_step()}",
            hint=_PACKAGE_HINT
            if _OF_A_PACKAGE.search(self._board.read())
            else "allow more time, or check the node's parameters: some combinations make the library hang",
        )

    def _end_of(self, name: str) -> Exception:
        code = self._process.wait()
        if self._has_served and not self._board.read():
            return DiedIdleError()
        if code == -signal.SIGKILL or any(words in self.log for words in _STARVED):
            return ResourceError(
                f"{name} was ended by the system ({_describe_exit(code)}), perhaps for lack of memory;"
                f" last step: {self._last_step()}",
                hint="free memory, or allow more (ulimit -v, the limit of the container), and try again",
            )
        return BackendError(
            f"{name} crashed ({_describe_exit(code)}); last step: {self._last_step()}",
            hint=_PACKAGE_HINT
            if _OF_A_PACKAGE.search(self._board.read())
            else "check the file, or the node that the step names: the library does not survive some inputs",
        )

    def _last_step(self) -> str:
        lines = self.log.splitlines()[-_LAST_WORDS:]
        return (self._board.read() or "start") + "".join(f"\n  log: {line}" for line in lines if line.strip())


class _Forked:
    """A forked process, as subprocess has them."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        _leaving[:] = [other for other in _leaving if not other.has_ended()]

    def has_ended(self) -> bool:
        if self._code is None:
            self._wait(os.WNOHANG)
        return self._code is not None

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._code is None:
            self._wait(0)
        return self._code or 0

    def _wait(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:  # somebody collects all children of this process
            self._code = 1
        else:
            self._code = os.waitstatus_to_exitcode(status) if pid else None


_leaving: list[_Forked] = []
"""Processes that were told to end; the next one that starts collects those that did."""


def _ignore(value: Any) -> None:
    del value


def _describe_exit(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
