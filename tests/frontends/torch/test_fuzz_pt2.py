"""Damaged .pt2 files are converted or refused: nothing else."""

from __future__ import annotations

import copy
import io
import json
import random
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import openqnn
from openqnn.errors import OpenQnnError
from tests.frontends.torch.test_read_pt2 import PROGRAMS

NAMES = ("cnn", "attention", "recurrent", "image", "writes", "cache")


def damaged(seed: int) -> bytes:
    """A file with some bytes changed or lost, or the JSON inside with other numbers and names."""
    dice = random.Random(seed)
    source = PROGRAMS / f"{dice.choice(NAMES)}.pt2"
    if dice.random() < 0.3:
        data = bytearray(source.read_bytes())
        for _ in range(dice.randint(1, 8)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data)
    with zipfile.ZipFile(source) as zipped:
        entries = {n: zipped.read(n) for n in zipped.namelist()}
    ending = dice.choice(("models/model.json", "models/model.json", "weights_config.json"))
    name = next(n for n in entries if n.endswith(ending))
    parsed = json.loads(entries[name])
    for _ in range(dice.randint(1, 3)):
        change(parsed, dice)
    entries[name] = json.dumps(parsed).encode()
    return _packed(entries)


VALUES = (None, -1, 0, 1, 7, 1 << 40, 1 << 70, 0.5, "x", "torch.ops.aten.add.Tensor", True, [], {}, [3, -2])


def change(tree: Any, dice: random.Random) -> None:
    """Another value, or none, somewhere in the tree."""
    while True:
        places = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not places:
            return
        place = dice.choice(places)
        inner = tree[place]
        if not isinstance(inner, dict | list) or not inner or dice.random() < 0.1:
            break
        tree = inner
    if dice.random() < 0.2:
        del tree[place]
    else:
        tree[place] = copy.deepcopy(dice.choice(VALUES))


def _packed(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as zipped:
        for name, data in entries.items():
            zipped.writestr(name, data)
    return target.getvalue()


def try_seed(seed: int, path: Path) -> str:
    path.write_bytes(damaged(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            openqnn.convert(path)
        except OpenQnnError as e:
            return type(e).__name__
    return "converted"


@pytest.mark.parametrize("start", [0, 40])
def test_a_few_damaged_programs(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 40):
        try_seed(seed, tmp_path / "m.pt2")


@pytest.mark.slow
def test_many_damaged_programs(tmp_path: Path) -> None:
    outcomes = [try_seed(seed, tmp_path / "m.pt2") for seed in range(1000)]
    assert len(set(outcomes)) > 1
