"""Lays out a folder as the SDK does: tools, headers, samples, and links to the installed libraries."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openqnn import analysis
from openqnn.analysis.throughput_report import SAMPLE
from openqnn.emit.model_lib import INCLUDE
from openqnn.errors import LibraryError, ModelError, OutputError
from openqnn.qnn.library import find_library
from openqnn.sdk.native_code import MODEL_DLC, SAMPLE_APP, build_model_dlc
from openqnn.sdk.setup_scripts import SCRIPTS

LINUX, WINDOWS = "x86_64-linux-clang", "x86_64-windows-msvc"
HOST = WINDOWS if sys.platform == "win32" else LINUX
MARK = ".openqnn-sdk-tree"
PARTS = ("bin", "lib", "include", "share", "examples")
NO_LIBRARY = "Qualcomm's libraries are not installed: lib/ has none of them (pip install 'openqnn[qnn]')"

_SAMPLES = Path(__file__).parent / "samples"
CONFIGS = {
    "examples/QNN/ThroughputNetRun/sample_config.json": Path(analysis.__path__[0]) / SAMPLE,
    "examples/QNN/NetRun/htp_backend_extensions.json": _SAMPLES / "htp_backend_extensions.json",
    "examples/QNN/NetRun/htp_config.json": _SAMPLES / "htp_config.json",
    "lib/python/qti/aisw/quantization_checker/configs/sample_config.json": _SAMPLES
    / "quantization_checker.json",
    "lib/python/qti/aisw/accuracy_evaluator/configs/samples/model_configs/sample_config.yaml": _SAMPLES
    / "accuracy_evaluator.yaml",
}
"""Sample configurations, by the places where the SDK has them."""

# What applications include by these names is all in the one header.
FORWARDED = (
    "QnnBackend.h", "QnnCommon.h", "QnnContext.h", "QnnDevice.h", "QnnError.h", "QnnGraph.h", "QnnLog.h",
    "QnnMem.h", "QnnProfile.h", "QnnProperty.h", "QnnSignal.h", "QnnTensor.h",
    "System/QnnSystemCommon.h", "System/QnnSystemContext.h", "System/QnnSystemDlc.h",
    "System/QnnSystemLog.h", "System/QnnSystemTensor.h",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SdkTree:
    """What was laid out where, and what could not be."""

    root: Path
    tools: list[str]
    libraries: list[str]
    headers: list[str]
    notes: list[str] = field(default_factory=lambda: list[str]())


def write_sdk_tree(
    root: Path, tools: Sequence[str], advisers: Sequence[str] = (), host: str = HOST
) -> SdkTree:
    """Writes the tree; an earlier one is replaced, a folder with anything else in it is not.

    `advisers` are names of the original's tools that only tell what to use in their place; `host` names the
    folders of programs and libraries, as the SDK does.
    """
    check_sdk_folder(root)
    for part in PARTS:
        shutil.rmtree(root / part, ignore_errors=True)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text("laid out by `openqnn sdk-tree`\n", encoding="utf-8")
    for name in (*tools, *advisers):
        _write_wrapper(root / "bin" / host, name)
    for name, text in SCRIPTS.items():
        _write_program(root / "bin" / name, text)
    headers = _write_headers(root)
    for place, sample in CONFIGS.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sample, root / place)
    shutil.copytree(SAMPLE_APP, root / "examples" / "QNN" / "SampleApp")
    libraries, notes = _link_libraries(root / "lib" / host)
    if host == LINUX:
        _add_model_dlc(root / "lib" / host, libraries, notes)
    return SdkTree(root, list(tools), libraries, headers, notes)


def check_sdk_folder(root: Path) -> None:
    """OutputError where a folder is there that is no tree of ours: nothing of the user's is removed."""
    if root.exists() and not root.is_dir():
        raise OutputError(f"{root} is a file", hint="give a folder")
    if root.is_dir() and any(root.iterdir()) and not (root / MARK).exists():
        raise OutputError(f"{root} is not empty, and no `openqnn sdk-tree` made it", hint="give a new folder")


def _write_wrapper(folder: Path, name: str) -> None:
    """A script, of the shell or of Windows' cmd, that runs a tool in the Python that this one is."""
    start = f"import sys; sys.argv[0] = {name!r}; from openqnn.cli.start import tool; sys.exit(tool())"
    if folder.name == WINDOWS:
        python = sys.executable.replace("%", "%%")
        _write_program(folder / f"{name}.cmd", f'@"{python}" -P -c "{start}" %*\r\n')
    else:
        start = shlex.quote(start)
        _write_program(folder / name, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {start} "$@"\n')


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())  # the ends of lines are those of the text on every system
    path.chmod(0o755)


def _write_headers(root: Path) -> list[str]:
    """Headers with folders as they are here, and the names under which applications include them."""
    include = root / "include" / "QNN"
    shutil.copytree(INCLUDE, include)
    for name in FORWARDED:
        up = "../" if "/" in name else ""
        whole = "System/QnnSystemInterface.h" if up else "QnnInterface.h"
        (include / name).write_text(f'#include "{up}{whole}"\n', encoding="utf-8")
    jni = root / "share" / "QNN" / "converter" / "jni"
    jni.mkdir(parents=True)
    for header in include.glob("*.hpp"):
        shutil.copyfile(header, jni / header.name)
    return sorted(str(file.relative_to(include)) for file in include.rglob("*.h*"))


def _link_libraries(folder: Path) -> tuple[list[str], list[str]]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        home = find_library("libQnnSystem.so").parent
    except LibraryError:
        return [], [NO_LIBRARY]
    for beside in home.parent.glob(f"{home.name}.libs"):  # where a wheel keeps what its libraries need
        os.symlink(beside.resolve(), folder.parent / beside.name)
    return _link_all(folder, sorted(home.glob("libQnn*.so")) + sorted(home.glob("libHtp*.so"))), []


def _add_model_dlc(folder: Path, libraries: list[str], notes: list[str]) -> None:
    """Our own library among the vendor's, where a compiler is there to build it."""
    try:
        build_model_dlc(HOST, folder)
        libraries.append(MODEL_DLC)
    except (LibraryError, ModelError) as error:
        reason = error.message.splitlines()[0]
        notes.append(f"{MODEL_DLC} was not built, which C++ applications open DLC files with: {reason}")


def _link_all(folder: Path, files: Iterable[Path]) -> list[str]:
    """Links, not copies: the libraries' licence lets nobody hand them on by themselves."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for file in files:
        if file.is_file():
            os.symlink(file.resolve(), folder / file.name)
            names.append(file.name)
    return names
