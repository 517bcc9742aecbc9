"""Write graphs to a DLC file through libQnnIr, and read them back through libQnnSystem.

libQnnIr serialises one graph per file, whatever is tried: further graphs in the same context replace the
file, and it has no contextFinalize and no contextGetBinary. So each graph gets a file of its own, and
`dlc_merge` joins them.
"""

from __future__ import annotations

import ctypes as c
import errno
import json
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from openqnn.errors import BackendError, ModelError, OutputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn import abi_system as sys_abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.dlc_merge import DlcFile, merge_dlcs
from openqnn.qnn.dlc_renames import notes, restored, writable
from openqnn.qnn.net import Net
from openqnn.qnn.read_structs import text
from openqnn.qnn.recorder import Recorder
from openqnn.qnn.system_api import SystemApi
from openqnn.worker.file_lock import folder_lock

GRAPH_INFO_V1 = 1
_DAMAGED = "the file may be damaged, or written by a newer QNN"
_ROOM_OF_RECORDS = 1 << 10  # about what a tensor or node takes in a file, rather more
NOTES = "openqnn.json"
"""A record of our own in the file: what the library's records cannot say."""


def write_dlc(backend: Backend, nets: Sequence[Net], path: str | PathLike[str]) -> None:
    """Write the graphs to a file, which appears whole or not at all. `backend` is libQnnIr."""
    if backend.api.backend_id != abi.BACKEND_IR:
        raise UsageError(f"DLC files are written by libQnnIr.so, not by {backend.api.library.name}")
    names = [net.name for net in nets]
    if not nets or len(set(names)) < len(names):
        raise UsageError(f"a DLC holds one or more graphs of different names, not {names}")
    _check_encodings(backend, nets)
    target = Path(path)
    try:
        # By its name and its lock, whoever writes to this place next knows whether the folder is left over.
        prefix = f"{target.name}." if target.name.startswith(".") else f".{target.name}."
        made = tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix, suffix=".part")
        with made as folder, _locked(folder):
            parts = [Path(folder, f"{index}.dlc") for index in range(len(nets))]
            for net, part in zip(nets, parts, strict=True):
                _write_one(backend, writable(net), part)
            whole = Path(folder, "whole.dlc")
            record = json.dumps({net.name: notes(net) for net in nets})
            merge_dlcs(parts, whole, {NOTES: record})
            whole.chmod(0o666 & ~_umask())  # the library takes rights away
            whole.replace(target)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot write {target}: {reason}", hint=_hint(error)) from error


def graph_names(path: str | PathLike[str]) -> list[str]:
    """The graphs of a DLC that was written here; none for other files."""
    if Path(path).suffix != ".dlc":
        return []
    file = DlcFile(Path(path))
    try:
        found = json.loads(file.read(NOTES)) if NOTES in file.records else {}
    except ValueError:
        return []
    return [str(name) for name in found] if isinstance(found, dict) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def read_dlc(
    backend: Backend, system: SystemApi, path: str | PathLike[str], *, borrow: bool = False
) -> list[Net]:
    """The graphs of a DLC file, with the operations that were written.

    Scales come back as float32, parameters in alphabetical order, rank 0 as [1]. With `borrow` the file stays
    open for ever, and large weights are not copied out of it.
    """
    with Context(backend) as context:
        recorder = Recorder(backend.api, forward=False, borrow=borrow)
        order = compose_dlc(context, backend, system, path, recorder, keep_open=borrow)
        noted = _notes(DlcFile(Path(path)))
        nets = {net.name: restored(net, noted.get(net.name, {})) for net in recorder.nets(order)}
        # The file has them by name; our own record, in the order that they were written in.
        return [nets[name] for name in sorted(nets, key=lambda name: _position(noted, name))]


def compose_dlc(
    context: Context,
    backend: Backend,
    system: SystemApi,
    path: str | PathLike[str],
    recorder: Recorder,
    *,
    keep_open: bool = False,
) -> dict[str, tuple[list[str], list[str]]]:
    """Let libQnnSystem compose a DLC's graphs in a context; gives the inputs and outputs of each in order."""
    DlcFile(Path(path)).check()  # a clearer word on files that are no DLC than the library has
    backend.progress(f"open {Path(path).name}")
    with system.logger() as logger:
        handle = c.c_void_p()
        mark = system.log.mark()
        _open(system, logger, path, handle, mark)
        try:
            backend.progress(f"compose the graphs of {Path(path).name}")
            return _compose(context, backend, system, handle, recorder, Path(path))
        finally:
            if not keep_open:
                system.call("systemDlcFree", handle)


def _open(system: SystemApi, logger: Any, path: str | PathLike[str], handle: Any, mark: int) -> None:
    with system.quiet():
        code = system.function("systemDlcCreateFromFile")(logger, os.fsencode(path), c.byref(handle))
    if code:
        error = system.failure("systemDlcCreateFromFile", code, str(path), mark)
        raise ModelError(error.message, hint=_DAMAGED)


def _compose(
    context: Context, backend: Backend, system: SystemApi, handle: Any, recorder: Recorder, path: Path
) -> dict[str, tuple[list[str], list[str]]]:
    interface = recorder.interface
    graphs, count = c.POINTER(sys_abi.GraphInfo)(), c.c_uint32()
    marks = system.log.mark(), backend.api.log.mark()
    with system.quiet():
        code = system.compose_function(interface)(
            handle, None, 0, backend.handle, context.handle, interface, GRAPH_INFO_V1,
            c.byref(graphs), c.byref(count),
        )  # fmt: skip
    if recorder.error is not None:
        raise ModelError(f"{path}: {recorder.error.message}")
    if code:
        error = system.failure("systemDlcComposeGraphs", code, str(path), marks[0])
        reasons = "".join(f"\n  log: {line}" for line in backend.api.log.since(marks[1]))
        raise ModelError(error.message + reasons, hint=_DAMAGED)
    return {text(graphs[i].body.name): _names(graphs[i].body) for i in range(count.value)}


def _names(body: sys_abi.GraphInfoBody) -> tuple[list[str], list[str]]:
    inputs = [text(body.inputs[i].body.v1.name) for i in range(body.input_count)]
    outputs = [text(body.outputs[i].body.v1.name) for i in range(body.output_count)]
    return inputs, outputs


def _check_encodings(backend: Backend, nets: Sequence[Net]) -> None:
    """Before core API 2.40, libQnnIr gives 4-bit channels one scale for all, and crashes on blocks."""
    if backend.api.core_version >= (2, 40, 0):
        return
    for net in nets:
        for tensor in net.tensors.values():
            quant = tensor.quant
            several = quant is not None and (len(set(quant.scales)) > 1 or quant.multiples)
            if quant and quant.axis is not None and quant.bitwidth and several:
                raise BackendError(
                    f"graph '{net.name}', tensor '{tensor.name}': {backend.api.library.name} of this version "
                    f"loses the scales of {quant.bitwidth}-bit channels when it writes a DLC",
                    hint="use QNN 2.51 or later (pip install onnxruntime-qnn==2.7.0)",
                )


def _check_room(net: Net, folder: Path) -> None:
    """Raises the system's reason for which the library could not write: it does not tell."""
    size = sum(tensor.data.nbytes for tensor in net.tensors.values() if tensor.data is not None)
    size += _ROOM_OF_RECORDS * (len(net.tensors) + len(net.nodes))
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _write_one(backend: Backend, net: Net, path: Path) -> None:
    option = abi.IrSerialization(option=abi.IR_SERIALIZATION, type=abi.IR_FLAT_BUFFER, path=os.fsencode(path))
    config = abi.CustomConfig(option=abi.CONFIG_CUSTOM, custom=c.addressof(option))
    with Context(backend) as context:
        graph = context.compose(net, validate=False, extra=[config])
        try:
            graph.finalize()
        except BackendError:
            _check_room(net, path.parent)
            raise
    if not path.is_file():
        raise OutputError(f"{backend.api.library.name} wrote no file for graph '{net.name}'")


def _notes(file: DlcFile) -> dict[str, dict[str, Any]]:
    """Our own record. A file without it, or with one that makes no sense, is read all the same."""
    if NOTES not in file.records:
        return {}
    try:
        found = json.loads(file.read(NOTES))
    except (ValueError, OSError, RecursionError):
        return {}
    graphs = found.items() if isinstance(found, dict) else ()
    return {str(name): _sound(noted) for name, noted in graphs if isinstance(noted, dict)}


def _sound(noted: dict[str, Any]) -> dict[str, Any]:
    """The notes of a graph so far as they have the form that they are written in."""
    tables = {key: noted[key] for key in ("ops", "sources") if _is_text_table(noted.get(key))}
    outputs = noted.get("outputs")
    if isinstance(outputs, list) and all(isinstance(name, str) for name in outputs):
        return {**tables, "outputs": outputs}
    return tables


def _is_text_table(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


def _position(noted: dict[str, Any], name: str) -> int:
    return list(noted).index(name) if name in noted else len(noted)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@contextmanager
def _locked(folder: str) -> Generator[None]:
    handle = folder_lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _hint(error: OSError) -> str:
    return "is the disk full?" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
