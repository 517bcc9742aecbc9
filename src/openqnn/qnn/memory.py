"""How a process that compiles gets its memory."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # glibc's numbers, from malloc.h


def keep_freed() -> None:
    """Let malloc keep what is freed, for as long as the process lives.

    A library that compiles takes and frees blocks of megabytes all the time. Each would come from the system
    and go back there, and every page of it costs a fault, of no use to a process that ends soon.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # not glibc
        return
    mallopt(_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
    mallopt(_TRIM_THRESHOLD, 1 << 30)
    mallopt(_TOP_PAD, 8 << 20)
