"""How a process that compiles gets its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from mmap import PAGESIZE

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # glibc's numbers, from malloc.h
_POPULATE_WRITE = 23  # Linux's MADV_POPULATE_WRITE; older systems refuse it, and nothing is lost
_LARGEST = 32 << 20  # bytes of a block that comes from the heap: the most that glibc takes
_PAD = 8 << 20
_MOST = 1 << 30
_PART = 1 << 19  # bytes at a time: meanwhile the system gives the process no other memory


def keep_freed() -> None:
    """Let malloc keep what is freed, for as long as the process lives.

    A library that compiles takes and frees blocks of megabytes all the time. Each would come from the system
    and go back there, and every page of it costs a fault, of no use to a process that ends soon.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # not glibc
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _MOST)
    mallopt(_TOP_PAD, _PAD)


def reserve(size: int) -> Callable[[], None]:
    """Room for so many bytes that malloc gives the main thread next, where it keeps what is freed.

    What comes back fetches its pages, in any thread. A page that a write meets first costs more than what is
    written to it.
    """
    c = ctypes.CDLL(None)
    if not hasattr(c, "mallopt"):
        return lambda: None
    address, count = ctypes.c_void_p, ctypes.c_size_t
    c.sbrk.restype, c.sbrk.argtypes = address, [ctypes.c_ssize_t]
    c.malloc.restype, c.malloc.argtypes, c.free.argtypes = address, [count], [address]
    c.madvise.argtypes = [address, count, ctypes.c_int]
    start = -(-c.sbrk(0) // PAGESIZE) * PAGESIZE
    c.mallopt(_TOP_PAD, min(size, _MOST))
    c.free(c.malloc(_LARGEST - PAGESIZE))  # the heap grows for it, and by the padding
    c.mallopt(_TOP_PAD, _PAD)
    end = c.sbrk(0)

    def fetch() -> None:
        for part in range(start, end, _PART):
            c.madvise(part, min(_PART, end - part), _POPULATE_WRITE)

    return fetch
