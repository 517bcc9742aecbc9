"""What a library says about itself, asked in a child process of its own: loading it may be the end of it.

python -m openqnn.qnn.probe libQnnCpu.so        one line of JSON
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from openqnn.qnn.load_errors import CUT_OFF, is_cut_off
from openqnn.worker.interpreter import interpreter_command, interpreter_environment

TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A library. `error` is the loader's own text, or how the child process ended; then the rest is empty.

    `provider` is empty for a library that loads but has no QNN interface of its own.
    """

    path: str
    provider: str = ""
    backend_id: int | None = None
    build_id: str = ""
    core_api: str = ""
    backend_api: str = ""
    error: str = ""


def probe_library(path: str | PathLike[str], timeout: float = TIMEOUT) -> Probe:
    """Load the library in a child process, and ask it for its name and versions."""
    try:
        done = subprocess.run(
            interpreter_command("-m", "openqnn.qnn.probe", os.fspath(path)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            env=interpreter_environment(),
        )
    except subprocess.TimeoutExpired:
        return Probe(os.fspath(path), error=f"no answer in {timeout:g} s")
    lines = done.stdout.splitlines()
    try:
        return Probe(**json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError):
        return Probe(os.fspath(path), error=f"the library ended the process (exit code {done.returncode})")


def _ask(path: str) -> Probe:
    # The library's dependencies are found the way the loader finds them, so nothing is loaded before it.
    try:
        if is_cut_off(Path(path)):
            return Probe(path, error=CUT_OFF)
        handle = ctypes.CDLL(path)
    except OSError as error:
        return Probe(path, error=str(error))
    if hasattr(handle, "QnnInterface_getProviders"):
        return _backend(path)
    if hasattr(handle, "QnnSystemInterface_getProviders"):
        return _system(path)
    return Probe(path)


def _backend(path: str) -> Probe:
    from openqnn.qnn.api import Api
    from openqnn.qnn.library import load_library

    api = Api(load_library(path), capture=False)
    provider = api._provider
    build = _attempt(lambda: api.build_id)
    return Probe(
        path, _text(provider.name), api.backend_id, build, _dotted(provider.core), _dotted(provider.backend)
    )


def _system(path: str) -> Probe:
    from openqnn.qnn.system_api import SystemApi

    system = SystemApi(path, capture=False)
    provider = system._provider
    return Probe(path, _text(provider.name), None, "", _dotted(provider.version))


def _attempt(ask: Callable[[], str]) -> str:
    from openqnn.errors import BackendError

    try:
        return ask()
    except BackendError:
        return ""


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _dotted(version: object) -> str:
    return ".".join(str(getattr(version, part)) for part in ("major", "minor", "patch"))


def _main() -> None:
    from openqnn.errors import OpenQnnError

    path = sys.argv[1]
    try:
        answer = _ask(path)
    except OpenQnnError as error:
        answer = Probe(path, error=error.message)
    sys.stdout.write("\n" + json.dumps(asdict(answer)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # some libraries crash when they are unloaded


if __name__ == "__main__":
    _main()
