"""What other systems lack, taken away from this one: run first in a process, it stands in for one of them.

Files that are open cannot be renamed or replaced on Windows, folders cannot be opened, text is not UTF-8.
"""

from __future__ import annotations

import builtins
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any

ONLY_LINUX = ("sched_getaffinity", "sched_setaffinity", "posix_fallocate")
ONLY_POSIX = (
    "fork", "pread", "pwrite", "getuid", "geteuid", "killpg", "setsid", "sysconf", "mkfifo", "fchmod",
    "O_NOFOLLOW", "O_DIRECTORY", "WNOHANG",
)  # fmt: skip


def stand_in_for(system: str) -> None:
    """`macos` or `windows`."""
    for name in ONLY_LINUX:
        _remove(os, name)
    if system == "windows":
        _without_posix()


def _without_posix() -> None:
    import subprocess  # noqa: F401  it picks its own way of starting processes when it is imported

    for name in ONLY_POSIX:
        _remove(os, name)
    for name in ("SIGHUP", "SIGKILL", "SIGALRM", "SIGPIPE"):
        _remove(signal, name)
    for module in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[module] = None  # type: ignore[assignment]
    _guard("replace", "rename")
    opened = os.open
    os.open = lambda path, *rest, **more: _no_folder(opened, path, *rest, **more)
    loaded = ctypes.CDLL.__init__
    ctypes.CDLL.__init__ = lambda self, name, *rest, **more: _named(loaded, self, name, *rest, **more)  # type: ignore
    plain = builtins.open
    builtins.open = lambda file, mode="r", *rest, **more: _encoded(plain, file, mode, *rest, **more)  # type: ignore


def _remove(module: Any, name: str) -> None:
    if hasattr(module, name):
        delattr(module, name)


def _guard(*names: str) -> None:
    for name in names:
        before = getattr(os, name)

        def moved(source: Any, target: Any, *rest: Any, before: Any = before, **more: Any) -> Any:
            held = {os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")}
            for path in (source, target):
                if os.path.realpath(os.fspath(path)) in held:
                    raise PermissionError(13, "the file is open in this process", str(path))
            return before(source, target, *rest, **more)

        setattr(os, name, moved)


def _no_folder(opened: Any, path: Any, *rest: Any, **more: Any) -> Any:
    if isinstance(path, (str, bytes, Path)) and os.path.isdir(path):
        raise PermissionError(13, "a folder cannot be opened", str(path))
    return opened(path, *rest, **more)


def _named(loaded: Any, self: Any, name: Any, *rest: Any, **more: Any) -> Any:
    caller = sys._getframe(2).f_globals["__name__"]
    if name is None and caller.startswith("openqnn.") and caller != "openqnn.worker.c_function":
        raise TypeError("a library needs a name")
    return loaded(self, name, *rest, **more)


def _encoded(plain: Any, file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
    """Text without an encoding has the system's, in which a model's names may not be spelled."""
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if caller.startswith("openqnn.") and "b" not in mode and not rest and "encoding" not in more:
        raise AssertionError(f"{caller} opens {file} without an encoding")
    return plain(file, mode, *rest, **more)
