"""Lays out a folder as the SDK does: the tools of this installation, and links to the installed libraries."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openqnn.errors import LibraryError, OutputError
from openqnn.qnn.library import find_library
from openqnn.sdk.setup_scripts import SCRIPTS

HOST = "x86_64-linux-clang"
MARK = ".openqnn-sdk-tree"
INCLUDE = Path(__file__).parents[1] / "qnn" / "include"
NO_LIBRARY = "Qualcomm's libraries are not installed: lib/ stays empty (pip install 'openqnn[qnn]')"


@dataclass(frozen=True)
class SdkTree:
    """What was laid out where, and what could not be."""

    root: Path
    tools: list[str]
    libraries: list[str]
    headers: list[str]
    notes: list[str] = field(default_factory=lambda: list[str]())


def write_sdk_tree(root: Path, tools: Sequence[str], samples: Iterable[Path] = ()) -> SdkTree:
    """Writes the tree; an earlier one is replaced, a folder with anything else in it is not."""
    check_sdk_folder(root)
    for part in ("bin", "lib", "include", "examples"):
        shutil.rmtree(root / part, ignore_errors=True)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text("laid out by `openqnn sdk-tree`\n", encoding="utf-8")
    for name in tools:
        _write_program(root / "bin" / HOST / name, _wrapper(name))
    for name, text in SCRIPTS.items():
        _write_program(root / "bin" / name, text)
    headers = _link_all(root / "include" / "QNN", sorted(INCLUDE.iterdir()))
    _link_all(root / "examples" / "QNN" / "configs", samples)
    libraries, notes = _link_libraries(root / "lib" / HOST)
    return SdkTree(root, list(tools), libraries, headers, notes)


def check_sdk_folder(root: Path) -> None:
    """OutputError where a folder is there that is no tree of ours: nothing of the user's is removed."""
    if root.exists() and not root.is_dir():
        raise OutputError(f"{root} is a file", hint="give a folder")
    if root.is_dir() and any(root.iterdir()) and not (root / MARK).exists():
        raise OutputError(f"{root} is not empty, and no `openqnn sdk-tree` made it", hint="give a new folder")


def _wrapper(name: str) -> str:
    """A shell script that runs a tool in the Python that this one is."""
    start = f"import sys; sys.argv[0] = {name!r}; from openqnn.cli.start import tool; sys.exit(tool())"
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(start)} "$@"\n'


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _link_libraries(folder: Path) -> tuple[list[str], list[str]]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        home = find_library("libQnnSystem.so").parent
    except LibraryError:
        return [], [NO_LIBRARY]
    for beside in home.parent.glob(f"{home.name}.libs"):  # where a wheel keeps what its libraries need
        os.symlink(beside.resolve(), folder.parent / beside.name)
    return _link_all(folder, sorted(home.glob("libQnn*.so")) + sorted(home.glob("libHtp*.so"))), []


def _link_all(folder: Path, files: Iterable[Path]) -> list[str]:
    """Links, not copies: the libraries' licence lets nobody hand them on by themselves."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for file in files:
        if file.is_file():
            os.symlink(file.resolve(), folder / file.name)
            names.append(file.name)
    return names
