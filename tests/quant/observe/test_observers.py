"""What is kept of a tensor while samples pass by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from openqnn.quant.observe.observers import BINS, SAMPLE, Observer, Statistics, Watch

ALL = Watch.EXTREMES | Watch.HISTOGRAM | Watch.CHANNELS


def observed(arrays, watch: Watch = ALL, axis: int | None = None, order=None) -> Statistics:
    observer = Observer(watch, arrays[0].shape, axis)
    seen = {turn: observer.look(arrays[turn], turn) for turn in order or range(len(arrays))}
    for turn in range(len(arrays)):
        observer.add(seen[turn])
    return observer.statistics()


def arrays(count: int, shape: tuple[int, ...], seed: int = 0):
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(shape) * 3.0**i).astype(np.float32) for i in range(count)]


def test_extremes_and_channels_are_exact():
    given = arrays(3, (2, 5, 7, 4))
    seen, whole = observed(given), np.stack(given)
    assert (seen.low, seen.high, seen.count) == (whole.min(), whole.max(), whole.size)
    np.testing.assert_array_equal(seen.channel_low, whole.min(axis=(0, 1, 2, 3)))
    np.testing.assert_array_equal(seen.channel_high, whole.max(axis=(0, 1, 2, 3)))


def test_channels_may_lie_along_any_axis():
    given = arrays(2, (1, 6, 3, 5))
    first = observed(given, axis=1)
    last = observed([np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in given])
    np.testing.assert_array_equal(first.channel_low, last.channel_low)
    np.testing.assert_array_equal(first.channel_high, last.channel_high)


@given(st.permutations(range(6)), st.integers(0, 99))
def test_the_order_of_samples_changes_nothing(order: list[int], seed: int):
    given = arrays(6, (3, 50), seed)
    one, other = observed(given), observed(given, order=order)
    assert one.histogram is not None and other.histogram is not None
    np.testing.assert_array_equal(one.histogram.counts, other.histogram.counts)
    assert (one.histogram.first, one.histogram.last) == (other.histogram.first, other.histogram.last)
    np.testing.assert_array_equal(one.channel_high, other.channel_high)


@given(st.lists(st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False), min_size=1, max_size=40))
@example([-(2.0**35), -(2.0**-126)])  # the second is zero by the width of the first
@example([-(2.0**-126), 2.0**35])  # and here it was counted before
def test_every_number_of_a_small_tensor_is_in_its_bin(numbers: list[float]):
    values = np.array(numbers, np.float32)
    seen = observed([np.float32([x]) for x in values])
    histogram = seen.histogram
    assert histogram is not None and histogram.counts.sum() == len(numbers)
    edges = np.linspace(histogram.first, histogram.last, len(histogram.counts) + 1)
    near = np.abs(values[:, None].astype(np.float64) - edges).min(axis=1) / (edges[1] - edges[0] or 1)
    assume(not np.any((near > 0) & (near < 1e-6)))  # rounding may put these on either side
    places = np.clip(np.searchsorted(edges, values.astype(np.float64), "right") - 1, 0, None)
    np.testing.assert_array_equal(histogram.counts, np.bincount(places, minlength=len(histogram.counts)))
    assert histogram.first <= seen.low and seen.high <= histogram.last
    assert histogram.zeros == np.count_nonzero(values == 0)


def test_a_large_tensor_is_sampled_without_favour():
    rng = np.random.default_rng(0)
    shape = (1, 32, 64, 64)
    scale = np.linspace(0.5, 1.5, 32, dtype=np.float32)[None, :, None, None]
    given = [rng.standard_normal(shape).astype(np.float32) * scale for _ in range(4)]
    seen, whole = observed(given), np.stack(given)
    histogram = seen.histogram
    assert histogram is not None
    assert histogram.counts.sum() == pytest.approx(whole.size, rel=0.01)
    assert BINS // 2 < len(histogram.counts) <= 2 * BINS and whole[0].size > 4 * SAMPLE
    centers = histogram.first + (np.arange(len(histogram.counts)) + 0.5) * histogram.width
    sum_of_squares = (histogram.counts * centers**2).sum() / histogram.counts.sum()
    assert sum_of_squares == pytest.approx((whole.astype(np.float64) ** 2).mean(), rel=0.05)
    assert histogram.counts[0] and histogram.counts[-1], "the extremes count even where no sample meets them"


def test_what_is_not_finite_is_counted_and_left_out():
    array = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    array[0, 0], array[1, 1], array[3, 2] = np.nan, np.inf, -np.inf
    seen = observed([array])
    good = array[np.isfinite(array)]
    assert (seen.low, seen.high, seen.count, seen.nans) == (good.min(), good.max(), 9, 3)
    assert seen.histogram is not None and seen.histogram.counts.sum() == 9
    np.testing.assert_array_equal(seen.channel_high, [3, 4, 2])


def test_a_tensor_of_nothing_but_nan_has_no_range():
    seen = observed([np.full((2, 3), np.nan, np.float32)])
    assert (seen.low, seen.high, seen.count, seen.nans) == (0, 0, 0, 6)
    np.testing.assert_array_equal(seen.channel_low, [0, 0, 0])


def test_a_sample_of_zeros_leaves_the_bins_fine():
    given = [np.zeros(50, np.float32), np.linspace(0, 0.01, 50, dtype=np.float32)]
    one, other = observed(given), observed(given[::-1])
    assert one.histogram is not None and other.histogram is not None
    assert len(one.histogram.counts) > BINS // 2
    np.testing.assert_array_equal(one.histogram.counts, other.histogram.counts)
    assert one.histogram.zeros == other.histogram.zeros == 51
