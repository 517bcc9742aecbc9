"""What an op package says of itself: its interface called directly, in a process that may die of it."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.errors import LibraryError
from openqnn.qnn.load_errors import explain_load
from openqnn.worker.serve import Reporter

_FUNCTIONS = (
    "init", "terminate", "getInfo", "validateOpConfig", "createOpImpl", "freeOpImpl", "logInitialize",
    "logSetLevel", "logTerminate",
)  # fmt: skip


class _Interface(c.Structure):
    _fields_ = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("patch", c.c_uint32),
        ("functions", c.c_void_p * 9),
    ]


class _Info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("operations", c.POINTER(c.c_char_p)), ("details", c.c_void_p),
                ("count", c.c_uint32)]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProbedPackage:
    """A package's name, its operations, and the version of the interface that it was built for."""

    version: tuple[int, int, int]
    name: str = ""
    ops: tuple[str, ...] = ()


def missing_symbols(needed: Sequence[str], wanted: Sequence[str], reporter: Reporter) -> list[str]:
    """Which symbols none of the needed libraries has, as the loader of this machine finds them."""
    for name in needed:
        reporter.step(f"load {name}")
        with suppress(OSError):  # the loader's own message follows when the package is loaded
            c.CDLL(name, mode=c.RTLD_GLOBAL)
    everything = c.CDLL(None)
    return [name for name in wanted if not hasattr(everything, name)]


def probe_op_package(path: str, provider: str, reporter: Reporter) -> ProbedPackage:
    """Loads the library and asks its interface; every step is told before it is taken."""
    label = Path(path).name
    reporter.step(f"load {label}")
    try:
        library = c.CDLL(path)
    except OSError as e:
        reason, hint = explain_load(path, str(e))
        raise LibraryError(f"{label} cannot be loaded: {reason}", hint=hint) from e
    reporter.step(f"{label}: {provider}")
    interface = _Interface()
    code = getattr(library, provider)(c.byref(interface))
    if code:
        raise LibraryError(f"{label}: {provider} failed with {code}")
    version = (interface.major, interface.minor, interface.patch)
    if version[0] != 1:
        return ProbedPackage(version)
    missing = [name for name, f in zip(_FUNCTIONS, interface.functions, strict=True) if not f]
    if missing:
        raise LibraryError(f"{label}: its interface lacks {', '.join(missing)}")
    return _asked(interface, label, version, reporter)


def _asked(
    interface: _Interface, label: str, version: tuple[int, int, int], reporter: Reporter
) -> ProbedPackage:
    reporter.step(f"{label}: init")
    code = _call(interface, "init", c.c_void_p)(None)
    if code:
        raise LibraryError(f"{label}: its init failed with {code}")
    reporter.step(f"{label}: getInfo")
    info = c.POINTER(_Info)()
    code = _call(interface, "getInfo", c.c_void_p)(c.byref(info))
    if code or not info:
        raise LibraryError(f"{label}: its getInfo gives nothing ({code})")
    found = info.contents
    names = tuple(found.operations[i].decode(errors="replace") for i in range(min(found.count, 4096)))
    made = ProbedPackage(version, (found.name or b"").decode(errors="replace"), names)
    reporter.step(f"{label}: terminate")
    _call(interface, "terminate")()
    return made


def _call(interface: _Interface, name: str, *types: type[Any]) -> Any:
    address = interface.functions[_FUNCTIONS.index(name)]
    return c.CFUNCTYPE(c.c_uint64, *types)(address)
