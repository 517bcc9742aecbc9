"""Memory of arrays that are views of a mapped file: it is given back once they were read."""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

LEAST: Final = 1 << 18  # bytes; smaller arrays share their pages with others


def release_pages(array: NDArray[Any]) -> None:
    """Lets go of the pages that an array shows of a mapped file; the file has them when they are read again.

    Nothing happens to an array that is not such a view: memory that has no file behind it would be lost.
    """
    mapped = _mapped_file(array)
    if mapped is None or array.nbytes < LEAST or not hasattr(mmap, "MADV_DONTNEED"):
        return
    first = byte_bounds(np.frombuffer(mapped, np.uint8))[0]
    low, high = byte_bounds(array)
    start = (low - first) // mmap.PAGESIZE * mmap.PAGESIZE
    mapped.madvise(mmap.MADV_DONTNEED, start, high - first - start)


def _mapped_file(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapping that an array is a view of, if it can only be read: then a file is behind it."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)  # also of as_strided
    return base if base is not None and memoryview(base).readonly else None
