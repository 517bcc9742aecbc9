"""The part of the QNN C interface that the project uses, declared for ctypes.

Sizes are asserted at import: a wrong layout must fail here, not corrupt memory inside a library.
"""

from __future__ import annotations

import ctypes as c
from functools import cache
from typing import Any

import numpy as np

from openqnn.errors import BackendError

UNDEFINED = 0x7FFFFFFF

INT_8, INT_16, INT_32, INT_64 = 0x008, 0x016, 0x032, 0x064
UINT_8, UINT_16, UINT_32, UINT_64 = 0x108, 0x116, 0x132, 0x164
FLOAT_16, BFLOAT_16, FLOAT_32, FLOAT_64 = 0x216, 0x226, 0x232, 0x264
SFIXED_4, SFIXED_8, SFIXED_16, SFIXED_32 = 0x304, 0x308, 0x316, 0x332
UFIXED_4, UFIXED_8, UFIXED_16, UFIXED_32 = 0x404, 0x408, 0x416, 0x432
BOOL_8 = 0x508

BACKEND_SAVER, BACKEND_CPU, BACKEND_GPU, BACKEND_HTP, BACKEND_IR = 2, 3, 4, 6, 9
BACKENDS = {2: "Saver", 3: "CPU", 4: "GPU", 6: "HTP", 9: "IR"}

LOG_ERROR, LOG_WARN, LOG_INFO, LOG_VERBOSE, LOG_DEBUG = 1, 2, 3, 4, 5

PARAM_SCALAR, PARAM_TENSOR = 0, 1
ENCODING_TENSOR, ENCODING_AXIS, ENCODING_TENSOR_BITS, ENCODING_AXIS_BITS = 0, 1, 2, 3
ENCODING_EXPANSION = 5
MULTIPLES_8, MULTIPLES_16 = 0, 1
DEFINED = 1

MEMORY_RAW = 0

CONFIG_CUSTOM = 0
CONTEXT_PRIORITY, CONTEXT_QUEUE_DEPTH, CONTEXT_MEMORY_LIMIT, CONTEXT_PERSISTENT = 1, 4, 6, 7
PRIORITIES = {"low": 0, "normal": 100, "normal_high": 150, "high": 200}
PROFILE_OPTRACE = 2
HTP_DEVICE_SOC, HTP_DEVICE_ARCH, HTP_DEVICE_SIGNED_PD = 0, 1, 2
HTP_GRAPH_OPTIMIZATION, HTP_GRAPH_PRECISION = 1, 2
PRECISION_FLOAT32, PRECISION_FLOAT16 = 0, 1
IR_SERIALIZATION, IR_FLAT_BUFFER = 1, 1

# Storage, not meaning: fixed point is held in integers, 4-bit values one per byte, bfloat16 as raw bits.
_STORAGE: dict[int, str] = {
    INT_8: "int8", INT_16: "int16", INT_32: "int32", INT_64: "int64",
    UINT_8: "uint8", UINT_16: "uint16", UINT_32: "uint32", UINT_64: "uint64",
    FLOAT_16: "float16", BFLOAT_16: "uint16", FLOAT_32: "float32", FLOAT_64: "float64",
    SFIXED_4: "int8", SFIXED_8: "int8", SFIXED_16: "int16", SFIXED_32: "int32",
    UFIXED_4: "uint8", UFIXED_8: "uint8", UFIXED_16: "uint16", UFIXED_32: "uint32",
    BOOL_8: "bool",
}  # fmt: skip

_NAMES: dict[int, str] = {
    INT_8: "int8", INT_16: "int16", INT_32: "int32", INT_64: "int64",
    UINT_8: "uint8", UINT_16: "uint16", UINT_32: "uint32", UINT_64: "uint64",
    FLOAT_16: "float16", BFLOAT_16: "bfloat16", FLOAT_32: "float32", FLOAT_64: "float64",
    SFIXED_4: "sfixed4", SFIXED_8: "sfixed8", SFIXED_16: "sfixed16", SFIXED_32: "sfixed32",
    UFIXED_4: "ufixed4", UFIXED_8: "ufixed8", UFIXED_16: "ufixed16", UFIXED_32: "ufixed32",
    BOOL_8: "bool8",
}  # fmt: skip

# A numpy type means the plain QNN type; fixed-point and bfloat16 codes only share their storage with it.
_FROM_NUMPY: dict[np.dtype[Any], int] = {
    np.dtype(storage): code
    for code, storage in _STORAGE.items()
    if _NAMES[code].startswith(("int", "uint", "float", "bool"))
}


def backend_name(number: int | None) -> str:
    """A backend's short name for messages."""
    return BACKENDS.get(number, f"backend {number}") if number is not None else "no backend"


def numpy_dtype(code: int) -> np.dtype[Any]:
    """The numpy type that stores values of a QNN data type."""
    if code not in _STORAGE:
        raise BackendError(f"QNN data type {code:#06x} has no numpy storage")
    return np.dtype(_STORAGE[code])


def dtype_code(dtype: np.dtype[Any] | type[np.generic] | str) -> int:
    """The plain (not fixed-point) QNN data type of a numpy type."""
    wanted = np.dtype(dtype)
    if wanted not in _FROM_NUMPY:
        raise BackendError(f"numpy type {wanted} has no QNN data type")
    return _FROM_NUMPY[wanted]


def dtype_name(code: int) -> str:
    """The short name of a QNN data type, for messages."""
    return _NAMES.get(code, f"{code:#06x}")


class Version(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("patch", c.c_uint32)]


class ScaleOffset(c.Structure):
    _fields_ = [("scale", c.c_float), ("offset", c.c_int32)]


class BwScaleOffset(c.Structure):
    _fields_ = [("bitwidth", c.c_uint32), ("scale", c.c_float), ("offset", c.c_int32)]


class AxisScaleOffset(c.Structure):
    _fields_ = [("axis", c.c_int32), ("count", c.c_uint32), ("items", c.POINTER(ScaleOffset))]


class BwAxisScaleOffset(c.Structure):
    _fields_ = [
        ("bitwidth", c.c_uint32),
        ("axis", c.c_int32),
        ("count", c.c_uint32),
        ("scales", c.POINTER(c.c_float)),
        ("offsets", c.POINTER(c.c_int32)),
    ]


class BlockwiseExpansion(c.Structure):
    _fields_ = [
        ("axis", c.c_int32),
        ("items", c.POINTER(ScaleOffset)),
        ("blocks", c.c_uint32),
        ("multiple_bits", c.c_uint32),
        ("multiple_storage", c.c_uint32),
        ("multiples", c.c_void_p),
    ]


class Encoding(c.Union):
    _fields_ = [
        ("tensor", ScaleOffset),
        ("axis", AxisScaleOffset),
        ("tensor_bits", BwScaleOffset),
        ("axis_bits", BwAxisScaleOffset),
        ("expansion", c.POINTER(BlockwiseExpansion)),
    ]


class QuantizeParams(c.Structure):
    _fields_ = [("definition", c.c_uint32), ("encoding", c.c_uint32), ("value", Encoding)]


class ClientBuffer(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_uint32)]


class TensorV1(c.Structure):
    _fields_ = [
        ("id", c.c_uint32),
        ("name", c.c_char_p),
        ("type", c.c_uint32),
        ("format", c.c_uint32),
        ("dtype", c.c_uint32),
        ("quant", QuantizeParams),
        ("rank", c.c_uint32),
        ("dims", c.POINTER(c.c_uint32)),
        ("mem_type", c.c_uint32),
        ("buffer", ClientBuffer),
    ]


class TensorVersions(c.Union):
    """Version 2 starts with version 1; of what it adds (sparse and dynamic tensors) nothing is used."""

    _fields_ = [("v1", TensorV1), ("v2_room", c.c_byte * 136)]


class Tensor(c.Structure):
    _fields_ = [("version", c.c_uint32), ("body", TensorVersions)]


class ScalarValue(c.Union):
    _fields_ = [
        ("float32", c.c_float),
        ("float64", c.c_double),
        ("uint64", c.c_uint64),
        ("int64", c.c_int64),
        ("uint32", c.c_uint32),
        ("int32", c.c_int32),
        ("uint16", c.c_uint16),
        ("int16", c.c_int16),
        ("uint8", c.c_uint8),
        ("int8", c.c_int8),
    ]


class Scalar(c.Structure):
    _fields_ = [("dtype", c.c_uint32), ("value", ScalarValue)]


class ParamValue(c.Union):
    _fields_ = [("scalar", Scalar), ("tensor", Tensor)]


class Param(c.Structure):
    _fields_ = [("type", c.c_uint32), ("name", c.c_char_p), ("value", ParamValue)]


class OpConfigV1(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("package", c.c_char_p),
        ("type", c.c_char_p),
        ("param_count", c.c_uint32),
        ("params", c.POINTER(Param)),
        ("input_count", c.c_uint32),
        ("inputs", c.POINTER(Tensor)),
        ("output_count", c.c_uint32),
        ("outputs", c.POINTER(Tensor)),
    ]


class OpConfig(c.Structure):
    _fields_ = [("version", c.c_uint32), ("v1", OpConfigV1)]


class CustomConfig(c.Structure):
    """Graph, context and device configurations alike: an option, and a pointer to the backend's own record.

    Options that are plain numbers have them in the place of the pointer.
    """

    _fields_ = [("option", c.c_uint32), ("custom", c.c_void_p)]


class QueueDepthConfig(c.Structure):
    """The one context option that has two numbers."""

    _fields_ = [("option", c.c_uint32), ("padding", c.c_uint32), ("type", c.c_uint32), ("depth", c.c_uint32)]


class NumberConfig(c.Structure):
    """A context option with one number."""

    _fields_ = [("option", c.c_uint32), ("padding", c.c_uint32), ("value", c.c_uint64)]


class IrSerialization(c.Structure):
    """libQnnIr's own graph option: write the graph to a file."""

    _fields_ = [
        ("option", c.c_uint32),
        ("padding", c.c_uint32),
        ("type", c.c_uint32),
        ("path", c.c_char_p),
    ]


class EventData(c.Structure):
    """One profiling event."""

    _fields_ = [
        ("type", c.c_uint32),
        ("unit", c.c_uint32),
        ("value", c.c_uint64),
        ("identifier", c.c_char_p),
    ]


class ExtendedEventData(c.Structure):
    """One profiling event with a value of any type, or with an object's pointer, size and name."""

    _fields_ = [
        ("version", c.c_uint32),
        ("padding", c.c_uint32),
        ("type", c.c_uint32),
        ("unit", c.c_uint32),
        ("value", Scalar),
        ("object_name", c.c_char_p),
        ("timestamp", c.c_uint64),
        ("identifier", c.c_char_p),
    ]


class ObjectEventData(c.Structure):
    """An extended event whose unit is an object: its bytes stand where other events have a value."""

    _fields_ = [
        ("version", c.c_uint32),
        ("padding", c.c_uint32),
        ("type", c.c_uint32),
        ("unit", c.c_uint32),
        ("address", c.c_void_p),
        ("size", c.c_uint64),
        ("object_name", c.c_char_p),
        ("timestamp", c.c_uint64),
        ("identifier", c.c_char_p),
    ]


class OperationName(c.Structure):
    _fields_ = [("package", c.c_char_p), ("name", c.c_char_p), ("target", c.c_char_p)]


class HtpOption(c.Structure):
    """HTP's own record: its value sits at byte 8, behind four bytes of padding."""

    _fields_ = [
        ("option", c.c_uint32),
        ("padding", c.c_uint32),
        ("value", c.c_uint32),
        ("rest", c.c_uint32 * 5),
    ]


SCALAR_FIELDS: dict[int, str] = {
    FLOAT_32: "float32", FLOAT_64: "float64",
    INT_8: "int8", INT_16: "int16", INT_32: "int32", INT_64: "int64",
    UINT_8: "uint8", UINT_16: "uint16", UINT_32: "uint32", UINT_64: "uint64",
    BOOL_8: "uint8",
}  # fmt: skip

INTERFACE_ENTRIES: tuple[str, ...] = (
    "propertyHasCapability",
    "backendCreate", "backendSetConfig", "backendGetApiVersion", "backendGetBuildId",
    "backendRegisterOpPackage", "backendGetSupportedOperations", "backendValidateOpConfig", "backendFree",
    "contextCreate", "contextSetConfig", "contextGetBinarySize", "contextGetBinary",
    "contextCreateFromBinary", "contextFree",
    "graphCreate", "graphCreateSubgraph", "graphSetConfig", "graphAddNode", "graphFinalize",
    "graphRetrieve", "graphExecute", "graphExecuteAsync",
    "tensorCreateContextTensor", "tensorCreateGraphTensor",
    "logCreate", "logSetLogLevel", "logFree",
    "profileCreate", "profileSetConfig", "profileGetEvents", "profileGetSubEvents", "profileGetEventData",
    "profileGetExtendedEventData", "profileFree",
    "memRegister", "memDeRegister",
    "deviceGetPlatformInfo", "deviceFreePlatformInfo", "deviceGetInfrastructure", "deviceCreate",
    "deviceSetConfig", "deviceGetInfo", "deviceFree",
    "signalCreate", "signalSetConfig", "signalTrigger", "signalFree",
    "errorGetMessage", "errorGetVerboseMessage", "errorFreeVerboseMessage",
    "graphPrepareExecutionEnvironment", "graphReleaseExecutionEnvironment", "graphGetProperty",
    "contextValidateBinary", "contextCreateFromBinaryWithSignal", "contextCreateFromBinaryListAsync",
    "tensorUpdateGraphTensors", "tensorUpdateContextTensors",
    "contextGetBinarySectionSize", "contextGetBinarySection", "contextApplyBinarySection",
    "backendGetProperty",
    "contextGetProperty", "contextGetIncrementalBinary", "contextReleaseIncrementalBinary",
    "contextFinalize",
    "globalConfigSet",
    "contextCreateFromBinaryWithCallback", "contextGetBinarySectionUpdate",
    "contextFreeBinarySectionUpdate",
)  # fmt: skip


def interface_length(core_minor: int) -> int:
    """Entries in a table of core API 2.`core_minor`.

    It matters where the interface is passed by value: a wrong length shifts every argument behind it.
    """
    if core_minor >= 40:
        return 75
    return 72 if core_minor >= 36 else 71


class Provider(c.Structure):
    """The interface as `QnnInterface_getProviders` hands it out; only the entries known by name are read."""

    _fields_ = [
        ("backend_id", c.c_uint32),
        ("name", c.c_char_p),
        ("core", Version),
        ("backend", Version),
        ("table", c.c_void_p * len(INTERFACE_ENTRIES)),
    ]


@cache
def interface_type(length: int) -> type[Any]:
    """The interface as it is passed by value, with a table of `length` entries."""
    fields = [
        ("backend_id", c.c_uint32),
        ("name", c.c_char_p),
        ("core", Version),
        ("backend", Version),
        ("table", c.c_void_p * length),
    ]
    return type(f"Interface{length}", (c.Structure,), {"_fields_": fields})


LogCallback = c.CFUNCTYPE(None, c.c_char_p, c.c_uint32, c.c_uint64, c.c_void_p)

_SIZES: tuple[tuple[type[c.Structure], int], ...] = (
    (QuantizeParams, 40),
    (TensorV1, 112),
    (Tensor, 144),
    (Scalar, 16),
    (Param, 160),
    (OpConfigV1, 72),
    (OpConfig, 80),
    (CustomConfig, 16),
    (QueueDepthConfig, 16),
    (IrSerialization, 24),
    (EventData, 24),
    (ExtendedEventData, 56),
)
for _struct, _size in _SIZES:
    assert c.sizeof(_struct) == _size, f"{_struct.__name__} is {c.sizeof(_struct)} bytes, QNN has {_size}"
assert HtpOption.value.offset == 8  # pyright: ignore[reportUnknownMemberType]
assert len(INTERFACE_ENTRIES) == interface_length(32)
