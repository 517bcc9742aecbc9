"""Read the graphs of a model library: the .so that is compiled from a converter's model.cpp."""

from __future__ import annotations

import ctypes as c
import mmap
import re
from os import PathLike
from pathlib import Path
from typing import Any

from openqnn.errors import LibraryError, ModelError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.library import Library, load_library
from openqnn.qnn.net import Net
from openqnn.qnn.read_structs import text
from openqnn.qnn.recorder import Recorder

PREFIX = "QnnModel"
"""What the functions of a model library start with, unless it was built otherwise (and then it is found)."""

_COMPOSE = re.compile(rb"\0([A-Za-z_]\w*)_composeGraphs(?=\0)")

_ERRORS = {
    1: "TENSOR", 2: "PARAMS", 3: "NODES", 4: "GRAPH", 5: "CONTEXT", 6: "GENERATION", 7: "SETUP",
    8: "INVALID_ARGUMENT", 9: "FILE", 10: "MEM_ALLOC",
}  # fmt: skip


class _Functions(c.Structure):
    """The interface table that is passed by value, with zeros behind the entries that models call.

    The model finds `debug`, the log callback and the log level behind a table of the length that it was
    compiled for, which is not known here. It finds zeros, whatever the length: no debug, no callback.
    """

    _fields_ = [("table", c.c_void_p * 128)]


_CALLED = abi.INTERFACE_ENTRIES.index("errorGetMessage")


class _GraphInfo(c.Structure):
    _fields_ = [
        ("handle", c.c_void_p),
        ("name", c.c_char_p),
        ("inputs", c.POINTER(abi.Tensor)),
        ("input_count", c.c_uint32),
        ("outputs", c.POINTER(abi.Tensor)),
        ("output_count", c.c_uint32),
    ]


_Infos = c.POINTER(c.POINTER(_GraphInfo))


def read_model_library(backend: Backend, path: str | PathLike[str], prefix: str = PREFIX) -> list[Net]:
    """The graphs that the library composes. It is the user's code: only the worker survives its crashes."""
    recorder = Recorder(backend.api, forward=False)
    with Context(backend) as context:
        order = compose_model_library(context, backend, path, recorder, prefix)
        return recorder.nets(order)


def compose_model_library(
    context: Context,
    backend: Backend,
    path: str | PathLike[str],
    recorder: Recorder,
    prefix: str = PREFIX,
) -> dict[str, tuple[list[str], list[str]]]:
    """Let a model library compose its graphs in a context; gives the inputs and outputs of each in order."""
    library = _load(path)
    prefix = _prefix(library, prefix)
    compose, free = (
        _function(library, f"{prefix}_composeGraphs"),
        _function(library, f"{prefix}_freeGraphsInfo"),
    )
    compose.argtypes = [
        c.c_void_p, _Functions, c.c_void_p, c.c_void_p, c.c_uint32, c.c_void_p, c.c_void_p,
        c.c_bool, c.c_void_p, c.c_uint32,
    ]  # fmt: skip
    free.argtypes = [c.c_void_p, c.c_uint32]
    infos, count = _Infos(), c.c_uint32()
    backend.progress(f"compose the graphs of {library.name}")
    mark = backend.api.log.mark()
    with backend.api.quiet():
        code = compose(
            backend.handle, _table(recorder), context.handle, None, 0, c.byref(infos), c.byref(count), False,
            None, 0,
        )  # fmt: skip
    if recorder.error is not None:
        raise ModelError(f"{library.name}: {recorder.error.message}")
    if code:
        symbol = f"MODEL_{_ERRORS.get(code, 'UNKNOWN')}_ERROR"
        log = "".join(f"\n  log: {line}" for line in backend.api.log.since(mark))
        raise ModelError(f"{library.name}: {prefix}_composeGraphs failed with {symbol} ({code}){log}")
    order = {text(infos[i][0].name): _names(infos[i][0]) for i in range(count.value)}
    free(c.byref(infos), count)
    return order


def _table(recorder: Recorder) -> _Functions:
    interface = recorder.interface
    functions = _Functions()
    functions.table[:_CALLED] = interface.table[:_CALLED]
    return functions


def _names(info: _GraphInfo) -> tuple[list[str], list[str]]:
    inputs = [text(info.inputs[i].body.v1.name) for i in range(info.input_count)]
    return inputs, [text(info.outputs[i].body.v1.name) for i in range(info.output_count)]


def _load(path: str | PathLike[str]) -> Library:
    if not Path(path).is_file():
        raise ModelError(f"there is no model library {path}")
    try:
        return load_library(Path(path).absolute())
    except LibraryError as error:
        hint = "build it for this machine: qnn-model-lib-generator -t x86_64-linux-clang"
        raise ModelError(error.message, hint=hint) from error


def _prefix(library: Library, wanted: str) -> str:
    """The given prefix, or the one that the library has where none was given."""
    if wanted != PREFIX or hasattr(library.handle, f"{PREFIX}_composeGraphs"):
        return wanted
    with library.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = {match[1].decode() for match in _COMPOSE.finditer(data)}
    exported = [name for name in found if hasattr(library.handle, f"{name}_composeGraphs")]
    return exported[0] if len(exported) == 1 else wanted


def _function(library: Library, name: str) -> Any:
    try:
        return getattr(library.handle, name)
    except AttributeError as error:
        raise ModelError(f"{library.path} is not a model library: it has no {name}") from error
