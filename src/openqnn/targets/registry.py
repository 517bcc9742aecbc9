"""Which targets there are, by name and by library."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from openqnn.errors import UsageError
from openqnn.targets.target import Target

BUILT_IN, HTP, CPU_LIBRARY = "cpu", "htp", "libQnnCpu"


@cache
def find_target(name: str) -> Target:
    """The target of that name; imported when it is asked for, since its rules take time to import."""
    if name == BUILT_IN:
        return Target()
    if name == HTP:
        from openqnn.targets.htp.target import HtpTarget

        return HtpTarget()
    if name == CPU_LIBRARY:
        from openqnn.targets.cpu import CpuTarget

        return CpuTarget()
    raise UsageError(f"there is no target '{name}'", hint=f"known: {HTP}, {BUILT_IN}, {CPU_LIBRARY}")


def target_of_library(library: str) -> Target:
    """The target that runs on a library, by its file name; one that takes all for libraries without one."""
    stem = Path(library).name.partition(".")[0]
    return find_target({"libQnnHtp": HTP, "libQnnCpu": CPU_LIBRARY}.get(stem, BUILT_IN))
