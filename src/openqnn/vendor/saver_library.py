"""Saver bundles read back: the program in one calls an interface table for all that its graphs have.

It is built as a library, with a table of ours to call, and is run in the child process that notes it down.
"""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

from openqnn.emit.model_lib import INCLUDE, run_compiler
from openqnn.emit.toolchain import find_compiler
from openqnn.errors import ModelError
from openqnn.qnn.net import Net
from openqnn.qnn.saver import WEIGHTS
from openqnn.vendor import remote

_TARGETS = {"x86_64": "x86_64-linux-clang", "aarch64": "aarch64-linux"}
# 71 entries, the shortest table that there is: it is copied out of one that may have more.
_FLAGS = (
    "-x", "c", "-std=gnu11", "-O0", "-w", "-fPIC", "-shared", "-Wl,-z,noexecstack",
    "-DOPENQNN_CORE_API_MINOR=32",
)  # fmt: skip
_PROGRAM = Path(__file__).with_name("replay.c")


def read_saver(path: str | os.PathLike[str], *, timeout: float = 600.0) -> list[Net]:
    """The graphs of a bundle, given by its source (saver_output.c); params.bin stands beside it."""
    source = Path(path).absolute()
    if not source.with_name(WEIGHTS).is_file():
        raise ModelError(f"{path}: there is no {WEIGHTS} beside it, which has the weights")
    with tempfile.TemporaryDirectory(prefix="openqnn-") as folder:
        library = _build(source, Path(folder))
        return remote.read_saver(library, source.parent, timeout=timeout)


def _build(source: Path, folder: Path) -> Path:
    compiler = find_compiler(_TARGETS.get(platform.machine(), platform.machine()))
    library = folder / "libreplay.so"
    given = ("-I", str(INCLUDE), f'-DOPENQNN_SOURCE="{source}"')
    try:
        run_compiler(compiler, folder, *_FLAGS, *given, str(_PROGRAM), "-o", str(library))
    except ModelError as error:
        hint = "is it what libQnnSaver wrote, and whole?"
        raise ModelError(f"{source} cannot be built: {error.message}", hint=hint) from error
    return library
