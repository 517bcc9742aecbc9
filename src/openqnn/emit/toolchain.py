"""Which compiler builds for a target of qnn-model-lib-generator, and what to install where there is none."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from openqnn.errors import LibraryError, UsageError

ANDROID_API = 26
TARGETS = (
    "x86_64-linux-clang",
    "aarch64-android",
    "aarch64-linux",
    "aarch64-ubuntu-gcc9.4",
    "aarch64-oe-linux-gcc9.3",
    "aarch64-oe-linux-gcc11.2",
)
"""For help texts; any `aarch64-oe-linux-gcc<version>` and `aarch64-ubuntu-gcc<version>` will do."""

_AARCH64 = re.compile(r"aarch64-(?:oe-linux-gcc|ubuntu-gcc|linux-gcc)[\d.]+|aarch64-linux|aarch64-linux-gnu")
# Android has no C++ runtime of its own that an application could rely on.
_ANDROID_LINK = ("-static-libstdc++",)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A command that compiles, assembles and links for one target."""

    target: str
    command: tuple[str, ...]
    machine: str
    link: tuple[str, ...] = ()
    is_clang: bool = False


def find_compiler(target: str) -> Compiler:
    """The compiler for a target; else an error that says what to install, or why it cannot be built here."""
    if "windows" in target:
        raise UsageError(
            f"{target}: libraries for Windows need Microsoft's compiler, which runs on Windows only",
            hint="build on Linux for x86_64-linux-clang, aarch64-android or aarch64-linux, or make a context "
            "binary or a DLC, which run on every system",
        )
    if target == "x86_64-linux-clang":
        return _gnu(target, "x86_64", ("g++", "clang++"), "x86_64-linux-gnu-g++", "g++-x86-64-linux-gnu")
    if target == "aarch64-android":
        return _android(target)
    if _AARCH64.fullmatch(target):
        return _gnu(target, "aarch64", ("g++", "clang++"), "aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    raise UsageError(f"unknown target '{target}'", hint=f"known targets: {', '.join(TARGETS)}")


def _gnu(target: str, machine: str, native: Sequence[str], cross: str, package: str) -> Compiler:
    """The machine's own compiler where it fits ($CXX first), else a cross compiler of the distribution."""
    is_native = platform.machine() == machine and platform.system() == "Linux"
    chosen = os.environ.get("CXX", "") if is_native else ""
    names = [*filter(None, [chosen]), *(native if is_native else ()), cross]
    for name in names:
        if shutil.which(name):
            return Compiler(target, (name,), machine, is_clang="clang" in Path(name).name)
    package = "g++" if is_native else package
    raise LibraryError(
        f"{target}: no compiler found (looked for {', '.join(names)})",
        hint=f"on Debian and Ubuntu: apt-get install {package}",
    )


def _android(target: str) -> Compiler:
    root = os.environ.get("ANDROID_NDK_ROOT") or os.environ.get("ANDROID_NDK_HOME")
    hint = "install the Android NDK (r26 or later) and set ANDROID_NDK_ROOT to its folder"
    if not root:
        raise LibraryError(f"{target}: the Android NDK is needed, and ANDROID_NDK_ROOT is not set", hint=hint)
    system = f"{platform.system().lower()}-x86_64"
    command = (
        Path(root) / "toolchains/llvm/prebuilt" / system / f"bin/aarch64-linux-android{ANDROID_API}-clang++"
    )
    if not command.is_file():
        raise LibraryError(f"{target}: ANDROID_NDK_ROOT is {root}, but there is no {command}", hint=hint)
    return Compiler(target, (str(command),), "aarch64", _ANDROID_LINK, is_clang=True)
