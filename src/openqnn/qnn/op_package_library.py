"""Op package libraries: how command lines name them, and how they are registered with a backend."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from openqnn.errors import BackendError, LibraryError, UsageError
from openqnn.qnn.load_errors import explain_load

_NOT_LOADED: Final = 4005
_HTP_ENTRY: Final = "op_pkg_init"
_FOR_HTP: Final = (
    "HTP takes packages that Qualcomm's SDK compiles; without one say the op in QNN's ops:"
    " @openqnn.composite, or `openqnn fuse --expand`"
)
TARGETS: Final = ("CPU", "HTP")
_BACKENDS: Final = ("Cpu", "Htp", "Gpu", "Dsp")
_ENDING: Final = "InterfaceProvider"
_CODES: Final = {
    4003: ("the backend does not take that target", "leave the target out, or name CPU"),
    _NOT_LOADED: ("the library cannot be loaded", "`openqnn op-package check` tells why"),
    4006: ("it has no such interface provider", "`openqnn op-package check` lists those that it has"),
    4007: (
        "it is registered already, or gives no information",
        "name each package once; `openqnn op-package check` tells what it gives",
    ),
    4008: (
        "its interface is of another version, or lacks functions",
        "build it again with a generated package: interface 1.4, all nine functions",
    ),
}


@dataclass(frozen=True, slots=True)
class OpPackageLibrary:
    """A library, the function in it that gives its interface, and what it is for where a backend asks."""

    path: str
    provider: str
    target: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.path, self.provider, self.target)))

    def is_for(self, backend: str) -> bool:
        """Whether a backend's library can take it: generated providers have the backend in their name."""
        named = next((b for b in _BACKENDS if self.provider.endswith(f"{b}{_ENDING}")), "")
        return not named or Path(backend).name.startswith(f"libQnn{named}")


OpPackages: TypeAlias = "str | OpPackageLibrary | Sequence[str | OpPackageLibrary]"


def op_package_libraries(given: OpPackages | None) -> tuple[OpPackageLibrary, ...]:
    """Libraries as users name them: `path:provider[:target]`, separated by commas, or a list of such."""
    if not given:
        return ()
    listed: Iterable[str | OpPackageLibrary] = [given] if isinstance(given, OpPackageLibrary) else given
    if isinstance(given, str):
        listed = given.split(",")
    return tuple(p if isinstance(p, OpPackageLibrary) else _parsed(p) for p in listed if p)


def _parsed(text: str) -> OpPackageLibrary:
    path, _, rest = text.strip().partition(":")
    provider, _, target = rest.partition(":")
    if not path or not provider:
        raise UsageError(
            f"op package {text!r}: path and interface provider are needed",
            hint="PATH:PROVIDER, such as libQnnMyPackageCpu.so:MyPackageCpuInterfaceProvider",
        )
    if target and target not in TARGETS:
        raise UsageError(f"op package {text!r}: the target is CPU or HTP, not {target!r}")
    if not Path(path).is_file():
        raise LibraryError(f"op package {path}: no such file")
    return OpPackageLibrary(os.path.abspath(path), provider, target)


_EVERYWHERE: Final[list[OpPackageLibrary]] = []


def register_everywhere(packages: Iterable[OpPackageLibrary]) -> None:
    """From now on every backend of this process registers those that are for it."""
    _EVERYWHERE.extend(p for p in packages if p not in _EVERYWHERE)


def packages_everywhere() -> tuple[OpPackageLibrary, ...]:
    """The packages that every backend registers that they are for."""
    return tuple(_EVERYWHERE)


def forget_op_packages() -> None:
    """No op package is registered everywhere any more."""
    _EVERYWHERE.clear()


def packages_for(backend: str, packages: Iterable[OpPackageLibrary] = ()) -> tuple[OpPackageLibrary, ...]:
    """What a backend registers: the packages that it is given, and those that are for all."""
    given = tuple(packages)
    return (*given, *(p for p in _EVERYWHERE if p.is_for(backend) and p not in given))


def register_op_package(api: Any, backend: Any, package: OpPackageLibrary) -> None:
    """Makes the operations of a library known to a backend."""
    subject = f"op package {Path(package.path).name} ({package.provider})"
    target = package.target.encode() or None
    try:
        api.call(
            "backendRegisterOpPackage", backend, package.path.encode(), package.provider.encode(), target,
            subject=subject,
        )  # fmt: skip
    except BackendError as error:
        raise _explained(error, subject, package) from error


def _explained(error: BackendError, subject: str, package: OpPackageLibrary) -> BackendError:
    code = next((c for c in _CODES if f"({c})" in error.message), None)
    if code is None:
        return error
    reason, hint = _CODES[code]
    if code == _NOT_LOADED and _HTP_ENTRY in error.message:
        return BackendError(f"{subject}: {reason}: for HTP it has no {_HTP_ENTRY}", hint=_FOR_HTP)
    if code == _NOT_LOADED:
        told, _ = explain_load(package.path, error.message)
        if told != error.message:
            return BackendError(f"{subject}: {reason}: {told}", hint=f"{hint}, and all else that is wrong")
    return BackendError(f"{subject}: {reason}: {error.message.removeprefix(subject + ': ')}", hint=hint)


def of_a_kernel(error: BackendError, subject: str) -> BackendError:
    """What to do where a graph with operations of other packages does not run."""
    if "::" in subject and not error.hint:
        error.hint = (
            "a kernel of its package reports an error: is it written, in src/ops? `openqnn op-package check`"
            " runs each alone"
        )
    return error


def hinted(error: BackendError, registered: Sequence[str], *, is_htp: bool) -> BackendError:
    """What to do where a node's package is not registered, or does not take the node."""
    if error.hint:
        return error
    if "OP_PACKAGE_NOT_FOUND" in error.message and is_htp:
        error.hint = _FOR_HTP
    elif "OP_PACKAGE_NOT_FOUND" in error.message:
        known = f"; registered are {', '.join(registered)}" if registered else ""
        error.hint = f"register its package: --op_packages PATH:PROVIDER, or Session(op_packages=...){known}"
    elif "QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE" in error.message:
        error.hint = (
            f"the package ({', '.join(registered) or 'built in'}) does not take its inputs, types or"
            " parameters: compare them with its declaration. libQnnCpu cannot tell a package of an input that"
            " is left out with others behind it: give that input, or put it last"
        )
    return error
