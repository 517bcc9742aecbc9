"""JSON from files that people write: `//` and `/* */` comments are read over, as in the SDK's own samples."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from openqnn.errors import InputError

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


def read_json_object(path: str | os.PathLike[str], holds: str = "") -> dict[str, Any]:
    """The object that a file is; InputError where it is none. `holds` is what should be in it."""
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: no JSON object{f' of {holds}' if holds else ''}")
    return cast("dict[str, Any]", content)


def _without_comment(found: re.Match[str]) -> str:
    """Blanks in place of a comment, so that messages name the right line and column."""
    piece = found[0]
    return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)


def _as_value_error(error: Exception) -> ValueError:
    return error if isinstance(error, ValueError) else ValueError("it is nested too deep")
