"""Pages of memory that are there before they are needed, and stay."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.tool import environment

FAULTS = """
import ctypes, resource, sys
from openqnn.vendor.reserve_memory import keep_freed, reserve
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "keep":
    keep_freed()
def use():
    block = c.malloc(20 << 20)
    ctypes.memset(block, 1, 20 << 20)
    c.free(block)
if sys.argv[1] == "reserve":
    keep_freed()
    reserve(20 << 20)()
else:
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how], env=environment(), capture_output=True, check=True
    )
    return int(done.stdout)


def test_freed_memory_is_used_again() -> None:
    """The second of two blocks comes from the system again, unless malloc was told to keep the first."""
    assert faults("keep") < 100 < faults("leave")


def test_reserved_memory_is_there() -> None:
    assert faults("reserve") < 100
