"""What a child process does: tasks, one after the other, until its parent hangs up.

`openqnn.worker.child` forks it, or starts `python -m openqnn.worker.serve <socket> <board> <parent>`. Tasks
come and answers go over a socket; the step at hand is on a board in shared memory; stdout and stderr are a
file of the parent's, where it finds the last words of a child that crashed.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from openqnn.errors import BackendError, OpenQnnError, OutputError, ResourceError
from openqnn.worker.messages import Answer, Done, Failed, Number, Opened, Task, Word

_LENGTH = struct.Struct("<I")


class Board:
    """A page that both processes see, with the step at hand: a step costs a copy and not a message."""

    SIZE = mmap.PAGESIZE

    def __init__(self, descriptor: int = -1) -> None:
        self._page = mmap.mmap(
            descriptor, self.SIZE
        )  # without a descriptor, memory that a forked child shares

    def write(self, text: str) -> None:
        data = text.encode()[: self.SIZE - _LENGTH.size]
        _LENGTH.pack_into(self._page, 0, 0)  # whoever looks meanwhile sees nothing rather than half a step
        self._page[_LENGTH.size : _LENGTH.size + len(data)] = data
        _LENGTH.pack_into(self._page, 0, len(data))

    def read(self) -> str:
        (length,) = _LENGTH.unpack_from(self._page)
        return self._page[_LENGTH.size : _LENGTH.size + length].decode(errors="replace")


class Reporter:
    """The child's way to tell how far it is. Without a parent it does nothing."""

    def __init__(self, board: Board | None = None, send: Callable[[Answer], None] | None = None) -> None:
        self._board, self._send = board, send
        self._held: list[object] = []

    def step(self, text: str) -> None:
        """Before every step that may not come back."""
        if self._board is not None:
            self._board.write(text)

    def tell(self, value: Any) -> None:
        """A part of the answer, or a line for the user."""
        if self._send is not None:
            self._send(Word(value))

    def hold(self, *objects: object) -> None:
        """What need not be given back before the answer, since the process ends with it."""
        self._held += objects

    def opened(self) -> None:
        """The libraries are ready for the user's own work."""
        if self._send is not None:
            self._send(Opened())


def serve(connection: Connection, board: Board) -> None:
    """Perform tasks until the parent hangs up."""
    while True:
        try:
            number, task = connection.recv()
        except EOFError:
            return
        answer_task(connection, board, number, task)


def answer_task(connection: Connection, board: Board, number: Number, task: Task) -> None:
    """Perform a task, with its number on all that is said of it."""

    def send(answer: Answer) -> None:
        connection.send((number, answer))

    send(perform(task, Reporter(board, send)))


def perform(task: Task, reporter: Reporter) -> Done | Failed:
    """Do a task; whatever goes wrong becomes an error that the parent can raise."""
    try:
        return Done(task.function(*task.arguments, reporter=reporter, **task.named))
    except OpenQnnError as error:
        return Failed(error)
    except OSError as error:
        return Failed(OutputError(f"{error.filename or 'output'}: {error.strerror or error}"))
    except MemoryError as error:
        return Failed(ResourceError(f"not enough memory{f': {error}' if str(error) else ''}"))
    except Exception as error:
        traceback.print_exc()  # ends up in the log that the parent shows
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return Failed(BackendError(f"this is a bug in openqnn; please report it: {said}"))


def settle(parent: int) -> None:
    """Leave signals to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(
        OSError, ValueError, ImportError
    ):  # a crash of a library is told in a message, and leaves no core file
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    """A library that hangs would never notice that the socket is closed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    descriptor, board, parent = map(int, sys.argv[1:])
    settle(parent)
    serve(Connection(descriptor), Board(board))


if __name__ == "__main__":
    main()
