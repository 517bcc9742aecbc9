"""Lines in float32 round every integer as exact numbers do, where they are found."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Value
from openqnn.targets.htp.kernels.bytes.products import float_line, short

CHANNELS = 32


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_all_sums_are_rounded_as_by_exact_numbers(bits: int) -> None:
    rng = np.random.default_rng(bits)
    out = Value("y", DType.UFIXED_8, (1, 8, 8, CHANNELS), Encoding.per_tensor(0.1, -37, 8))
    factor = short(rng.uniform(1, 2, CHANNELS) * 2.0**-bits)
    more = factor * rng.integers(-5000, 5000, CHANNELS) + 0.5 + 37
    line = float_line(factor, more, out)
    assert line is not None
    sums = np.arange(-(300 << bits), 300 << bits, dtype=np.float64)[:, None]
    want = np.clip(np.floor(sums * factor + more), 0, 255)
    got = np.rint(sums.astype(np.float32) * line[0] + line[1]) + 37
    np.testing.assert_array_equal(np.clip(got, 0, 255), want)


def test_there_is_none_where_steps_are_finer_than_float32() -> None:
    out = Value("y", DType.UFIXED_8, (1, 8, 8, CHANNELS), Encoding.per_tensor(0.1, 0, 8))
    factor = short(np.random.default_rng(0).uniform(1, 2, CHANNELS) * 2.0**-22)
    assert float_line(factor, np.full(CHANNELS, 0.5), out) is None
