"""What is installed, what works, and what to do about the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from openqnn.analysis.provider_start import NAME as PROVIDER
from openqnn.analysis.provider_start import provider_error
from openqnn.emit.toolchain import find_compiler
from openqnn.errors import LibraryError, OpenQnnError, OpenQnnWarning
from openqnn.qnn.library import SDK_ROOT, find_library, sdk_folder
from openqnn.qnn.load_errors import explain_load, glibc
from openqnn.qnn.probe import Probe, probe_library

OK, MISSING, BROKEN, UNUSED = "ok", "missing", "broken", "unused"

LIBRARIES = {
    "libQnnHtp.so": "compiles for HTP and simulates it",
    "libQnnCpu.so": "runs graphs on the CPU, the reference",
    "libQnnGpu.so": "runs graphs on Adreno GPUs",
    "libQnnIr.so": "writes DLC files",
    "libQnnSystem.so": "reads DLC files and context binaries",
    "libQnnSaver.so": "records calls for bug reports",
}
_NEEDED = ("numpy", "onnx", "onnxruntime", "PyYAML", "rich")
_OPTIONAL = {"onnxruntime-qnn": "Qualcomm's libraries"}
PAIRS = {"2.3.0": "1.24.*", "2.7.0": "1.31.*"}
"""Versions of the QNN provider, each with one of ONNX Runtime that it starts in."""
_TARGETS = ("x86_64-linux-clang", "aarch64-linux", "aarch64-android")
_ADB_HINT = "install Android's platform tools (apt-get install adb) to use phones"
_SECONDS = 20.0
TINY = """
graph "tiny" {
  input %a: float32[1,4]
  input %b: float32[1,4]
  %sum: float32[1,4] = ElementWiseAdd(%a, %b)
  output %sum
}
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at: ok, missing, broken, or unused, which is broken and not needed here.
    `hint` says what to do where it is not ok."""

    kind: str
    name: str
    status: str
    version: str = ""
    detail: str = ""
    hint: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class LibraryItem(Item):
    """A vendor library, with what it says of itself."""

    provider: str = ""
    build_id: str = ""
    core_api: str = ""
    backend_api: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All of it; `ok` when models can be converted and run on the built-in backend, and of the vendor's
    libraries, where there are any, not all are broken."""

    items: tuple[Item, ...]

    @property
    def ok(self) -> bool:
        libraries = {item.status for item in self.items if item.kind == "library"}
        needed = (item.status for item in self.items if item.kind in ("backend", "python", "package"))
        return all(status == OK for status in needed) and (BROKEN not in libraries or OK in libraries)


def diagnose() -> Diagnosis:
    """Look at everything. Libraries are loaded in child processes: a broken one harms nobody."""
    with ThreadPoolExecutor() as pool:
        libraries = pool.map(_library, LIBRARIES)
        compilers = pool.map(_compiler, _TARGETS)
        devices, provider = pool.submit(_devices), pool.submit(_provider)
        found = [_built_in(), _python(), *_packages(), *provider.result(), *_sdk()]
        items = [*found, *libraries, *compilers, *devices.result()]
    return Diagnosis(tuple(items))


def _built_in() -> Item:
    """One addition on the built-in backend, as every conversion and run needs it."""
    try:
        total = _tiny_sum()
    except (OpenQnnError, ImportError, RuntimeError) as error:
        return Item(
            "backend", "built-in", BROKEN, detail=str(error), hint="pip install --upgrade onnxruntime"
        )
    if total != 3.0:
        return Item(
            "backend", "built-in", BROKEN, detail=f"1 + 2 gave {total}", hint="install onnxruntime again"
        )
    return Item("backend", "built-in", OK, _version_of("onnxruntime"), "runs graphs through ONNX Runtime")


def _tiny_sum() -> float:
    from openqnn.api.session import Session
    from openqnn.ir.graph_text import parse_graph

    with Session(parse_graph(TINY)) as session:
        result = session.run({"a": np.ones((1, 4), np.float32), "b": np.full((1, 4), 2, np.float32)})
    return float(result["sum"].sum()) / 4


def _python() -> Item:
    version = platform.python_version()
    detail = f"{platform.system()} {platform.machine()}, glibc {glibc()}"
    return Item("python", "python", OK, version, detail, path=sys.executable)


def _packages() -> list[Item]:
    found = [Item("package", "openqnn", OK, _version_of("openqnn") or _own_version())]
    for name in _NEEDED:
        version = _version_of(name)
        hint = "" if version else f"pip install {name}"
        found.append(Item("package", name, OK if version else MISSING, version, "", hint))
    for name, what in _OPTIONAL.items():
        version = _version_of(name)
        hint = "" if version else "pip install 'openqnn[qnn]'"
        found.append(Item("extra", name, OK if version else MISSING, version, what, hint))
    return found


def _provider() -> list[Item]:
    """Whether ONNX Runtime's own QNN provider starts; nothing where it is not installed."""
    version, host = _version_of("onnxruntime-qnn"), _version_of("onnxruntime")
    if not version or not host:
        return []
    error = provider_error()
    if not error:
        return [Item("extra", PROVIDER, OK, version, f"starts in ONNX Runtime {host}")]
    hint = (
        "OpenQNN does without it; to use it in ONNX Runtime, install a pair that goes together, such as "
        + " or ".join(f"onnxruntime-qnn=={one} with onnxruntime=={other}" for one, other in PAIRS.items())
    )
    return [Item("extra", PROVIDER, UNUSED, version, f"does not start in ONNX Runtime {host}: {error}", hint)]


def _own_version() -> str:
    from openqnn import __version__

    return __version__


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _sdk() -> list[Item]:
    """Whether the SDK that the user named has libraries, or others are taken."""
    folder = sdk_folder()
    if folder is None:
        return []
    if any((folder / name).is_file() for name in LIBRARIES):
        return [Item("setting", SDK_ROOT, OK, detail="its libraries are taken first", path=str(folder))]
    hint = "set it to the folder of the SDK that has lib/x86_64-linux-clang, or unset it"
    return [Item("setting", SDK_ROOT, BROKEN, "", "it has no libraries for this machine", hint, str(folder))]


def _library(name: str) -> Item:
    try:
        with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):  # the setting has a row
            path = find_library(name)
    except LibraryError as error:
        return LibraryItem("library", name, MISSING, "", LIBRARIES[name], error.hint)
    return library_item(name, probe_library(path), LIBRARIES[name])


def library_item(name: str, probe: Probe, what: str = "") -> LibraryItem:
    """A probe's answer in the words of the report."""
    if probe.error:
        reason, advice = explain_load(probe.path, probe.error)
        return LibraryItem("library", name, BROKEN, "", reason, advice, probe.path)
    what = ", ".join(filter(None, [what, f"API {probe.core_api}" if probe.core_api else ""]))
    return LibraryItem(
        "library", name, OK, probe.build_id, what, "", probe.path,
        probe.provider, probe.build_id, probe.core_api, probe.backend_api,
    )  # fmt: skip


def _compiler(target: str) -> Item:
    try:
        found = find_compiler(target)
    except OpenQnnError as error:
        return Item("compiler", target, MISSING, "", error.message, error.hint)
    command = found.command[0]
    lines = _output(command, "--version").splitlines()
    path = shutil.which(command) or command
    return Item("compiler", target, OK, lines[0] if lines else "", "builds model libraries", "", path)


def _devices() -> list[Item]:
    adb = shutil.which("adb")
    if adb is None:
        return [Item("device", "adb", MISSING, "", "no adb: phones cannot be reached", _ADB_HINT)]
    rows = [line.split() for line in _output(adb, "devices", "-l").splitlines()[1:] if line.strip()]
    devices = [row for row in rows if len(row) > 1 and not row[0].startswith("*")]
    if not devices:
        hint = "connect one, allow USB debugging on it, and see `adb devices`"
        return [Item("device", "adb", MISSING, "", "adb lists no device", hint, adb)]
    return [_device(row, adb) for row in devices]


def _device(row: list[str], adb: str) -> Item:
    """A line of `adb devices -l`: number, state, and properties such as model:Pixel."""
    state, detail = row[1], " ".join(row[2:])
    if state == "device":
        return Item("device", row[0], OK, "", detail, "", adb)
    hint = "allow this computer on the device's screen" if state == "unauthorized" else "connect it again"
    return Item("device", row[0], BROKEN, "", f"its state is '{state}'", hint, adb)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
