"""JSON from files that people write: `//` and `/* */` comments are read over, as in the SDK's own samples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# A string is matched first, so that an address in it is no comment.
_PIECES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_PLAIN = (ValueError, RecursionError)


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """What the text says; ValueError where it is no JSON, or nested beyond all measure.

    `pairs` makes an object of its names and values.
    """
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except _PLAIN as error:
        without = _PIECES.sub(_without_comment, text)
        if without == text:
            raise _as_value_error(error) from error
    try:
        return json.loads(without, object_pairs_hook=pairs)
    except _PLAIN as error:
        raise _as_value_error(error) from error


def _without_comment(found: re.Match[str]) -> str:
    """Blanks in place of a comment, so that messages name the right line and column."""
    piece = found[0]
    return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)


def _as_value_error(error: Exception) -> ValueError:
    return error if isinstance(error, ValueError) else ValueError("it is nested too deep")
