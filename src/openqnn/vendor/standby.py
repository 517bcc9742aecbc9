"""A child process that opens a vendor's library before anybody knows what it is to do.

HTP's library takes a tenth of a second to open, and Python more than that to import a tool and to read its
options: with two processors one goes on beside the other. So does the reading of the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Thread

from openqnn.errors import OpenQnnError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.library import can_fork
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import DEFAULT_SOC
from openqnn.vendor.model import open_backend
from openqnn.vendor.reserve_memory import keep_freed, reserve
from openqnn.vendor.target_setup import Target
from openqnn.worker.child import Child
from openqnn.worker.serve import Reporter

LARGE = 8 << 20  # bytes of weights whose memory is worth fetching beforehand

_waiting: dict[str, Child] = {}
_held: list[Backend] = []


def get_ready(library: str, meanwhile: Callable[[Reporter], None] | None = None, weights: int = 0) -> None:
    """Start to open HTP's library, by its path, in a process that then waits for a task.

    `meanwhile` is what that process does beside, in a thread; it fetches memory for so many bytes of weights.
    """
    if can_fork() and not _waiting:
        _waiting[library] = Child(ready=partial(_open, library, meanwhile, weights))


def taken_standby(library: str, *, fits: bool = True) -> Child | None:
    """The process that has this library open, the caller's from now on. Any that does not fit ends."""
    found = _waiting.pop(library, None) if fits else None
    while _waiting:
        _waiting.popitem()[1].end()
    return found


def _forget() -> None:
    """In a copy of this process: what waits does so for the original."""
    while _waiting:
        _waiting.popitem()[1].abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def is_warm() -> bool:
    """Whether this process was ready before it got its task."""
    return bool(_held)


def _open(
    library: str, meanwhile: Callable[[Reporter], None] | None, weights: int, reporter: Reporter
) -> None:
    """In the child. What the library does once per process does not depend on the device that it is for; it
    would be undone with the last of its handles."""
    keep_freed()
    fetch = reserve(weights) if weights > LARGE else None
    with ThreadPoolExecutor(1) as aside, suppress(OpenQnnError):  # whoever opens it for a task hears of it
        if meanwhile is not None:
            aside.submit(meanwhile, reporter)
        if fetch is not None:  # goes on beside the task, ahead of what is written
            aside.submit(Thread(target=fetch, daemon=True).start)
        quiet = Target(library, DeviceOptions(DEFAULT_SOC), log_level=abi.LOG_ERROR)  # nobody asked for it
        _held.append(open_backend(quiet, warm=True))
