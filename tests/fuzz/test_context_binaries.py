"""Damaged context binaries: each one runs, or is refused with one message; none takes the tool down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import openqnn
from tests.qnn.nets import needs_htp

FAST, ALL = 8, 500


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    made = prepare("mnist_conv", tmp_path_factory.mktemp("fuzz"), lines=1, dlc=False)
    assert_done(openqnn("compile", made.folder / "model.oqnn", "-o", made.folder / "c.bin"))
    return made


def damaged(good: bytes, seed: int) -> bytes:
    """Cut off, or with bytes overwritten: in the head, where sizes and names are, or anywhere."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 0:
        return good[: int(rng.integers(0, len(good)))]
    data = bytearray(good)
    end = 4096 if seed % 4 < 3 else len(data)
    for position in rng.integers(0, end, int(rng.integers(1, 20))):
        data[position] = int(rng.integers(0, 256))
    return bytes(data)


def check(case: Prepared, seeds: range) -> None:
    good = (case.folder / "c.bin").read_bytes()
    for seed in seeds:
        file: Path = case.folder / f"{seed}.bin"
        file.write_bytes(damaged(good, seed))
        limit = ("--timeout", 60_000_000)
        result = case.run("--retrieve_context", file, *limit, to=f"out{seed}", backend="htp")
        assert result.code in (0, 1), (seed, result.err)
        said = sum(line.startswith("error: ") for line in result.err.splitlines())
        assert said == result.code, (seed, result.err)
        assert "bug in openqnn" not in result.err, (seed, result.err)
        assert (case.folder / f"out{seed}").exists() is (result.code == 0), seed
        file.unlink()


@needs_htp
def test_damaged_binaries(case: Prepared) -> None:
    check(case, range(FAST))


@needs_htp
@pytest.mark.slow
def test_many_damaged_binaries(case: Prepared) -> None:
    check(case, range(FAST, ALL))
