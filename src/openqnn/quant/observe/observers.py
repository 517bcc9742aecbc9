"""What is kept of a tensor while samples pass by: extremes, a histogram, extremes of its channels.

Nothing here grows with the number of samples, and nothing depends on the order in which they come: bins are
as wide as a power of two and start at zero, so that widening them only adds neighbours up.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Flag, auto
from math import frexp, gcd, inf, isfinite, prod

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array

BINS = 4096  # on either side of zero
NOWHERE = 2 * BINS  # the place of what does not count
PLACES = NOWHERE + 1
SAMPLE, FEW = 8192, 2048  # numbers of a large tensor that one sample adds to its histogram, between these
ENOUGH = 3 << 15  # of a large tensor, from all samples: beyond that a sample adds no more than FEW
SEARCHED = 16384  # numbers up to which numpy finds the place of an extreme sooner than the extreme itself
LEAST_FLOAT32 = 2.0**-149
LEAST_EXPONENT = -120  # bins no narrower than 2^-120: whatever is below is zero to any encoding


class Watch(Flag):
    """What somebody wants to know about a tensor."""

    EXTREMES = auto()
    HISTOGRAM = auto()
    CHANNELS = auto()


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in bins of equal width from `first` to `last`; `zeros` of the numbers are exactly zero.

    For large tensors the counts are estimates from every so many-th number."""

    counts: NDArray[np.int64]
    first: float
    last: float
    zeros: int = 0

    @property
    def width(self) -> float:
        return (self.last - self.first) / len(self.counts)


@dataclass(slots=True)
class Statistics:
    """All that was seen of a tensor. `low` and `high` are exact, over finite numbers; `nans` are the others.

    It is `masked` where minus infinity was among these, which is below all scores and no fault of the data.
    Channels lie along the last axis of the value, in the graph's own layout.
    """

    low: float
    high: float
    count: int
    nans: int = 0
    histogram: Histogram | None = None
    channel_low: Array | None = None
    channel_high: Array | None = None
    masked: bool = False

    @property
    def lowest(self) -> float:
        return -inf if self.masked else self.low


@dataclass(slots=True)
class Seen:
    """What one sample says about a tensor, small enough to be handed from thread to thread."""

    low: float
    high: float
    count: int
    nans: int
    channels: tuple[Array, Array, Array] | None = None  # low, high, count
    masked: bool = False


class Bins:
    """A histogram around zero whose bins double in width when a number lies outside. Any thread may count."""

    def __init__(self, room: NDArray[np.int64] | None = None) -> None:
        """The room has PLACES zeros."""
        self.counts = np.zeros(PLACES, np.int64) if room is None else room
        self.exponent = LEAST_EXPONENT
        self.zeros = 0
        self._lock = threading.Lock()

    def reach(self, low: float, high: float) -> int:
        """Makes the bins wide enough; returns the exponent of a width at which such numbers have places."""
        most = max(-low, high)
        exponent = frexp(most / BINS)[1] if most else self.exponent  # of zeros alone no width follows
        if exponent > self.exponent:
            with self._lock:
                if (doublings := exponent - self.exponent) > 0:  # another thread may have done it
                    if self.counts.any():
                        self.counts[:] = _widened(self.counts, doublings)
                    self.exponent = exponent
        return self.exponent

    def count(self, indices: NDArray[np.intp], exponent: int, weight: int) -> None:
        """Adds numbers by their places in bins of this exponent, counted from -BINS on.

        Each stands for `weight` numbers."""
        with self._lock:
            if doublings := self.exponent - exponent:  # another thread has widened the bins meanwhile
                indices = indices[indices < NOWHERE] - BINS
                indices >>= min(doublings, 63)
                indices += BINS
            np.add.at(self.counts, indices, np.array([weight], np.int64))

    def note(self, zeros: int, ends: Array | None) -> None:
        """How many of the numbers were zeros. Where not all were given, the least and the largest of each
        sample count once: the others seldom meet them."""
        with self._lock:
            self.zeros += zeros
            if ends is not None:
                np.add.at(self.counts, _places(ends.reshape(-1), self.exponent) + BINS, 1)

    def histogram(self, low: float, high: float) -> Histogram:
        """The bins from the one that holds `low` to the one that holds `high`."""
        width = 2.0**self.exponent
        first, end = _places(np.array([low, high]), self.exponent).tolist()
        last = end + 1
        if not first and self.counts[BINS - 1]:
            first = -1  # a number below zero that was counted while bins were as narrow as it
        return Histogram(
            self.counts[BINS + first : BINS + last].copy(), first * width, last * width, self.zeros
        )


class Observer:
    """Watches one tensor. `look` may run in any thread; `add` takes what it found, in sample order."""

    def __init__(
        self, watch: Watch, shape: tuple[int, ...], axis: int | None = None,
        room: NDArray[np.int64] | None = None, runs: int = 1,
    ) -> None:  # fmt: skip
        """`shape` is that of the arrays to come, `axis` the one of their channels (None: the last); `room` is
        for a histogram of so many `runs`."""
        self.bins = Bins(room) if Watch.HISTOGRAM in watch else None
        # every how many-th number is counted
        self.step = 1 if self.bins is None else _step(prod(shape), max(FEW, min(SAMPLE, ENOUGH // runs)))
        self.size = prod(shape)
        self.picked = -(-self.size // self.step)  # at most
        self._view = _channel_view(shape, axis) if Watch.CHANNELS in watch else None
        self._low, self._high, self._count, self._nans = inf, -inf, 0, 0
        self._masked = False
        self._channels: tuple[Array, Array, Array] | None = None

    @property
    def by_channel(self) -> bool:
        return self._view is not None

    def look(self, array: Array, turn: int) -> Seen:
        """What sample number `turn` says; the histogram takes its share at once."""
        if array.dtype != np.float32:
            array = array.astype(np.float32)
        flat = array.reshape(-1)
        low, high = _extremes(flat)
        nans, masked = 0, False
        if not (isfinite(low) and isfinite(high)):
            finite = flat[np.isfinite(flat)]
            nans, masked = flat.size - finite.size, bool(np.isneginf(flat).any())
            low, high = float(finite.min(initial=inf)), float(finite.max(initial=-inf))
        if self.bins is not None and nans < flat.size:
            self._bin(flat, turn, low, high, bool(nans))
        channels = None if self._view is None else _by_channel(flat.reshape(self._view), bool(nans))
        return Seen(low, high, flat.size - nans, nans, channels, masked)

    def _bin(self, flat: Array, turn: int, low: float, high: float, mixed: bool) -> None:
        picked = flat[turn % self.step :: self.step]
        if mixed:
            picked = picked[np.isfinite(picked)]
        assert self.bins is not None
        exponent = self.bins.reach(low, high)
        scaled = picked * np.float32(2.0**-exponent)
        places = np.floor(scaled).astype(np.intp)
        self.bins.count(places + BINS, exponent, self.step)
        zeros = scaled.size - int(np.count_nonzero(scaled))
        self.bins.note(zeros * self.step, np.array([[low, high]]) if self.step > 1 else None)

    def add(self, seen: Seen) -> None:
        self._low, self._high = min(self._low, seen.low), max(self._high, seen.high)
        self._count += seen.count
        self._nans += seen.nans
        self._masked |= seen.masked
        if seen.channels is None:
            return
        if self._channels is None:
            self._channels = seen.channels
            return
        low, high, count = self._channels
        np.minimum(low, seen.channels[0], out=low)
        np.maximum(high, seen.channels[1], out=high)
        count += seen.channels[2]

    def statistics(self) -> Statistics:
        """A tensor without a single finite number has the range of nothing, 0 to 0."""
        low, high = (self._low, self._high) if self._count else (0.0, 0.0)
        found = Statistics(low, high, self._count, self._nans, masked=self._masked)
        if self.bins is not None:
            found.histogram = self.bins.histogram(low, high)
        if self._channels is not None:
            least, most, count = self._channels
            empty = count == 0
            found.channel_low, found.channel_high = np.where(empty, 0, least), np.where(empty, 0, most)
        return found


def _places(numbers: Array, exponent: int) -> NDArray[np.intp]:
    """The bins of numbers, counted from zero; as in float32, what is too small for the width is zero."""
    scaled = numbers * 2.0**-exponent
    return np.floor(np.where(np.abs(scaled) > LEAST_FLOAT32 / 2, scaled, 0)).astype(np.intp)


def _extremes(flat: Array) -> tuple[float, float]:
    """The least and the largest number; NaN where there is one."""
    if flat.size <= SEARCHED:
        return flat.item(flat.argmin()), flat.item(flat.argmax())
    return float(np.minimum.reduce(flat)), float(np.maximum.reduce(flat))


def _widened(counts: NDArray[np.int64], doublings: int) -> NDArray[np.int64]:
    """Merges bins so many times into twice as wide ones."""
    merged = 1 << min(doublings, BINS.bit_length() - 1)
    sums = counts[:NOWHERE].reshape(-1, merged).sum(axis=1)
    wide, half = np.zeros_like(counts), len(sums) // 2
    wide[BINS - half : BINS + half] = sums
    return wide


def _step(size: int, wanted: int) -> int:
    """Every how many-th number is picked. Prime to the size, so that no row or channel is left out."""
    step = max(1, size // wanted)
    while gcd(step, size) > 1:
        step += 1
    return step


def _channel_view(shape: tuple[int, ...], axis: int | None) -> tuple[int, int, int]:
    """The shape as what is before, at and behind the axis of the channels."""
    if not shape:
        return 1, 1, 1
    at = len(shape) - 1 if axis is None else axis
    return prod(shape[:at]), shape[at], prod(shape[at + 1 :])


def _by_channel(blocks: Array, mixed: bool) -> tuple[Array, Array, Array]:
    """Low, high, sum and count of [before, channel, behind], of the finite numbers."""
    if not mixed:
        count = np.full(blocks.shape[1], blocks.shape[0] * blocks.shape[2], np.int64)
        low, high = blocks.min(axis=2).min(axis=0), blocks.max(axis=2).max(axis=0)
        return low, high, count
    good = np.isfinite(blocks)
    low = blocks.min(axis=(0, 2), initial=inf, where=good)
    high = blocks.max(axis=(0, 2), initial=-inf, where=good)
    return low, high, good.sum(axis=(0, 2))
