"""Raw files that do not fit: the hint leads on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import InputError
from openqnn.formats.raw import read_raw


@pytest.mark.parametrize(
    ("written", "read", "own", "hint"),
    [
        ("uint8", "float32", "uint8", "own type, uint8, use --use_native_input_files"),
        ("uint16", "float32", "uint8", "write the file as float32"),
        ("float16", "float32", "float32", "write the file as float32"),  # native files would not fit either
        ("float64", "float32", "float32", "write the file as float32"),
        ("float32", "uint8", "uint8", "that fits float32, and --use_native_input_files"),
    ],
)
def test_another_type(tmp_path: Path, written: str, read: str, own: str, hint: str) -> None:
    np.zeros(6, written).tofile(tmp_path / "x.raw")
    with pytest.raises(InputError, match=hint):
        read_raw(tmp_path / "x.raw", np.dtype(read), [6], "line 1", np.dtype(own))
