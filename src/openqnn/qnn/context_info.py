"""What is in a context binary, told by libQnnSystem."""

from __future__ import annotations

import ctypes as c
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from openqnn.errors import ModelError
from openqnn.qnn import abi_system as sys_abi
from openqnn.qnn.api import Table
from openqnn.qnn.net import Array, NetTensor
from openqnn.qnn.read_structs import read_tensor, text
from openqnn.qnn.system_api import SystemApi

AGAIN = "check its size, copy it again or compile it again"
"""What to do about a binary that is damaged."""
_SMALLEST = 16
# Libraries before this one (1.11, of QNN 2.47) leave the range of ops as they found the memory.
_OP_RANGES = (1, 15, 0)
_BLOB_V1 = struct.Struct("<I4xQ2II4xQ")
_BLOB_V2 = struct.Struct("<I4x8Q")


@dataclass(frozen=True, slots=True)
class IoTensor:
    """A tensor of a compiled graph, with the number that the library knows it by."""

    id: int
    tensor: NetTensor


@dataclass(frozen=True, slots=True)
class HtpGraphBlobV2:
    """More of what HTP says; sizes in bytes."""

    native_k_channel_size: int
    native_v_channel_size: int
    is_safe_share_io: int
    io_tensor_size: int
    op_data_size: int
    const_size: int
    ddr_tensor_size: int
    shared_weights_size: int


@dataclass(frozen=True, slots=True)
class HtpGraphBlob:
    """What HTP says about how it compiled a graph; sizes in bytes. Zero means that nothing was asked for."""

    spill_fill_size: int
    vtcm_size: int
    optimization_level: int
    dlbc: int
    hvx_threads: int
    v2: HtpGraphBlobV2 | None = None


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A graph of a context binary. `blob` is the backend's own record, uninterpreted."""

    name: str
    inputs: tuple[IoTensor, ...]
    outputs: tuple[IoTensor, ...]
    updateable: tuple[IoTensor, ...] = ()
    version: int = 1
    start_op: int = 0
    end_op: int = 0
    blob: bytes = b""

    @property
    def htp(self) -> HtpGraphBlob | None:
        """The blob as HTP means it."""
        return _htp_graph_blob(self.blob)


@dataclass(frozen=True, slots=True)
class CoreInfo:
    id: int
    type: int


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    id: int
    type: int
    cores: tuple[CoreInfo, ...]


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """A whole context binary. Versions are as the library writes them: major, minor, patch."""

    version: int
    backend_id: int
    build_id: str
    core_api: tuple[int, int, int]
    backend_api: tuple[int, int, int]
    soc_version: str
    blob_version: tuple[int, int, int]
    blob_size: int
    tensors: tuple[IoTensor, ...]
    graphs: tuple[GraphInfo, ...]
    devices: tuple[DeviceInfo, ...] = ()
    metadata: bytes = b""
    soc_model: int | None = None

    @property
    def dsp_arch(self) -> int | None:
        """The HTP architecture, where the binary tells it."""
        if len(self.metadata) < 8:
            return None
        return int(struct.unpack_from("<I", self.metadata, 4)[0]) or None


def context_info(
    blob: Array | bytes, library: str | PathLike[str] | SystemApi = "system", *, capture: bool = True
) -> ContextInfo:
    """Read what a context binary contains. The library can crash on damaged ones; the worker survives it."""
    api = library if isinstance(library, SystemApi) else SystemApi(library, capture=capture)
    memory = np.frombuffer(blob, np.uint8)
    if memory.nbytes < _SMALLEST:
        raise ModelError(f"a context binary has more than {memory.nbytes} bytes", hint=AGAIN)
    with _context(api) as handle:
        info = c.POINTER(sys_abi.BinaryInfo)()
        _describe(api, handle, memory, info)
        return _context_info(info[0], ranges=api.version >= _OP_RANGES)


@contextmanager
def _context(api: Table) -> Iterator[c.c_void_p]:
    handle = c.c_void_p()
    api.call("systemContextCreate", c.byref(handle))
    try:
        yield handle
    finally:
        api.call("systemContextFree", handle)


def _describe(api: Table, handle: c.c_void_p, memory: Array, info: Any) -> None:
    address, size, unused = memory.ctypes.data, memory.nbytes, c.c_uint64()
    if api.has("systemContextGetMetaData"):
        code = api.function("systemContextGetMetaData")(handle, address, size, c.byref(info))
    else:
        code = api.function("systemContextGetBinaryInfo")(
            handle, address, size, c.byref(info), c.byref(unused)
        )
    if code or not info:
        raise ModelError(f"not a context binary, or a damaged one: {api.describe(code)}", hint=AGAIN)


def _context_info(info: sys_abi.BinaryInfo, *, ranges: bool) -> ContextInfo:
    if info.version not in (1, 2, 3):
        raise ModelError(f"a context binary description of version {info.version} is not known")
    body: Any = info.body.v3 if info.version == 3 else info.body.old
    platform = body.platform if info.version >= 2 else None
    return ContextInfo(
        version=info.version,
        backend_id=body.backend_id,
        build_id=text(body.build_id),
        core_api=_version(body.core),
        backend_api=_version(body.backend),
        soc_version=text(body.soc_version),
        blob_version=_version(body.context_blob_version),
        blob_size=body.context_blob_size,
        tensors=_tensors(body.tensors, body.tensor_count),
        graphs=tuple(_graph(body.graphs[i], ranges=ranges) for i in range(body.graph_count)),
        devices=_devices(platform[0]) if platform else (),
        metadata=_bytes(body.metadata, body.metadata_size) if info.version == 3 else b"",
        soc_model=body.soc_model if info.version == 3 else None,
    )


def _graph(info: sys_abi.GraphInfo, *, ranges: bool) -> GraphInfo:
    body = info.body
    newer, newest = info.version >= 2, info.version >= 3
    return GraphInfo(
        name=text(body.name),
        inputs=_tensors(body.inputs, body.input_count),
        outputs=_tensors(body.outputs, body.output_count),
        updateable=_tensors(body.updateable, body.updateable_count) if newer else (),
        version=info.version,
        start_op=body.start_op if newest and ranges else 0,
        end_op=body.end_op if newest and ranges else 0,
        blob=_bytes(body.blob_info, body.blob_info_size) if newest else b"",
    )


def _devices(platform: sys_abi.PlatformInfo) -> tuple[DeviceInfo, ...]:
    return tuple(
        DeviceInfo(
            device.id,
            device.type,
            tuple(CoreInfo(device.cores[j].id, device.cores[j].type) for j in range(device.core_count)),
        )
        for device in (platform.devices[i] for i in range(platform.count))
    )


def _tensors(array: Any, count: int) -> tuple[IoTensor, ...]:
    return tuple(IoTensor(array[i].body.v1.id, read_tensor(array[i])) for i in range(count))


def _bytes(address: int | None, size: int) -> bytes:
    return c.string_at(address, size) if address and size else b""


def _version(value: Any) -> tuple[int, int, int]:
    return value.major, value.minor, value.patch


def _htp_graph_blob(blob: bytes) -> HtpGraphBlob | None:
    """Two records, each behind its version number; older libraries write the first one only."""
    if len(blob) < _BLOB_V1.size or _BLOB_V1.unpack_from(blob)[0] != 1:
        return None
    first = _BLOB_V1.unpack_from(blob)[1:]
    rest = blob[_BLOB_V1.size :]
    if len(rest) < _BLOB_V2.size or _BLOB_V2.unpack_from(rest)[0] != 2:
        return HtpGraphBlob(*first)
    return HtpGraphBlob(*first, v2=HtpGraphBlobV2(*_BLOB_V2.unpack_from(rest)[1:]))
