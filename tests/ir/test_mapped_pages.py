"""Memory of mapped files that were read is given back, and only theirs."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from openqnn.ir.mapped_pages import release_pages

SIZE = 32 << 20  # bytes


def resident() -> int:
    """Bytes of mapped files that this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("form", ["plain", "turned", "strided"])
def test_pages_of_a_file_are_let_go_and_read_again(tmp_path: Path, form: str) -> None:
    path = tmp_path / "weights"
    np.arange(SIZE // 4, dtype=np.float32).tofile(path)
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    array = np.frombuffer(mapped[4096:], np.float32).reshape(-1, 1024)
    array = (
        array.T
        if form == "turned"
        else np.lib.stride_tricks.as_strided(array)
        if form == "strided"
        else array
    )
    total = array.sum(dtype=np.float64)
    before = resident()
    release_pages(array)
    assert before - resident() > SIZE * 0.9
    assert array.sum(dtype=np.float64) == total


def test_memory_without_a_file_is_left_alone(tmp_path: Path) -> None:
    memory = mmap.mmap(-1, SIZE)
    array = np.frombuffer(memory, np.float32)
    array[:] = 3
    release_pages(array)
    release_pages(array[::2])
    own = np.ones(SIZE // 4, np.float32)
    release_pages(own)
    release_pages(np.frombuffer(bytes(SIZE), np.uint8))
    assert array.min() == 3
    assert own.min() == 1
