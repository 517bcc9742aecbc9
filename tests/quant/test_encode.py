"""Encodings from ranges: the worked examples of QNN's documentation, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openqnn.quant.encode import MIN_RANGE, encoding, limits, signed_encoding

REAL = st.floats(-1e6, 1e6, allow_nan=False, width=32)
NO_LEAST = np.zeros(1)


def test_the_documented_example() -> None:
    values = np.array([-1.8, -1.0, 0.0, 0.5])
    found = encoding(-1.8, 0.5, 8)
    assert found.scale[0] == pytest.approx(0.009020, abs=1e-6) and found.offset == (-200,)
    assert limits(found) == pytest.approx((-1.803922, 0.496078), abs=1e-6)
    stored = found.quantize(values, signed=False)
    assert stored.tolist() == [0, 89, 200, 255]
    np.testing.assert_allclose(found.dequantize(stored), [-1.8039, -1.0011, 0.0, 0.4961], atol=1e-4)


@pytest.mark.parametrize(
    ("given_range", "encoded"),
    [((5.0, 10.0), (0.0, 10.0)), ((-20.0, -6.0), (-20.0, 0.0)), ((-5.1, 5.1), (-5.12, 5.08))],
)
def test_zero_is_in_every_range(given_range: tuple[float, float], encoded: tuple[float, float]) -> None:
    assert limits(encoding(*given_range, 8)) == pytest.approx(encoded)


def test_a_range_of_nothing_has_the_least_width() -> None:
    low, high = limits(encoding(0.0, 0.0, 8))
    assert low == 0 and high == pytest.approx(MIN_RANGE)


def test_tanh_has_the_encoding_that_htp_wants() -> None:
    assert encoding(-1, 1, 8).offset == (-128,) and encoding(-1, 1, 16).offset == (-32768,)
    assert encoding(-1, 1, 8).scale[0] == pytest.approx(2 / 255)


@given(REAL, REAL, st.sampled_from([8, 16]), st.booleans())
def test_zero_is_exact_and_the_range_is_covered(a: float, b: float, bits: int, symmetric: bool) -> None:
    low, high = min(a, b), max(a, b)
    found = encoding(low, high, bits, symmetric=symmetric)
    assert -(1 << bits) < found.offset[0] <= 0
    assert found.dequantize(found.quantize(np.zeros(1), signed=False))[0] == 0
    ends = limits(found)
    assert ends[0] <= min(low, 0) + found.scale[0] and ends[1] >= max(high, 0) - found.scale[0]


def test_restricted_steps_spread_the_range_over_fewer_integers() -> None:
    found = encoding(-3.0, 2.0, 16, symmetric=True, steps=(-0x8000, 0x7F7F))
    assert found.offset == (-32768,) and found.scale[0] == pytest.approx(6.0 / (0x8000 + 0x7F7F))


def test_restricted_steps_of_8_bits_are_as_many_as_the_documentation_says() -> None:
    """scale = (max - min) / steps; the documented pair for 8 bits is all that there are."""
    assert encoding(-1.8, 0.5, 8, steps=(-0x80, 0x7F)) == encoding(-1.8, 0.5, 8)
    found = encoding(-1.0, 3.0, 8, steps=(-0x40, 0x40))
    assert found.scale[0] == pytest.approx(4.0 / 0x80) and found.offset == (-32,)
    assert signed_encoding(np.array([2.0]), 8, None, NO_LEAST, (-0x40, 0x40)).scale[0] == 2.0 / 0x40


def test_per_channel_weights_as_the_documentation_shows_them() -> None:
    found = signed_encoding(np.array([0.7011175155639648, 0.5228064656257629]), 8, 3, NO_LEAST)
    assert found.scale == pytest.approx((0.005520610358771377, 0.004116586343509945))
    assert found.offset == (0, 0) and found.axis == 3 and found.symmetric


def test_channels_of_zeros_have_a_scale() -> None:
    scales = signed_encoding(np.array([0.0, 1.0]), 8, 0, NO_LEAST).scale
    assert 0 < scales[0] < scales[1]
    assert signed_encoding(np.zeros(2), 8, 0, NO_LEAST).scale[0] > 0


def test_a_bias_can_ask_for_coarser_weights() -> None:
    assert signed_encoding(np.array([1.0, 1e-6]), 8, 0, np.array([0.0, 0.5])).scale[1] == 0.5
