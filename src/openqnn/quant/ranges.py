"""From what was seen of a tensor to the range that its encoding should cover.

Noise is counted as the literature does: a number inside the range is off by up to half a step, evenly spread,
so that its square is step^2 / 12 on average; a number outside is off by its distance to the range. Zero is
always exact, and so are the many zeros behind a Relu. Every range covers zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array
from openqnn.quant.observe.observers import Histogram, Statistics
from openqnn.quant.recipe import Method

Floats = NDArray[np.float64]

SEARCHED_WIDTH = 8  # wider numbers have steps so fine that clipping never pays: there the extremes are right
CLIPPING = (
    3.0  # how much worse than rounding `sqnr` takes clipping to be, since it hits the same numbers each time
)
LEAST_SHARE = 1 / 64  # of the extremes: the smallest range that a search tries
GRID = 24  # ends that a search tries on each side, first over the whole range and then around the best
PLACES = np.arange(GRID, dtype=np.float64)
AT_ONCE = 32  # histograms that are searched together: their sums stay in the processor's caches
ENTROPY_GRIDS = 16, 8  # ranges that it tries, first over all of them and then around the best
ENTROPY_AT_ONCE = 8
TINY = 1e-4  # of a count: what stands for an empty bin in a logarithm
ROW_GRID = 12
LEAST_ROW = 0.25  # of the extremes: fewer ends than for activations, each of which costs a rounding
CHUNK = 1 << 20  # numbers of a weight that are rounded at a time


def choose_range(
    seen: Statistics, method: Method, bitwidth: int, symmetric: bool, percentile: float = 99.99
) -> tuple[float, float]:
    """The range for a tensor of activations."""
    return choose_ranges([seen], method, bitwidth, symmetric, percentile)[0]


def choose_ranges(
    seen: Sequence[Statistics], method: Method, bitwidth: int, symmetric: bool, percentile: float = 99.99
) -> list[tuple[float, float]]:
    """The ranges for many tensors of activations, which is sooner done together."""
    ranges = [_extremes(s.low, s.high, symmetric) for s in seen]
    wide = [i for i, (low, high) in enumerate(ranges) if high > low]
    if method is Method.MIN_MAX or (method is Method.ADJUSTED and symmetric):
        return ranges
    extremes = [ranges[i] for i in wide]
    if method is Method.ADJUSTED:
        found = [_expanded(*each, (1 << bitwidth) - 1) for each in extremes]
    else:
        histograms = [_histogram(seen[i], method) for i in wide]
        if bitwidth > SEARCHED_WIDTH and method is not Method.PERCENTILE:
            return ranges
        found = _searched(histograms, extremes, method, bitwidth, symmetric, percentile)
    chosen = dict(zip(wide, found, strict=True))
    return [chosen.get(i, each) for i, each in enumerate(ranges)]


def _histogram(seen: Statistics, method: Method) -> Histogram:
    if seen.histogram is None:
        raise ValueError(f"{method} needs a histogram")
    return seen.histogram


def _searched(
    histograms: list[Histogram], extremes: list[tuple[float, float]],
    method: Method, bitwidth: int, symmetric: bool, percentile: float,
) -> list[tuple[float, float]]:  # fmt: skip
    """The range between each pair of extremes that a method finds in a histogram."""
    pairs = list(zip(histograms, extremes, strict=True))
    if method is Method.PERCENTILE:
        return [_percentile(h, low, high, symmetric, percentile) for h, (low, high) in pairs]
    levels = _Levels(bitwidth) if method is Method.ENTROPY else None
    at_once = AT_ONCE if levels is None else ENTROPY_AT_ONCE
    weight = CLIPPING if method is Method.SQNR else 1.0
    found: list[tuple[float, float]] = []
    for start in range(0, len(pairs), at_once):
        own = histograms[start : start + at_once]
        low, high = np.array(extremes[start : start + at_once]).T
        if levels is None:
            lows, highs = _least_noise(Moments(own), low, high, bitwidth, symmetric, weight)
        else:
            lows, highs = _least_told(own, low, high, levels)
        found += zip(lows.tolist(), highs.tolist(), strict=True)
    return found


def _extremes(low: float, high: float, symmetric: bool) -> tuple[float, float]:
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        bound = max(-low, high)
        return -bound, bound
    return low, high


def _expanded(low: float, high: float, steps: int) -> tuple[float, float]:
    """The least range that has zero on one of its steps and still holds both extremes: rounding the place of
    zero shifts a range, which then loses up to half a step at one end."""
    place = -low * steps / (high - low)
    least, most = int(low < 0), steps - int(high > 0)
    places = np.clip([np.floor(place), np.ceil(place)], least, most)
    scales = np.maximum(-low / np.maximum(places, 1), high / np.maximum(steps - places, 1))
    best = int(np.argmin(scales))
    scale, zero = float(scales[best]), float(places[best])
    return min(-zero * scale, low), max((steps - zero) * scale, high)


def _percentile(
    histogram: Histogram, low: float, high: float, symmetric: bool, percentile: float
) -> tuple[float, float]:
    """The range that leaves out as much on either side; zero stays in."""
    edges = np.linspace(histogram.first, histogram.last, len(histogram.counts) + 1)
    total = np.concatenate([[0.0], np.cumsum(histogram.counts)])
    share = percentile / 100 * total[-1]
    if symmetric:
        return _symmetric_percentile(edges, total, high, share)
    # seen from its own side each, so that a stretch without numbers ends both bounds where the numbers do
    top = float(np.interp(share, total, edges))
    bottom = float(-np.interp(share, (total[-1] - total)[::-1], -edges[::-1]))
    return min(max(low, bottom), 0.0), max(min(high, top), 0.0)


def _symmetric_percentile(edges: Floats, total: Floats, high: float, share: float) -> tuple[float, float]:
    bounds = np.linspace(0.0, high, len(edges))
    inside = np.interp(bounds, edges, total) - np.interp(-bounds, edges, total)
    bound = min(float(np.interp(share, inside, bounds)), high)
    return -bound, bound


# -- least noise ---------------------------------------------------------------------------------------------


class Moments:
    """Running sums over histograms, from which the noise of any range follows without another look at them.

    The first axis of whatever comes in and goes out is that of the histograms.
    """

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        column = lambda numbers: np.array(numbers, np.float64)[:, None]
        self.first, self.width = column([h.first for h in histograms]), column([h.width for h in histograms])
        self.bins = np.array([len(h.counts) for h in histograms])[:, None]
        starts = np.concatenate([[0], np.cumsum(self.bins + 1)])
        self.sums, self.start = np.zeros((3, starts[-1])), starts[:-1, None]
        middles = np.arange(int(self.bins.max(initial=0))) + 0.5
        weighted = np.empty((3, len(middles)))
        for start, histogram in zip(starts, histograms, strict=False):
            bins = len(histogram.counts)
            n, nx, nxx = own = weighted[:, :bins]
            x = middles[:bins] * histogram.width
            x += histogram.first
            n[:] = histogram.counts
            np.multiply(np.multiply(n, x, out=nx), x, out=nxx)
            np.cumsum(own, axis=1, out=self.sums[:, start + 1 : start + 1 + bins])
        self.all = self.sums[:, self.start + self.bins]
        self.zeros = column([h.zeros for h in histograms])

    def below(self, ends: Floats) -> Floats:
        """Count, sum and sum of squares of what lies below each end: three interpolations at a time."""
        places = np.minimum(np.maximum((ends - self.first) / self.width, 0.0), self.bins)
        at = np.minimum(places.astype(np.intp), self.bins - 1)
        left, right = self.sums.take(self.start + at, axis=1), self.sums.take(self.start + at + 1, axis=1)
        return left + (right - left) * (places - at)

    def noise(self, low: Floats, high: Floats, steps: int, clipping: float, *, paired: bool) -> Floats:
        """The noise of each range low[i]..high[j], or of each low[i]..high[i]."""
        left, right = self.below(low), self.all - self.below(high)
        under = np.maximum(left[2] - 2 * low * left[1] + low**2 * left[0], 0)
        over = np.maximum(right[2] - 2 * high * right[1] + high**2 * right[0], 0)
        few, many = left[0], right[0]
        total = self.all[0] - self.zeros
        if not paired:
            low, under, few = low[:, :, None], under[:, :, None], few[:, :, None]
            high, over, many, total = high[:, None], over[:, None], many[:, None], total[:, None]
        step = (high - low) / steps
        return np.maximum(total - few - many, 0) * step**2 / 12 + clipping * (under + over)


def _least_noise(
    moments: Moments, low: Floats, high: Floats, bitwidth: int, symmetric: bool, clipping: float
) -> tuple[Floats, Floats]:
    """The ranges between the extremes, first over the whole and then around the best."""
    steps = (1 << bitwidth) - (2 if symmetric else 1)
    rows = np.arange(len(low))
    spans = [(np.full(len(low), LEAST_SHARE), np.ones(len(low)))] * 2
    best = low, high
    for _ in range(2):
        highs = _ends(high, spans[1])
        lows = -highs if symmetric else _ends(low, spans[0])
        noise = moments.noise(lows, highs, steps, clipping, paired=symmetric)
        least = noise.reshape(len(low), -1).argmin(axis=1)  # of equals the first, which is the widest range
        i, j = (least, least) if symmetric else np.divmod(least, GRID)
        best = lows[rows, i], highs[rows, j]
        spans = [_around(best[0], low, spans[0]), _around(best[1], high, spans[1])]
    return best


def _ends(extreme: Floats, span: tuple[Floats, Floats]) -> Floats:
    """Ends to try, the widest first; all are zero where the extreme is."""
    return extreme[:, None] * (span[1][:, None] + PLACES * ((span[0] - span[1]) / (GRID - 1))[:, None])


def _around(best: Floats, extreme: Floats, span: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    share = np.divide(best, extreme, out=np.ones_like(best), where=extreme != 0)
    reach = (span[1] - span[0]) / (GRID - 1)
    return np.maximum(share - reach, LEAST_SHARE), np.minimum(share + reach, 1.0)


# -- entropy -------------------------------------------------------------------------------------------------


def _least_told(
    histograms: Sequence[Histogram], low: Floats, high: Floats, levels: _Levels
) -> tuple[Floats, Floats]:
    """The ranges whose rounded distributions tell least less than the real ones (Kullback-Leibler), first
    over all and then around the best."""
    running = _Running(histograms)
    rows = np.arange(len(low))
    # two bins are the least that a level can merge
    least = np.minimum(1.0, (2 << levels.bitwidth) * running.width[:, 0] / (high - low))
    best, top, bottom = np.ones(len(low)), np.ones(len(low)), np.maximum(least, LEAST_SHARE)
    for tried in ENTROPY_GRIDS:
        shares = np.linspace(top, bottom, tried, axis=1)
        ends = np.array([low, high])[:, :, None] * shares
        places = np.rint((ends - running.first) / running.width).astype(np.intp)
        first, last = np.minimum(np.maximum(places, 0), running.bins)
        best = shares[rows, _divergence(running, first, last, levels).argmin(axis=1)]
        reach = (top - bottom) / (tried - 1)
        top, bottom = np.minimum(best + reach, top), np.maximum(best - reach, bottom)
    return low * best, high * best


def _without_zeros(histogram: Histogram) -> Floats:
    """Zeros are exact in any range: left in, the spike that they make would hide all else."""
    counts = histogram.counts.astype(np.float64)
    at = int(-histogram.first / histogram.width)
    if 0 <= at < len(counts):
        counts[at] -= min(histogram.zeros, counts[at])
    return counts


class _Running:
    """Sums over histograms, without zeros, up to each border of their bins: of counts, of filled bins, and of
    counts times their logarithms. The histograms lie one behind the other, with a border more than bins each.
    """

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        column = lambda numbers, dtype: np.array(numbers, dtype)[:, None]
        self.first = column([h.first for h in histograms], np.float64)
        self.width = column([h.width for h in histograms], np.float64)
        self.bins = column([len(h.counts) for h in histograms], np.intp)
        starts = np.concatenate([[0], np.cumsum(self.bins + 1)])
        self.start, self.end = starts[:-1, None], starts[1:, None] - 1
        self.counts, self.sums = np.zeros(starts[-1]), np.zeros((3, starts[-1]))
        for start, histogram in zip(starts, histograms, strict=False):
            self.counts[start : start + len(histogram.counts)] = _without_zeros(histogram)
        several = (self.counts, self.counts > 0, _xlogx(self.counts))
        for x, sums in zip(several, self.sums, strict=True):
            for start, bins in zip(starts, self.bins[:, 0], strict=False):
                np.cumsum(x[start : start + bins], out=sums[start + 1 : start + 1 + bins])


def _divergence(
    running: _Running, first: NDArray[np.intp], last: NDArray[np.intp], levels: _Levels
) -> Floats:
    """For ranges of bins, in a row for each histogram: the information that is lost when what is outside goes
    to its ends, and what is inside is known by level only.

    A level spreads its sum over its filled bins alike, so that all follows from running sums at its borders.
    """
    mass, own = running.sums[0], running.sums[2]
    total = np.maximum(mass[running.end], TINY)
    known, lowest, highest = levels.known(running, first, last)
    first, last = first + running.start, last + running.start
    told = own[last] - own[first] - known
    tails = mass[first], mass[running.end] - mass[last]
    for bin_, logs, tail in ((first, lowest, tails[0]), (last - 1, highest, tails[1])):
        held = running.counts[np.minimum(np.maximum(bin_, running.start), running.end - 1)]
        told += _xlogx(held + tail) - _xlogx(held) - tail * logs
    inside = mass[last] - mass[first]
    lost = told / total + np.log(np.maximum(inside, TINY) / total)
    # a range with nothing in it has nothing to compare; with little in it ends that held nothing count double
    return np.where(inside > 0, np.maximum(lost, 0.0), np.inf)


class _Levels:
    """What is known of ranges by their levels, in memory that all tensors use: new memory costs as much as
    what is computed in it."""

    def __init__(self, bitwidth: int) -> None:
        self.bitwidth = bitwidth
        self._places = np.arange((1 << bitwidth) + 1, dtype=np.int32)  # times at most 8192 bins
        shape = ENTROPY_AT_ONCE, max(ENTROPY_GRIDS)
        self._scaled = np.empty((*shape, len(self._places)), np.int32)
        self._borders = np.empty(self._scaled.shape, np.intp)
        self._at = np.empty((2, *self._scaled.shape))
        self._sums, self._bins = np.empty((2, *shape, 1 << bitwidth))

    def known(
        self, running: _Running, first: NDArray[np.intp], last: NDArray[np.intp]
    ) -> tuple[Floats, Floats, Floats]:
        """The share of each range, and logarithms of what a bin of its first and last level holds."""
        own = slice(first.shape[0]), slice(first.shape[1])
        scaled, borders, room = self._scaled[own], self._borders[own], self._at[:, *own]
        sums, bins = self._sums[own], self._bins[own]
        np.multiply(self._places, (last - first).astype(np.int32)[:, :, None], out=scaled)
        np.right_shift(scaled, self.bitwidth, out=scaled)
        np.add(scaled, (running.start + first)[:, :, None], out=borders)
        for total, at, between in zip(running.sums[:2], room, (sums, bins), strict=True):
            np.take(total, borders, out=at, mode="clip")  # no border is outside; else it would be copied
            np.subtract(at[..., 1:], at[..., :-1], out=between)
        logs = np.maximum(sums, TINY, out=room[0, ..., 1:])
        logs /= np.maximum(bins, 1.0, out=bins)
        np.log(logs, out=logs)
        lowest, highest = logs[..., 0].copy(), logs[..., -1].copy()
        return np.multiply(sums, logs, out=bins).sum(axis=-1), lowest, highest


def _xlogx(x: Floats) -> Floats:
    return x * np.log(np.maximum(x, TINY))


# -- parameters ----------------------------------------------------------------------------------------------


def choose_rows(
    rows: Array, method: Method, bitwidth: int, symmetric: bool, percentile: float = 99.99
) -> tuple[Floats, Floats]:
    """The range of each row of a two-dimensional array, for parameters with an encoding per row."""
    if not np.isfinite(rows.sum(dtype=np.float64)):
        rows = np.where(np.isfinite(rows), rows, 0)
    lows = np.minimum(rows.min(axis=1), 0).astype(np.float64)
    highs = np.maximum(rows.max(axis=1), 0).astype(np.float64)
    if symmetric:
        highs = np.maximum(-lows, highs)
        lows = -highs
    if method is Method.MIN_MAX or (bitwidth > SEARCHED_WIDTH and method is not Method.PERCENTILE):
        return lows, highs
    if method in (Method.MSE, Method.SQNR):
        weight = CLIPPING if method is Method.SQNR else 1.0
        return _least_noise_rows(rows, lows, highs, bitwidth, symmetric, weight)
    found = [
        choose_range(_statistics(row), method, bitwidth, symmetric, percentile) for row in np.asarray(rows)
    ]
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])


def _statistics(row: Array) -> Statistics:
    """A row as if it had been observed."""
    low, high = float(row.min()), float(row.max())
    first, last = min(low, 0.0), max(high, 0.0)
    counts, edges = np.histogram(row, bins=4096, range=(first, last if last > first else first + 1.0))
    zeros = int(row.size - np.count_nonzero(row))
    return Statistics(low, high, row.size, 0, Histogram(counts, float(edges[0]), float(edges[-1]), zeros))


def _least_noise_rows(
    rows: Array, lows: Floats, highs: Floats, bitwidth: int, symmetric: bool, clipping: float
) -> tuple[Floats, Floats]:
    """Shrinks the range of each row to the share with the least noise, by rounding for real."""
    share = np.ones(len(rows))
    at_once = max(1, CHUNK // max(1, rows.shape[1]))
    steps = (1 << bitwidth) - (2 if symmetric else 1)
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        share[part] = _row_shares(
            np.asarray(rows[part], np.float32), lows[part], highs[part], steps, clipping
        )
    return lows * share, highs * share


def _row_shares(rows: Array, lows: Floats, highs: Floats, steps: int, clipping: float) -> Floats:
    best = np.ones(len(rows))
    least = _row_noise(rows, lows, highs, steps, clipping)
    reach = (1 - LEAST_ROW) / ROW_GRID
    for shares in (1 - reach * np.arange(1, ROW_GRID + 1), reach * np.linspace(-0.8, 0.8, 9)):
        around = best.copy() if shares[0] < 0 else np.zeros(len(rows))
        for share in shares:
            tried = np.minimum(around + share, 1.0)
            noise = _row_noise(rows, lows * tried, highs * tried, steps, clipping)
            better = noise < least
            best, least = np.where(better, tried, best), np.where(better, noise, least)
    return best


def _row_noise(rows: Array, lows: Floats, highs: Floats, steps: int, clipping: float) -> Floats:
    scale = np.maximum((highs - lows) / steps, 1e-30)
    zero = np.rint(lows / scale).astype(np.float32)[:, None]
    stored = rows * (1 / scale).astype(np.float32)[:, None]
    rounded = np.clip(np.rint(stored), zero, zero + np.float32(steps))
    error = (stored - rounded) ** 2
    if clipping != 1.0:
        error *= np.where((stored < zero - 0.5) | (stored > zero + (steps + 0.5)), np.float32(clipping), 1)
    return error.sum(axis=1, dtype=np.float64) * scale**2
