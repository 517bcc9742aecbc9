"""Tensors that are looked at together show what each shows alone."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir import Array
from openqnn.quant.observers import SAMPLE, Observer, Scratch, Statistics, Watch
from openqnn.quant.panel import GAP, Panel

PLAIN = Watch.EXTREMES | Watch.HISTOGRAM
SHAPES = {  # by name: where in the buffer, in numbers, and the shape
    "small": (0, (3, 5)),
    "next": (16, (7,)),
    "large": (32, (1, 4 * SAMPLE + 3)),
    "same as large": (32, (1, 4 * SAMPLE + 3)),
    "behind a gap": (32 + 5 * SAMPLE + 2 * GAP, (40, 30)),
    "last": (32 + 5 * SAMPLE + 2 * GAP + 1216, (1,)),
}
SIZE = 32 + 5 * SAMPLE + 2 * GAP + 1217


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
    np.testing.assert_array_equal(one.channel_mean, other.channel_mean)  # None where nobody asks


@pytest.mark.parametrize("watch", [Watch.EXTREMES, PLAIN])
@pytest.mark.parametrize("room", [0, 40, 3 * SAMPLE, 1 << 20])
@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is compared
def test_together_as_alone(watch: Watch, room: int, spoilt: bool) -> None:
    rng = np.random.default_rng(1)
    buffer = np.empty(4 * SIZE, np.uint8)
    arrays = laid_out(buffer)
    special = watch | Watch.CHANNELS
    want, found = (observers(arrays, watch, special) for _ in range(2))
    panels = [
        Panel(buffer, arrays, found, room, Scratch(max(room, 2 * SAMPLE))) for _ in range(2)
    ]  # as of two threads
    for turn in range(9):
        buffer.view(np.float32)[:] = np.maximum(rng.standard_normal(SIZE) * 2.0 ** (turn % 5), -1.5)
        arrays["large"][..., ::7] = 0
        if spoilt and turn % 3 == 1:
            arrays["small"][1, 1], arrays["large"][0, 5:9], arrays["last"][:] = np.nan, np.inf, np.nan
        for name, seen in panels[turn % 2].look(turn).items():
            found[name].add(seen)
        for name, array in arrays.items():
            want[name].add(want[name].look(array, turn))
    for panel in panels:
        panel.hand_over()
    for name in arrays:
        alike(found[name].statistics(), want[name].statistics())


def test_arrays_of_other_types_and_places_are_looked_at_alone() -> None:
    buffer = np.zeros(64, np.uint8)
    arrays = {"half": buffer.view(np.float16)[:4], "elsewhere": np.array([1, -2], np.float32)}
    arrays["half"][:] = [1, 2, -3, 0.5]
    found = {n: Observer(PLAIN, a.shape) for n, a in arrays.items()}
    panel = Panel(buffer, arrays, found, 100, Scratch(100))
    seen = panel.look(0)
    assert {n: (s.low, s.high) for n, s in seen.items()} == {"half": (-3, 2), "elsewhere": (-2, 1)}


def test_what_has_not_been_seen_has_no_range() -> None:
    buffer = np.zeros(64, np.uint8)
    found = {"x": Observer(PLAIN, (16,))}
    Panel(buffer, {"x": buffer.view(np.float32)}, found, 100, Scratch(100)).hand_over()
    assert (found["x"].statistics().count, found["x"].statistics().low) == (0, 0.0)
