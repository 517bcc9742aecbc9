"""A child process that serves many tasks, and is started again after it had to be given up."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from openqnn.worker.child import Child, DiedIdleError
from openqnn.worker.messages import Done, Failed, Task


class Worker:
    """A child process, started with its first task. Use it as a context manager, or call `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        _workers.add(self)

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

    def call(
        self, task: Task, name: str, timeout: float | None, hear: Callable[[Any], None] | None = None
    ) -> Any:
        """The task's result. `name` is who is to blame when the child dies; `hear` gets what it tells."""
        with self._lock:
            try:
                answer = self._ask(task, name, timeout, hear)
            except BaseException:  # an interrupt also leaves the child in the middle of a task
                self._end_child()
                raise
        if isinstance(answer, Failed):
            raise answer.error
        return answer.value

    def close(self) -> None:
        """End the child; the next task would start another."""
        with self._lock:
            self._end_child()

    def _ask(
        self, task: Task, name: str, timeout: float | None, hear: Callable[[Any], None] | None
    ) -> Done | Failed:
        if self._child is not None:
            try:
                return self._child.ask(task, name, timeout, hear)
            except DiedIdleError:
                self._end_child()
        self._child = Child()
        return self._child.ask(task, name, timeout, hear)

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, little is left to work with
            self._end_child()

    def start_over(self) -> None:
        """Leave the child to the process that this one is a copy of; the next task starts another."""
        self._lock = threading.Lock()  # a thread that this process lacks may have held it
        child, self._child = self._child, None
        if child is not None:
            child.abandon()

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _start_over() -> None:
    """In a copy of this process: two that ask one child would get each other's answers."""
    for worker in list(_workers):
        worker.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
