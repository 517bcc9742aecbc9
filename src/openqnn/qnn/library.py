"""Find and load a vendor library, as late as possible, with advice when it is not there."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openqnn.errors import LibraryError, OpenQnnWarning
from openqnn.qnn.load_errors import CUT_OFF, explain_load, is_cut_off
from openqnn.worker.c_function import c_function
from openqnn.worker.capture import captured_output

WHEEL = "onnxruntime-qnn==2.3.0"
SDK_ROOT = "QNN_SDK_ROOT"

_SHORT_NAMES = {
    "cpu": "libQnnCpu.so",
    "gpu": "libQnnGpu.so",
    "htp": "libQnnHtp.so",
    "ir": "libQnnIr.so",
    "saver": "libQnnSaver.so",
    "system": "libQnnSystem.so",
}
_GONE = {"libQnnCpu.so": "; newer wheels do not carry libQnnCpu.so"}


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded vendor library."""

    path: Path
    handle: ctypes.CDLL

    @property
    def name(self) -> str:
        return self.path.name


_loaded: dict[Path, Library] = {}
_lock = threading.Lock()


def find_library(name: str | os.PathLike[str]) -> Path:
    """The file that `name` means: a path, a file name such as libQnnCpu.so, or a short name such as cpu."""
    text = os.fspath(name)
    if os.sep in text or "\\" in text:
        return _given_path(Path(text.replace("\\", os.sep)))
    file_name = _SHORT_NAMES.get(text.lower(), _on_linux(text))
    looked: list[str] = []
    for origin, folder in _folders():
        if (folder / file_name).is_file():
            _warn_of_sdk(file_name, folder)
            return (folder / file_name).absolute()
        looked.append(f"{folder} ({origin})")
    raise LibraryError(_not_found(file_name, looked), hint=_advice(file_name))


def _warn_of_sdk(file_name: str, folder: Path) -> None:
    """Who sets the variable believes to use that SDK."""
    sdk = sdk_folder()
    if sdk is not None and folder != sdk:
        message = f"{SDK_ROOT}: there is no {file_name} in {sdk}, and that of {folder} is used"
        warnings.warn(message, OpenQnnWarning, stacklevel=1)  # from one place, which Python tells once


def load_library(name: str | os.PathLike[str]) -> Library:
    """Load the library, once per process: the vendor's libraries do not unload cleanly."""
    path = find_library(name)
    with _lock:
        if path not in _loaded:
            _loaded[path] = Library(path, _open(path))
        return _loaded[path]


def unload_library(library: Library) -> None:
    """For one that does its last work when it is unloaded. Nothing may call it any more."""
    with _lock:
        _loaded.pop(library.path, None)
    for _ in range(2):  # it was opened twice, see `_open`
        close = c_function("dlclose")
        close.argtypes = [ctypes.c_void_p]
        close(library.handle._handle)


def can_fork() -> bool:
    """Whether a copy of this process can work on its own.

    A lock that another thread holds stays locked in the copy, and a vendor's library lacks its threads there.
    """
    return hasattr(os, "fork") and threading.active_count() == 1 and not _loaded


def _open(path: Path) -> ctypes.CDLL:
    try:
        if is_cut_off(path):
            raise OSError(CUT_OFF)
        with captured_output(deque()):
            # Other threads go on meanwhile, which ctypes' own loading would not let them do.
            if sys.platform != "win32":
                c_function("dlopen")(os.fsencode(path), os.RTLD_NOW)
            return ctypes.CDLL(str(path))
    except OSError as error:
        reason, hint = explain_load(str(path), str(error))
        raise LibraryError(f"{path} cannot be loaded: {reason}", hint=hint) from error


def _given_path(path: Path) -> Path:
    if path.is_file():
        return path.absolute()
    missing = LibraryError(f"{path.name} not found: there is no file {path}", hint=_advice(path.name))
    if _on_linux(path.name) not in _SHORT_NAMES.values():
        raise missing
    try:
        found = find_library(path.name)  # scripts have the path of an SDK that is not here
    except LibraryError:
        raise missing from None
    warnings.warn(f"there is no file {path}: {found} is used", OpenQnnWarning, stacklevel=1)
    return found


def _on_linux(name: str) -> str:
    """QnnHtp.dll is libQnnHtp.so here."""
    return f"lib{name[:-4]}.so" if re.fullmatch(r"Qnn\w+\.dll", name, re.IGNORECASE) else name


def sdk_folder() -> Path | None:
    """Where the SDK that the environment names has its libraries for this machine."""
    root = os.environ.get(SDK_ROOT)
    return Path(root) / "lib" / "x86_64-linux-clang" if root else None


def _folders() -> Iterator[tuple[str, Path]]:
    sdk = sdk_folder()
    if sdk:
        yield SDK_ROOT, sdk
    spec = importlib.util.find_spec("onnxruntime_qnn")  # finds the package without running it
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield "onnxruntime-qnn wheel", Path(location)
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if entry:
            yield "LD_LIBRARY_PATH", Path(entry)


def installed_folders() -> list[Path]:
    """Every folder that libraries of Qualcomm's are looked for in and that has some."""
    return [folder for _, folder in _folders() if any(folder.glob("libQnn*.so"))]


def _not_found(file_name: str, looked: list[str]) -> str:
    if not looked:
        return (
            f"{file_name} not found: QNN_SDK_ROOT and LD_LIBRARY_PATH are not set, "
            "and the onnxruntime-qnn wheel is not installed"
        )
    return f"{file_name} not found; looked in " + ", ".join(looked)


def _advice(file_name: str) -> str:
    if file_name not in _SHORT_NAMES.values():
        names = ", ".join(_SHORT_NAMES)
        return f"name a library by its path, its file name (libQnnHtp.so) or one of: {names}"
    return f"pip install {WHEEL}{_GONE.get(file_name, '')}, or set QNN_SDK_ROOT"
