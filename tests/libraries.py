"""Qualcomm's libraries, for tests that need one."""

from __future__ import annotations

import pytest

from openqnn.errors import LibraryError
from openqnn.qnn.library import find_library


def need(name: str) -> None:
    """Skips the test where the library is not installed."""
    try:
        find_library(name)
    except LibraryError as e:
        pytest.skip(f"Qualcomm's library is not here: {e.message}")
