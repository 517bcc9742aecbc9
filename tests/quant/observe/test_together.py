"""Tensors that are looked at together show what each shows alone."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import Array
from openqnn.quant.observe import tallies as tally
from openqnn.quant.observe import together as panel_module
from openqnn.quant.observe.observers import BINS, PLACES, SAMPLE, Bins, Observer, Statistics, Watch
from openqnn.quant.observe.tallies import Tallies, bins_room
from openqnn.quant.observe.together import GAP, ObservedTogether

PLAIN = Watch.EXTREMES | Watch.HISTOGRAM
PIECE = 2048  # numbers of which the extremes are found at a time
SHAPES = {  # by name: where in the buffer, in numbers, and the shape
    "small": (0, (3, 5)),
    "next": (16, (7,)),
    "large": (32, (1, 4 * SAMPLE + 3)),
    "same as large": (32, (1, 4 * SAMPLE + 3)),
    "behind a gap": (32 + 5 * SAMPLE + 2 * GAP, (40, 30)),
    "in pieces": (32 + 5 * SAMPLE + 2 * GAP + 1216, (3, PIECE)),
    "last": (32 + 5 * SAMPLE + 2 * GAP + 1216 + 3 * PIECE, (1,)),
}
SIZE = 32 + 5 * SAMPLE + 2 * GAP + 1217 + 3 * PIECE


def laid_out(buffer: Array) -> dict[str, Array]:
    numbers = buffer.view(np.float32)
    return {n: numbers[at : at + np.prod(shape)].reshape(shape) for n, (at, shape) in SHAPES.items()}


def observers(arrays: dict[str, Array], watch: Watch, special: Watch) -> dict[str, Observer]:
    return {n: Observer(special if n == "next" else watch, a.shape) for n, a in arrays.items()}


def alike(one: Statistics, other: Statistics) -> None:
    assert (one.low, one.high, one.count, one.nans) == (other.low, other.high, other.count, other.nans)
    assert (one.histogram is None) == (other.histogram is None)
    if one.histogram is not None and other.histogram is not None:
        np.testing.assert_array_equal(one.histogram.counts, other.histogram.counts)
        assert (one.histogram.first, one.histogram.zeros) == (other.histogram.first, other.histogram.zeros)
    np.testing.assert_array_equal(one.channel_high, other.channel_high)  # None where nobody asks


@pytest.mark.parametrize("watch", [Watch.EXTREMES, PLAIN])
@pytest.mark.parametrize("waiting", [1, 3, 100])
@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is compared
def test_together_as_alone(watch: Watch, waiting: int, spoilt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_SAMPLES", waiting)
    monkeypatch.setattr(panel_module, "NEAR", PIECE)
    rng = np.random.default_rng(1)
    buffer = np.empty(4 * SIZE, np.uint8)
    arrays = laid_out(buffer)
    special = watch | Watch.CHANNELS
    want, found = (observers(arrays, watch, special) for _ in range(2))
    tallies = Tallies(found)
    panels = [ObservedTogether(buffer, arrays, found, tallies) for _ in range(2)]  # as of two threads
    for turn in range(9):
        buffer.view(np.float32)[:] = np.maximum(rng.standard_normal(SIZE) * 2.0 ** (turn % 5), -1.5)
        arrays["large"][..., ::7] = 0
        if spoilt and turn % 3 == 1:
            arrays["small"][1, 1], arrays["large"][0, 5:9], arrays["last"][:] = np.nan, np.inf, np.nan
        for name, seen in panels[turn % 2].look(turn).items():
            found[name].add(seen)
        for name, array in arrays.items():
            want[name].add(want[name].look(array, turn))
    tallies.count()
    for panel in panels:
        panel.hand_over()
    for name in arrays:
        alike(found[name].statistics(), want[name].statistics())


def test_arrays_of_other_types_and_places_are_looked_at_alone() -> None:
    buffer = np.zeros(64, np.uint8)
    arrays = {"half": buffer.view(np.float16)[:4], "elsewhere": np.array([1, -2], np.float32)}
    arrays["half"][:] = [1, 2, -3, 0.5]
    found = {n: Observer(PLAIN, a.shape) for n, a in arrays.items()}
    panel = ObservedTogether(buffer, arrays, found, Tallies(found))
    seen = panel.look(0)
    assert {n: (s.low, s.high) for n, s in seen.items()} == {"half": (-3, 2), "elsewhere": (-2, 1)}


def test_what_has_not_been_seen_has_no_range() -> None:
    buffer = np.zeros(64, np.uint8)
    found = {"x": Observer(PLAIN, (16,))}
    ObservedTogether(buffer, {"x": buffer.view(np.float32)}, found, Tallies(found)).hand_over()
    assert (found["x"].statistics().count, found["x"].statistics().low) == (0, 0.0)


def test_what_waits_is_limited_however_many_samples_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "HELD", 5 * 2 * 100)  # bytes: five samples of a hundred numbers
    buffer = np.ones(400, np.uint8).view(np.float32)
    buffer[:] = np.arange(100)
    found = {"x": Observer(PLAIN, (100,))}
    tallies = Tallies(found)
    panel = ObservedTogether(buffer.view(np.uint8), {"x": buffer}, found, tallies)
    bins = found["x"].bins
    assert bins is not None
    counted: list[int] = []
    for turn in range(12):
        panel.look(turn)
        counted.append(int(bins.counts.sum()))
    assert counted == [0, 0, 0, 0, 500, 500, 500, 500, 500, 1000, 1000, 1000]
    tallies.count()
    assert bins.counts.sum() == 1200
    assert bins.zeros == 12


def test_places_found_before_another_thread_widened_the_bins_still_count() -> None:
    bins, wide = Bins(), Bins(bins_room(1)[0])
    numbers = np.array([-3.0, -0.001, 0.0, 0.001, 2.9], np.float32)
    for histogram in (bins, wide):
        exponent = histogram.reach(-3.0, 2.9)
        if histogram is wide:
            histogram.reach(-100.0, 0.0)
        places = np.floor(numbers * 2.0**-exponent).astype(np.intp) + BINS
        histogram.count(np.append(places, PLACES - 1), exponent, 1)  # the last of them is nowhere
    bins.reach(-100.0, 0.0)
    assert bins.exponent == wide.exponent
    np.testing.assert_array_equal(bins.counts[:-1], wide.counts[:-1])
    assert wide.counts[:-1].sum() == len(numbers)
