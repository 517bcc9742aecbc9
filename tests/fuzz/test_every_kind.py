"""Mutated files of every kind, given to the tools that read them: no traceback, no crash, no hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.every_kind import KINDS, SLOW, Kind, attempt, make_files
from tests.libraries import need

MANY, FEW = 430, 100  # of each kind: 10,000 in all, fewer of those that a library reads
QUICK = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in ("htp", "ir"):
        need(library)
    made = tmp_path_factory.mktemp("sound")
    make_files(made)
    return made


def faults(folder: Path, kind: Kind, count: int) -> list[str]:
    found = ((number, attempt(folder, kind, number)) for number in range(count))
    return [f"{kind.file}, number {number}: {what}" for number, what in found if what]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.file)
def test_many(kind: Kind, folder: Path) -> None:
    assert not faults(folder, kind, FEW if kind.file in SLOW else MANY)


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.file.endswith((".onnx", ".json"))], ids=lambda k: k.file
)
def test_a_few(kind: Kind, folder: Path) -> None:
    assert not faults(folder, kind, QUICK)
