"""Memory that many runs use again."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

HUGE = 2 << 20  # bytes of a page that the system hands out at the cost of a small one


def large(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of anything, which fills huge pages where it is worth one: every page costs the system some
    microseconds, and small ones add up to more than what is computed in them."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size < HUGE:
        return np.empty(shape, dtype)
    room = np.empty((size // HUGE + 2) * HUGE, np.uint8)
    start = -room.ctypes.data % HUGE
    return room[start : start + size].view(dtype).reshape(shape)
