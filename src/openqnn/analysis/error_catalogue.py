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
    """One error: `id` is OQ123 for ours, the number of QNN's, and M1 for the answers of model libraries."""

    id: str
    name: str
    cause: str
    remedy: str


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    """Every entry by id."""
    rows = [[cell.strip() for cell in line.split("|")] for line in _lines() if "|" in line]
    return {row[0]: CatalogueEntry(*row) for row in rows}


@cache
def further_names() -> dict[str, str]:
    """Names that QNN's families have for a number that they share, and the number."""
    pairs = [line.split(" = ") for line in _lines() if "|" not in line]
    return {pair[0]: pair[1] for pair in pairs}


def _lines() -> list[str]:
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] != "#"]


def find_errors(asked: str) -> list[CatalogueEntry]:
    """Entries by id, number (decimal or hexadecimal), a part of the name, or a word of the cause."""
    known = catalogue()
    word = asked.strip().upper()
    number = _number(word)
    for key in (word, number, further_names().get(word, "")):
        if key in known:
            return [known[key]]
    told = [(entry, f"{entry.name}\0{entry.cause}".upper()) for entry in known.values()]
    for part in (0, 1) if len(word) > 2 and not number else ():
        if found := [entry for entry, text in told if word in text.split("\0")[part]]:
            return found
    raise InputError(f"'{asked}' is no error that is known", hint=f"near it: {_near(word, number)}")


def _near(word: str, number: str) -> str:
    """The entries that somebody may have meant: the next numbers, or ids and names that are spelled alike."""
    known = catalogue()
    if number:
        codes = sorted((key for key in known if key.isdigit()), key=lambda key: abs(int(key) - int(number)))
        return ", ".join(f"{key} {known[key].name}" for key in codes[:3])
    names = {key: key for key in known} | {e.name.upper(): e.id for e in known.values()} | further_names()
    near = [names[found] for found in get_close_matches(word, names, n=3, cutoff=0.0)]
    return ", ".join(f"{key} {known[key].name}" for key in dict.fromkeys(near))


def _number(word: str) -> str:
    """The code in decimal; libraries put their own id into the upper half of 64 bits."""
    try:
        return str(int(word, 0) & 0xFFFFFFFF)
    except ValueError:
        return ""
