"""Kinds of plugin parameters: from what a YAML file says to a value, ValueError with the form otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kind_bool(said: Any) -> bool:
    if isinstance(said, bool):
        return said
    if str(said).strip().lower() in ("true", "false"):
        return str(said).strip().lower() == "true"
    raise ValueError("True or False")


def kind_int(said: Any) -> int:
    if isinstance(said, bool) or (isinstance(said, float) and said != int(said)):
        raise ValueError("a whole number")
    try:
        return int(said)
    except (TypeError, ValueError):
        raise ValueError("a whole number") from None


def kind_float(said: Any) -> float:
    try:
        return float(said)
    except (TypeError, ValueError):
        raise ValueError("a number") from None


def kind_text(said: Any) -> str:
    return str(said)


def kind_dims(said: Any) -> tuple[int, ...]:
    """416,416 or [416, 416]."""
    words = said if isinstance(said, list | tuple) else str(said).split(",")
    try:
        dims = tuple(int(word) for word in words)
    except (TypeError, ValueError):
        raise ValueError("sizes with commas between them, such as 416,416") from None
    if len(dims) < 2 or any(size < 1 for size in dims):
        raise ValueError("sizes with commas between them, such as 416,416")
    return dims


def kind_numbers(said: Any) -> tuple[float, ...]:
    words = said if isinstance(said, list | tuple) else str(said).split(",")
    try:
        return tuple(float(word) for word in words)
    except (TypeError, ValueError):
        raise ValueError("numbers with commas between them") from None


def kind_counts(said: Any) -> tuple[int, ...]:
    return tuple(kind_int(number) for number in kind_numbers(said))


def kind_words(said: Any) -> tuple[str, ...]:
    if isinstance(said, list | tuple):
        return tuple(str(word) for word in said)
    return tuple(word.strip() for word in str(said).strip("[] ").split(",") if word.strip())


def kind_rgb(said: Any) -> tuple[float, float, float]:
    """{"R": 0.485, "G": 0.456, "B": 0.406}."""
    if not isinstance(said, Mapping) or {str(k).upper() for k in said} != {"R", "G", "B"}:
        raise ValueError('a number for each of R, G and B, such as {"R": 0.485, "G": 0.456, "B": 0.406}')
    by_name = {str(key).upper(): kind_float(value) for key, value in said.items()}
    return by_name["R"], by_name["G"], by_name["B"]


def kind_optional(said: Any) -> str | None:
    return None if said is None or str(said).strip().lower() in ("none", "") else str(said)
