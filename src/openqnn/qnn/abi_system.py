"""libQnnSystem's part of the C interface, declared for ctypes as in `openqnn.qnn.abi`."""

from __future__ import annotations

import ctypes as c

from openqnn.qnn.abi import EventData, ObjectEventData, Tensor, Version

SYSTEM_ENTRIES: tuple[str, ...] = (
    "systemContextCreate", "systemContextGetBinaryInfo", "systemContextGetMetaData", "systemContextFree",
    "systemTensorGetMemoryFootprint",
    "systemLogCreate", "systemLogSetLogLevel", "systemLogFree",
    "systemDlcCreateFromFile", "systemDlcCreateFromBinary", "systemDlcComposeGraphs",
    "systemDlcGetOpMappings", "systemDlcFree",
    "systemProfileCreateSerializationTarget", "systemProfileSerializeEventData",
    "systemProfileFreeSerializationTarget",
)  # fmt: skip

ERRORS: dict[int, str] = {
    1000: "QNN_SYSTEM_COMMON_ERROR_UNSUPPORTED_FEATURE",
    30000: "QNN_SYSTEM_COMMON_ERROR_INVALID_HANDLE",
    30001: "QNN_SYSTEM_COMMON_ERROR_INVALID_ARGUMENT",
    30002: "QNN_SYSTEM_CONTEXT_ERROR_OPERATION_FAILED",
    30010: "QNN_SYSTEM_CONTEXT_ERROR_MALFORMED_BINARY",
    31000: "QNN_SYSTEM_PROFILE_ERROR_MEM_ALLOC",
}
"""The library has no function for their names."""


class SystemProvider(c.Structure):
    """The interface as `QnnSystemInterface_getProviders` gives it; only entries known by name are read."""

    _fields_ = [
        ("id", c.c_uint32),
        ("name", c.c_char_p),
        ("version", Version),
        ("table", c.c_void_p * len(SYSTEM_ENTRIES)),
    ]


class GraphInfoBody(c.Structure):
    """Version 3; versions 1 and 2 are its beginning."""

    _fields_ = [
        ("name", c.c_char_p),
        ("input_count", c.c_uint32),
        ("inputs", c.POINTER(Tensor)),
        ("output_count", c.c_uint32),
        ("outputs", c.POINTER(Tensor)),
        ("updateable_count", c.c_uint32),
        ("updateable", c.POINTER(Tensor)),
        ("blob_info_size", c.c_uint32),
        ("blob_info", c.c_void_p),
        ("start_op", c.c_uint32),
        ("end_op", c.c_uint32),
    ]


class GraphInfo(c.Structure):
    _fields_ = [("version", c.c_uint32), ("body", GraphInfoBody)]


class CoreInfo(c.Structure):
    _fields_ = [
        ("version", c.c_uint32),
        ("padding", c.c_uint32),
        ("id", c.c_uint32),
        ("type", c.c_uint32),
        ("extension", c.c_void_p),
    ]


class HardwareInfo(c.Structure):
    _fields_ = [
        ("version", c.c_uint32),
        ("padding", c.c_uint32),
        ("id", c.c_uint32),
        ("type", c.c_uint32),
        ("core_count", c.c_uint32),
        ("cores", c.POINTER(CoreInfo)),
        ("extension", c.c_void_p),
    ]


class PlatformInfo(c.Structure):
    _fields_ = [
        ("version", c.c_uint32),
        ("padding", c.c_uint32),
        ("count", c.c_uint32),
        ("devices", c.POINTER(HardwareInfo)),
    ]


class BinaryInfoOld(c.Structure):
    """Version 2; version 1 lacks the platform."""

    _fields_ = [
        ("backend_id", c.c_uint32),
        ("build_id", c.c_char_p),
        ("core", Version),
        ("backend", Version),
        ("soc_version", c.c_char_p),
        ("hardware_blob_version", Version),
        ("context_blob_version", Version),
        ("hardware_blob_size", c.c_uint32),
        ("hardware_blob", c.c_void_p),
        ("context_blob_size", c.c_uint64),
        ("tensor_count", c.c_uint32),
        ("tensors", c.POINTER(Tensor)),
        ("graph_count", c.c_uint32),
        ("graphs", c.POINTER(GraphInfo)),
        ("platform", c.POINTER(PlatformInfo)),
    ]


class BinaryInfoV3(c.Structure):
    _fields_ = [
        ("backend_id", c.c_uint32),
        ("build_id", c.c_char_p),
        ("core", Version),
        ("backend", Version),
        ("soc_version", c.c_char_p),
        ("context_blob_version", Version),
        ("context_blob_size", c.c_uint64),
        ("tensor_count", c.c_uint32),
        ("tensors", c.POINTER(Tensor)),
        ("graph_count", c.c_uint32),
        ("graphs", c.POINTER(GraphInfo)),
        ("platform", c.POINTER(PlatformInfo)),
        ("metadata_size", c.c_uint32),
        ("metadata", c.c_void_p),
        ("soc_model", c.c_uint32),
    ]


class BinaryInfoVersions(c.Union):
    _fields_ = [("old", BinaryInfoOld), ("v3", BinaryInfoV3)]


class BinaryInfo(c.Structure):
    _fields_ = [("version", c.c_uint32), ("body", BinaryInfoVersions)]


class SerializationTarget(c.Structure):
    """A profiling log in a file."""

    _fields_ = [("type", c.c_uint32), ("file_name", c.c_char_p), ("directory", c.c_char_p)]


class SerializationHeader(c.Structure):
    """What the log says about who wrote it."""

    _fields_ = [
        ("type", c.c_uint32),
        ("app_name", c.c_char_p),
        ("app_version", c.c_char_p),
        ("backend_version", c.c_char_p),
    ]


class ProfileEventBody(c.Union):
    _fields_ = [("plain", EventData), ("object", ObjectEventData)]


class ProfileEvent(c.Structure):
    """An event with its sub-events: plain, or extended with an opaque object."""

    _fields_ = [
        ("type", c.c_uint32),
        ("body", ProfileEventBody),
        ("sub_events", c.c_void_p),
        ("sub_event_count", c.c_uint32),
    ]


class ProfileData(c.Structure):
    _fields_ = [
        ("version", c.c_uint32),
        ("start_time", c.c_uint64),
        ("stop_time", c.c_uint64),
        ("start_memory", c.c_uint64),
        ("stop_memory", c.c_uint64),
        ("method", c.c_uint32),
        ("visibility", c.c_uint32),
        ("graph_name", c.c_char_p),
        ("events", c.c_void_p),
        ("event_count", c.c_uint32),
    ]


assert (c.sizeof(GraphInfo), c.sizeof(BinaryInfo)) == (88, 144)
assert c.sizeof(ProfileEvent) == 80
assert SystemProvider.table.offset == 32  # pyright: ignore[reportUnknownMemberType]
