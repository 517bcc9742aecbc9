"""Inferences in the background, as many at a time as a queue is deep.

The library's own graphExecuteAsync is used where it works. On the host it does not: libQnnHtp's simulator
refuses it, and libQnnCpu answers yes and never runs the graph. There, a thread of ours works the queue off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from openqnn.errors import BackendError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.binding import Binding, Pending
from openqnn.qnn.net import Array

Outputs = dict[str, Array]


class ExecutionQueue:
    """`submit` bindings, and wait for what it gives. Leave a binding alone until its result is there.

    `native` says whether the library itself runs them in the background; None before the first one.
    """

    def __init__(self, backend: Backend, depth: int) -> None:
        if depth < 1:
            raise UsageError(f"a queue is at least 1 deep, not {depth}")
        self._free = threading.Semaphore(depth)
        self._thread = ThreadPoolExecutor(1, "openqnn-execute")
        self.native: bool | None = False if backend.api.backend_id == abi.BACKEND_CPU else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, binding: Binding) -> Future[Outputs]:
        """Start an inference; blocks while the queue is full."""
        self._free.acquire()
        try:
            future = self._thread.submit(self._start(binding))
        except BaseException:
            self._free.release()
            raise
        future.add_done_callback(lambda _: self._free.release())
        return future

    def close(self) -> None:
        """Wait for what is under way."""
        self._thread.shutdown()

    def _start(self, binding: Binding) -> Callable[[], Outputs]:
        pending = self._native(binding)
        return binding.run if pending is None else pending.wait

    def _native(self, binding: Binding) -> Pending | None:
        if self.native is False:
            return None
        try:
            pending = binding.start()
        except BackendError:
            if self.native:
                raise
            self.native = False
            return None
        self.native = True
        return pending
