"""Raw tensor files: numbers without a header, as float32 or in a tensor's own type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openqnn.errors import InputError

Array = NDArray[Any]


def read_raw(
    path: Path, dtype: np.dtype[Any], counts: Sequence[int], subject: str, own: np.dtype[Any]
) -> Array:
    """All numbers of a file, which must be one of `counts`; `subject` says which input it is for.

    `own` is the tensor's own type, which native files have.
    """
    try:
        size = path.stat().st_size
        if size not in [count * dtype.itemsize for count in counts]:
            raise InputError(
                f"{subject}: {path} has {size:,} bytes, {_wanted(dtype, counts)}",
                hint=_guess(size, dtype, counts, own),
            )
        return np.fromfile(path, dtype)
    except OSError as e:
        raise InputError(f"{subject}: {path} cannot be read: {e.strerror or e}") from e


def _wanted(dtype: np.dtype[Any], counts: Sequence[int]) -> str:
    sizes = " or ".join(f"{count * dtype.itemsize:,}" for count in dict.fromkeys(counts))
    return f"but {sizes} are needed ({counts[0]:,} numbers of {dtype.name})"


def _guess(size: int, dtype: np.dtype[Any], counts: Sequence[int], own: np.dtype[Any]) -> str:
    if size == 0:
        return "the file is empty"
    for count in counts:
        if size % count == 0 and size // count in (1, 2, 8) and size // count != dtype.itemsize:
            width = size // count
            if width == own.itemsize:
                return (
                    f"that is {width} byte(s) per number: for data in the tensor's own type, {own.name}, "
                    "use --use_native_input_files"
                )
            return f"that is {width} byte(s) per number: write the file as {dtype.name}"
        if dtype != np.float32 and size == count * 4:
            return "that fits float32, and --use_native_input_files or --preserve_io is given"
    return "check the shape that the file was written with"


def quantized(real: Array, scale: float, offset: int, dtype: np.dtype[Any], bits: int) -> Array:
    """Real numbers as stored ones: real = (stored + offset) * scale, rounded half away from zero."""
    steps = real.astype(np.float64) / scale - offset
    rounded = np.floor(np.abs(steps) + 0.5) * np.sign(steps)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    return np.clip(rounded, low, high).astype(dtype)


def dequantized(stored: Array, scale: float, offset: int) -> Array:
    """Stored numbers as real ones, in float32."""
    return ((stored.astype(np.float64) + offset) * scale).astype(np.float32)
