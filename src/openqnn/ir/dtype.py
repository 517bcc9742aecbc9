"""QNN's data types: the numeric code is the one that every QNN artifact carries."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike


class DType(IntEnum):
    """A QNN data type. The value is QNN's code; `label` is the short name that the text form prints."""

    INT_8 = 0x0008
    INT_16 = 0x0016
    INT_32 = 0x0032
    INT_64 = 0x0064
    UINT_8 = 0x0108
    UINT_16 = 0x0116
    UINT_32 = 0x0132
    UINT_64 = 0x0164
    FLOAT_16 = 0x0216
    FLOAT_32 = 0x0232
    FLOAT_64 = 0x0264
    BFLOAT_16 = 0x0226
    SFIXED_4 = 0x0304
    SFIXED_8 = 0x0308
    SFIXED_16 = 0x0316
    SFIXED_32 = 0x0332
    UFIXED_4 = 0x0404
    UFIXED_8 = 0x0408
    UFIXED_16 = 0x0416
    UFIXED_32 = 0x0432
    BOOL_8 = 0x0508
    STRING = 0x0608

    @property
    def label(self) -> str:
        return self.name.replace("_", "").lower()

    @property
    def numpy(self) -> np.dtype[Any]:
        """The array type that stores it; 4-bit values take one byte each."""
        return np.dtype(_NUMPY[self])

    @property
    def is_fixed(self) -> bool:
        return self.name.startswith(("SFIXED", "UFIXED"))

    @property
    def is_float(self) -> bool:
        return self.name.startswith(("FLOAT", "BFLOAT"))

    @property
    def is_integer(self) -> bool:
        return self.name.startswith(("INT", "UINT"))

    @property
    def bits(self) -> int:
        return int(self.name.rsplit("_", 1)[1])

    @property
    def signed(self) -> bool:
        return not self.name.startswith("U") and self is not DType.BOOL_8


_NUMPY: dict[DType, DTypeLike] = {
    DType.INT_8: np.int8,
    DType.INT_16: np.int16,
    DType.INT_32: np.int32,
    DType.INT_64: np.int64,
    DType.UINT_8: np.uint8,
    DType.UINT_16: np.uint16,
    DType.UINT_32: np.uint32,
    DType.UINT_64: np.uint64,
    DType.FLOAT_16: np.float16,
    DType.FLOAT_32: np.float32,
    DType.FLOAT_64: np.float64,
    DType.BFLOAT_16: ml_dtypes.bfloat16,
    DType.SFIXED_4: np.int8,
    DType.SFIXED_8: np.int8,
    DType.SFIXED_16: np.int16,
    DType.SFIXED_32: np.int32,
    DType.UFIXED_4: np.uint8,
    DType.UFIXED_8: np.uint8,
    DType.UFIXED_16: np.uint16,
    DType.UFIXED_32: np.uint32,
    DType.BOOL_8: np.bool_,
    DType.STRING: np.object_,
}
_BY_LABEL = {d.label: d for d in DType}
_BY_NUMPY = {np.dtype(n): d for d, n in _NUMPY.items() if not d.is_fixed}


def dtype_of(what: DType | str | DTypeLike) -> DType:
    """The DType that a label (`ufixed8`), a numpy type or a DType names; ValueError when none does."""
    if isinstance(what, DType):
        return what
    if isinstance(what, str) and what in _BY_LABEL:
        return _BY_LABEL[what]
    found = _BY_NUMPY.get(np.dtype(what))
    if found is None:
        raise ValueError(f"QNN has no data type for {what!r}")
    return found
