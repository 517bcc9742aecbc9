"""Which targets there are, by name, by library, and by whatever a user calls a backend."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import PureWindowsPath

from openqnn.errors import UsageError
from openqnn.targets.target import Target

BUILT_IN, HTP, CPU_LIBRARY = "cpu", "htp", "libQnnCpu"
_ROWS = {
    HTP: ("htp_target", "HtpTarget", "htp"),
    BUILT_IN: ("target", "Target", ""),
    CPU_LIBRARY: ("cpu", "CpuTarget", "cpu"),
}
"""By name: a module, which is imported when it is asked for, the class in it, and how its libraries' names
begin behind libQnn."""
QUANTIZED = HTP
"""What graphs in fixed point are made for, unless another target is named."""


class OtherLibrary(Target):
    """A library that no rules are known about: it is handed every graph as it is."""

    def __init__(self, library: str) -> None:
        self.name = self.title = library.partition(".")[0]
        self.libraries = (library,)


@cache
def find_target(name: str) -> Target:
    """The target of that name."""
    if name not in _ROWS:
        raise UsageError(f"there is no target '{name}'", hint=f"known: {', '.join(_ROWS)}")
    module, kind, _ = _ROWS[name]
    return getattr(import_module(f"openqnn.targets.{module}"), kind)()


@cache
def fixed_point_targets() -> tuple[str, ...]:
    """Names of the targets that `quantize` makes graphs in fixed point for."""
    return tuple(name for name in _ROWS if find_target(name).fixed_point_of == name)


def target_of_library(library: str | os.PathLike[str]) -> Target:
    """The target that runs on a library, by its path, its file name or the short name that tools take.

    It is asked for facts where nothing else of it is needed, so rules are imported when they are used.
    """
    name = PureWindowsPath(library).name  # takes both kinds of slashes
    stem = name.lower().partition(".")[0].removeprefix("lib").removeprefix("qnn")
    found = (target for target, (_, _, begin) in _ROWS.items() if begin and stem.startswith(begin))
    target = next(found, "")
    return find_target(target) if target else OtherLibrary(name)


def target_of_backend(backend: str | os.PathLike[str]) -> Target:
    """The target of a backend as a `Session` takes it: by the target's name, or by library."""
    name = os.fspath(backend)
    return find_target(name) if name in (BUILT_IN, HTP) else target_of_library(name)
