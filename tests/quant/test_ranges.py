"""The ranges that are chosen for what was seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from openqnn.quant.encode import MIN_RANGE, encoding, limits
from openqnn.quant.observe.observers import Observer, Statistics, Watch
from openqnn.quant.ranges import AT_ONCE, choose_range, choose_ranges, choose_rows
from openqnn.quant.recipe import Method

SEARCHED = (Method.SQNR, Method.MSE, Method.ENTROPY)
numbers = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60)


def statistics(values) -> Statistics:
    array = np.asarray(values, np.float32)
    observer = Observer(Watch.HISTOGRAM, array.shape)
    observer.add(observer.look(array, 0))
    return observer.statistics()


def noise(values, low: float, high: float, bits: int, symmetric: bool = False) -> float:
    """Mean square of what rounding and clipping change, by the encoding that the quantizer would take."""
    code = encoding(low, high, bits, symmetric=symmetric)
    back = code.dequantize(code.quantize(np.asarray(values), signed=False)).astype(np.float64)
    return float(((back - values) ** 2).mean())


def shapes(seed: int = 0):
    """Distributions as networks have them."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(16000)
    return {
        "normal": normal,
        "relu": np.maximum(normal, 0),
        "long tails": rng.standard_t(3, 16000),
        "uniform": rng.uniform(-1, 2, 16000),
        "one outlier": np.where(np.arange(16000) == 7, 40.0, normal),
        "hard swish": 3 * normal * np.clip(normal / 2 + 0.5, 0, 1),
    }


@given(numbers, st.sampled_from(list(Method)), st.sampled_from([4, 8, 16]), st.booleans())
def test_every_range_covers_zero_and_stays_inside(values, method: Method, bits: int, symmetric: bool):
    seen = statistics(values)
    low, high = choose_range(seen, method, bits, symmetric, 99.9)
    assert low <= 0 <= high and np.isfinite([low, high]).all()
    if symmetric:
        assert low == -high
    least, most = min(seen.low, 0), max(seen.high, 0)
    if symmetric:
        least, most = -max(-least, most), max(-least, most)
    if method is not Method.ADJUSTED:
        assert least <= low and high <= most


@given(numbers, st.booleans())
def test_min_max_is_the_extremes(values, symmetric: bool):
    low, high = choose_range(statistics(values), Method.MIN_MAX, 8, symmetric)
    array = np.float32(values)
    bound = float(np.abs(array).max())
    assert (low, high) == ((-bound, bound) if symmetric else (min(array.min(), 0), max(array.max(), 0)))


@given(numbers, st.sampled_from([4, 8]))
def test_adjusted_loses_neither_end(values, bits: int):
    seen = statistics(values)
    assume(max(seen.high, 0) - min(seen.low, 0) > MIN_RANGE)
    code = encoding(*choose_range(seen, Method.ADJUSTED, bits, False), bits)
    low, high = limits(code)
    slack = 1e-6 * (high - low)
    assert low <= seen.low + slack and seen.high - slack <= high


@pytest.mark.parametrize("name", list(shapes()))
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_mse_has_about_the_least_noise(name: str, bits: int, symmetric: bool):
    values = shapes()[name]
    seen = statistics(values)
    found = noise(values, *choose_range(seen, Method.MSE, bits, symmetric), bits, symmetric)
    low, high = choose_range(seen, Method.MIN_MAX, bits, symmetric)
    assert found <= 1.02 * noise(values, low, high, bits, symmetric)
    tried = [noise(values, low * s, high * s, bits, symmetric) for s in np.linspace(0.02, 1, 60)]
    assert found <= 1.1 * min(tried)


@pytest.mark.parametrize("name", list(shapes()))
def test_sqnr_clips_less_than_mse(name: str):
    seen = statistics(shapes()[name])
    careful, bold = (choose_range(seen, m, 4, False) for m in (Method.SQNR, Method.MSE))
    assert careful[0] <= bold[0] and bold[1] <= careful[1]


def test_long_tails_are_cut():
    seen = statistics(shapes()["long tails"])
    for method in (*SEARCHED, Method.PERCENTILE):
        low, high = choose_range(seen, method, 4, False, 99.0)
        assert high - low < 0.7 * (seen.high - seen.low), method


@pytest.mark.parametrize("method", SEARCHED)
def test_sixteen_bits_are_not_clipped(method: Method):
    seen = statistics(shapes()["normal"])
    assert choose_range(seen, method, 16, False) == (seen.low, seen.high)


@pytest.mark.parametrize("percentile", [90.0, 99.0, 99.9])
def test_percentile_leaves_out_as_much_on_either_side(percentile: float):
    values = shapes()["normal"]
    low, high = choose_range(statistics(values), Method.PERCENTILE, 8, False, percentile)
    outside = 1 - percentile / 100
    assert np.mean(values > high) == pytest.approx(outside, abs=0.002)
    assert np.mean(values < low) == pytest.approx(outside, abs=0.002)
    bound = choose_range(statistics(values), Method.PERCENTILE, 8, True, percentile)[1]
    assert np.mean(np.abs(values) > bound) == pytest.approx(outside, abs=0.002)


def test_the_hundredth_percentile_is_everything():
    seen = statistics(shapes()["hard swish"])
    assert choose_range(seen, Method.PERCENTILE, 8, False, 100.0) == (seen.low, seen.high)


def test_entropy_ignores_a_spike_of_zeros():
    values = shapes()["relu"][:6000]
    spiked = statistics(np.concatenate([values, np.zeros(8000)]))
    assert choose_range(spiked, Method.ENTROPY, 8, False) == choose_range(
        statistics(values), Method.ENTROPY, 8, False
    )


@pytest.mark.parametrize("method", list(Method))
def test_a_tensor_of_zeros_has_the_range_of_nothing(method: Method):
    assert choose_range(statistics(np.zeros(10)), method, 8, False) == (0.0, 0.0)


def test_the_searches_need_a_histogram():
    with pytest.raises(ValueError, match="histogram"):
        choose_range(Statistics(-1.0, 1.0, 10), Method.MSE, 8, False)


# -- parameters


@pytest.mark.parametrize("method", [Method.MSE, Method.SQNR])
@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_weights_lose_less_than_by_their_extremes(method: Method, bits: int):
    rows = np.random.default_rng(1).laplace(size=(24, 700)).astype(np.float32)
    rows *= np.logspace(-3, 3, 24, dtype=np.float32)[:, None]
    lows, highs = choose_rows(rows, method, bits, True)
    plain = choose_rows(rows, Method.MIN_MAX, bits, True)
    for row, low, high, least, most in zip(rows, lows, highs, *plain, strict=True):
        assert noise(row, low, high, bits, True) <= 1.02 * noise(row, least, most, bits, True)
    if bits == 4:
        assert (highs / plain[1]).mean() < 0.9


@given(st.integers(1, 5), st.sampled_from(list(Method)), st.booleans(), st.integers(0, 999))
def test_each_row_has_a_range_of_its_own(count: int, method: Method, symmetric: bool, seed: int):
    rows = np.random.default_rng(seed).standard_normal((count, 30)).astype(np.float32)
    together = choose_rows(rows, method, 8, symmetric, 99.0)
    for i in range(count):
        alone = choose_rows(rows[i : i + 1], method, 8, symmetric, 99.0)
        assert (together[0][i], together[1][i]) == (alone[0][0], alone[1][0])
        assert together[0][i] <= 0 <= together[1][i]


def test_rows_of_zeros_and_nan_do_no_harm():
    rows = np.zeros((3, 8), np.float32)
    rows[1, 2], rows[1, 3] = np.nan, 2.0
    for method in Method:
        lows, highs = choose_rows(rows, method, 8, True)
        assert np.isfinite([lows, highs]).all() and highs[0] == 0 and highs[1] > 0


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("method", list(Method))
def test_tensors_together_have_the_ranges_that_they_have_alone(
    method: Method, bits: int, symmetric: bool
) -> None:
    tensors = [values * 3.0**i for i in range(3) for values in shapes(i).values()]
    tensors += [np.zeros(5), -np.abs(tensors[0]), np.ones(3)] + [tensors[1][: 50 + i] for i in range(AT_ONCE)]
    seen = [statistics(values) for values in tensors]
    together = choose_ranges(seen, method, bits, symmetric, 99.0)
    assert together == [choose_range(s, method, bits, symmetric, 99.0) for s in seen]
    assert choose_ranges([], method, bits, symmetric) == []


@pytest.mark.parametrize("bitwidth", [4, 8])
def test_entropy_of_few_numbers_keeps_most_of_their_range(bitwidth: int) -> None:
    """A 3x3 filter has 27 numbers: a range with none of them in it lost nothing by the formula."""
    rows = np.random.default_rng(0).normal(size=(50, 27)).astype(np.float32)
    highs = choose_rows(rows, Method.ENTROPY, bitwidth, symmetric=True)[1]
    shares = highs / np.abs(rows).max(axis=1)
    assert shares.min() > 0.4 and np.median(shares) > 0.9
