"""The catalogue of errors: ours and QNN's, each with its cause and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from openqnn.errors import InputError

ROWS = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One error: `id` is OQ123 for ours and the number of QNN's."""

    id: str
    name: str
    cause: str
    remedy: str


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    """Every entry by id."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line and line[0] != "#"]
    return {row[0]: CatalogueEntry(*row) for row in rows}


def find_errors(asked: str) -> list[CatalogueEntry]:
    """Entries by id, number (decimal or hexadecimal), or a part of the name."""
    known = catalogue()
    word = asked.strip().upper()
    if word in known:
        return [known[word]]
    number = _number(word)
    if number in known:
        return [known[number]]
    found = [entry for entry in known.values() if len(word) > 2 and word in entry.name.upper()]
    if found:
        return found
    near = get_close_matches(word, known, n=3, cutoff=0.5)
    hint = f"near it: {', '.join(near)}" if near else "an id such as OQ112, a number such as 1002, or a name"
    raise InputError(f"'{asked}' is no error that is known", hint=hint)


def _number(word: str) -> str:
    """The code in decimal; libraries put their own id into the upper half of 64 bits."""
    try:
        return str(int(word, 0) & 0xFFFFFFFF)
    except ValueError:
        return ""
