"""Functions of the C library that this process has, and how many processors it may use."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any


def c_function(name: str) -> Any:
    """A function of the C library, as ctypes gives it."""
    if sys.platform == "win32":
        return getattr(ctypes.cdll.msvcrt, name)
    return getattr(ctypes.CDLL(None), name)


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
