"""Element types as torch's files number them and as torch's messages name them."""

from __future__ import annotations

from typing import Final

from openqnn.ir import DType

CODES: Final = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
_DTYPES: Final = {
    "uint8": DType.UINT_8, "int8": DType.INT_8, "int16": DType.INT_16, "int32": DType.INT_32,
    "int64": DType.INT_64, "float16": DType.FLOAT_16, "float32": DType.FLOAT_32, "float64": DType.FLOAT_64,
    "bool": DType.BOOL_8, "bfloat16": DType.BFLOAT_16, "uint16": DType.UINT_16, "uint32": DType.UINT_32,
    "uint64": DType.UINT_64,
}  # fmt: skip
NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}


def scalar_type(code: object) -> DType | str:
    """The type of a code; what QNN does not have is its name."""
    name = CODES.get(code, f"type {code}") if isinstance(code, int) else str(code)
    return dtype_named(name)


def dtype_named(name: str) -> DType | str:
    """The type that torch calls so; the name itself where QNN has none."""
    return _DTYPES.get(name, name)
