"""Where in the user's own Python something stands or went wrong, for messages."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_OURS: Final = str(Path(__file__).parents[1])


def origin(function: Callable[..., Any]) -> str:
    """File and line of a function."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


def line_of(error: BaseException, otherwise: str = "an unknown place") -> str:
    """File and line of the user's code where an exception was raised, and not of ours that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if not f.filename.startswith((_OURS, "<frozen"))]
    return f"{outside[-1].filename}:{outside[-1].lineno}" if outside else otherwise
