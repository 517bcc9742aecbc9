"""Sums over samples from which the errors of a tensor and the statistics of its values follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, sqrt

import numpy as np

from openqnn.ir import Array, Encoding
from openqnn.runtime.metrics import cosine_of_sums, decibels

BINS = 64
FEW = 4096  # values of a tensor of one sample that histograms and moments are made from
HALF_LARGEST = 65504.0


@dataclass(slots=True)
class Tally:
    """What is kept of one tensor: powers of the signal and of its errors, extremes, moments, a histogram."""

    signal: float = 0.0
    entire: float = 0.0
    isolated: float = 0.0
    added: float = 0.0
    weight: float = 0.0
    bias: float = 0.0
    own: float = 0.0
    usual: float = 0.0
    beyond: float = 0.0
    product: float = 0.0
    power: float = 0.0
    largest: float = 0.0
    count: int = 0
    below: int = 0
    above: int = 0
    nan: int = 0
    infinite: int = 0
    lost: int = 0
    low: float = inf
    high: float = -inf
    total: float = 0.0
    second: float = 0.0
    fourth: float = 0.0
    drawn: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def see(self, real: Array) -> None:
        """The values of one sample in floating point."""
        flat = real.reshape(-1)
        low, high = (float(flat.min()), float(flat.max())) if flat.size else (0.0, 0.0)
        if not (isfinite(low) and isfinite(high)):
            self.nan += int(np.isnan(flat).sum())
            self.infinite += int(np.isinf(flat).sum())
            flat = flat[np.isfinite(flat)]
            low, high = (float(flat.min()), float(flat.max())) if flat.size else (0.0, 0.0)
        self.count += flat.size
        self.total += float(flat.sum(dtype=np.float64))
        with np.errstate(over="ignore"):
            power = float(np.dot(flat, flat))
        self.signal += power if isfinite(power) else float(np.square(flat, dtype=np.float64).sum())
        some = flat if flat.size < FEW else flat[:: flat.size // FEW]
        self._moments(some.astype(np.float64))
        self._spread(some, low, high)

    def _moments(self, some: Array) -> None:
        square = np.square(some)
        self.second += float(square.sum())
        self.fourth += float(square @ square)
        self.drawn += some.size

    def _spread(self, x: Array, low: float, high: float) -> None:
        """The histogram has the range of all samples so far: where that grows, bins go where their middles
        lie."""
        if low < self.low or high > self.high:
            old = self.low, self.high
            self.low, self.high = min(low, self.low), max(high, self.high)
            if len(self.counts):
                middles = old[0] + (np.arange(BINS) + 0.5) * ((old[1] - old[0]) / BINS)
                self.counts = np.bincount(self._places(middles), self.counts, BINS).astype(np.int64)
        if not len(self.counts):
            self.counts = np.zeros(BINS, np.int64)
        self.counts = self.counts + np.bincount(self._places(x), minlength=BINS)

    def _places(self, x: Array) -> Array:
        span = (self.high - self.low) or 1.0
        return np.clip((x - self.low) * (BINS / span), 0, BINS - 1).astype(np.int64)

    @property
    def mean(self) -> float:
        return self.total / max(self.count, 1)

    @property
    def std(self) -> float:
        return sqrt(max(self.signal / max(self.count, 1) - self.mean**2, 0.0))

    @property
    def kurtosis(self) -> float:
        """The fourth moment about zero over the square of the second: 3 for a normal distribution."""
        return self.fourth * self.drawn / self.second**2 if self.second > 0 else 0.0

    @property
    def cosine(self) -> float:
        return cosine_of_sums(self.product, self.signal, self.power)

    def percentile(self, share: float) -> float:
        """The value that a share of the values lies below, from the histogram."""
        total = int(self.counts.sum())
        if not total:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self.counts), share * total))
        return self.low + (min(place, BINS - 1) + 0.5) * (self.high - self.low) / BINS

    def decibels(self, noise: float) -> float:
        """The ratio of the signal to a noise; nothing is left of the signal where that is infinite."""
        return decibels(self.signal, noise) if isfinite(noise) else -inf


def power_of_difference(real: Array, found: Array) -> float:
    """The sum of squares; infinite where one has no number and the other has."""
    x, y = real.reshape(-1), found.reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.subtract(x, y, dtype=np.float32)
        power = float(np.dot(gap, gap))
    if isfinite(power):
        return power
    good = np.isfinite(x)
    gap = gap[good].astype(np.float64)
    power = float(gap @ gap)
    return power if isfinite(power) else inf


def stored(real: Array, encoding: Encoding, signed: bool, dtype: np.dtype[np.generic]) -> Array:
    """The nearest stored integers, as `Encoding.quantize` finds them, in few passes over the memory."""
    if encoding.axis is not None or encoding.bitwidth > 16:
        return encoding.quantize(real, signed).astype(dtype)
    low = -(1 << (encoding.bitwidth - 1)) if signed else 0
    scale, offset = np.float32(encoding.scale[0]), np.float32(encoding.offset[0] + low)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.divide(real, scale, dtype=np.float32)
        found -= offset
        found += np.float32(0.5)
    np.floor(found, out=found)
    np.clip(np.nan_to_num(found, copy=False), 0, (1 << encoding.bitwidth) - 1, out=found)
    if low:
        found += low
    return found.astype(dtype)


def real_of(numbers: Array, encoding: Encoding) -> Array:
    """The real numbers of stored ones."""
    if encoding.axis is not None or encoding.bitwidth > 16:
        return encoding.dequantize(numbers)
    found = numbers.astype(np.float32)
    found += np.float32(encoding.offset[0])
    found *= np.float32(encoding.scale[0])
    return found
