"""Memory that many runs use again."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.runtime.cpu.huge_pages import HUGE, large


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (HUGE // 8,), (HUGE // 8 + 1,), (7, 300_001)])
def test_an_array_of_any_size(shape: tuple[int, ...]) -> None:
    array = large(shape, np.int64)
    assert (array.shape, array.dtype) == (shape, np.int64)
    assert array.flags.c_contiguous
    array[...] = 3
    assert (array == 3).all()


def test_a_large_one_starts_a_huge_page() -> None:
    array = large((HUGE + 1,), np.uint8)
    base = array.base
    assert array.ctypes.data % HUGE == 0
    assert isinstance(base, np.ndarray)
    assert (
        array.ctypes.data + 2 * HUGE <= base.ctypes.data + base.nbytes
    )  # and the page that it ends in is its own
