"""Many tensors looked at together.

Of a tensor of some hundred numbers numpy takes longer to be called than to compute. So the extremes of
tensors that lie next to each other in a buffer come from one call, and their histograms from few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array
from openqnn.quant.observe.observers import Observer, Seen
from openqnn.quant.observe.tallies import Picks, Tallies, Tally, parted

GAP = 4096  # numbers between two tensors that are sooner looked at than gone around
NEAR = 1 << 20  # numbers that are still in the processor's cache when they are looked at a second time

Floats = NDArray[np.float32]
Spans = Sequence[tuple[int, int]]  # from where to where in a buffer, in the order of their starts


class ObservedTogether:
    """Tensors that a thread sees at the same time, in arrays that every sample overwrites.

    `look` at each sample, and `hand_over` in the end what observers were not told at once.
    """

    def __init__(
        self, buffer: Array, arrays: Mapping[str, Array], observers: Mapping[str, Observer],
        tallies: Tallies,
    ) -> None:  # fmt: skip
        """Most arrays are parts of the buffer."""
        whole, base = buffer.view(np.float32), buffer.ctypes.data
        self._arrays, self._observers, self._common = arrays, observers, tallies
        self._apart = [n for n, array in arrays.items() if not _is_plain(array, buffer, observers[n])]
        starts = {n: (arrays[n].ctypes.data - base) // whole.itemsize for n in arrays.keys() - self._apart}
        self._names = sorted(starts, key=lambda n: (starts[n], n))  # the same in every thread
        spans = [(starts[n], starts[n] + arrays[n].size) for n in self._names]
        self._extremes = _Extremes(whole, spans)
        self._least = np.full(len(spans), inf, np.float32)
        self._most = -self._least
        self._good = np.zeros(len(spans), np.int64)  # samples, by tensor
        self._tallies = [self._own(names, tally) for names, tally in tallies.of(self._names)]

    def _own(self, names: list[str], tally: Tally) -> tuple[Tally, list[int], list[Picks]]:
        """A tally with which of this panel's tensors are in it, and their numbers that count."""
        picks = [self._common.picks(name, self._arrays[name].reshape(-1)) for name in names]
        return tally, [self._names.index(name) for name in names], picks

    def look(self, turn: int) -> dict[str, Seen]:
        """At sample number `turn`. Returns what has to be added to observers in the order of the samples."""
        seen = {name: self._observers[name].look(self._arrays[name], turn) for name in self._apart}
        lows, highs = self._extremes.now()
        good = np.isfinite(lows) & np.isfinite(highs)
        if not good.all():
            for i in np.flatnonzero(~good):
                name = self._names[i]
                seen[name] = self._observers[name].look(self._arrays[name], turn)
                lows[i], highs[i] = inf, -inf
        np.minimum(self._least, lows, out=self._least)
        np.maximum(self._most, highs, out=self._most)
        self._good += good
        if self._tallies:
            low, high = lows.tolist(), highs.tolist()
            with self._common.lock:
                for tally, which, picks in self._tallies:
                    tally.take(turn, picks, [low[i] for i in which], [high[i] for i in which])
        return seen

    def hand_over(self) -> None:
        """Tells the observers what they have not been told. Only one panel may at a time."""
        for name, low, high, good in zip(
            self._names, self._least.tolist(), self._most.tolist(), self._good.tolist(), strict=True
        ):
            self._observers[name].add(Seen(low, high, good * self._arrays[name].size, 0))


class _Extremes:
    """The least and the largest number of many stretches of a buffer.

    Large ones are taken in pieces: what was read for the least is then still at hand for the largest.
    """

    def __init__(self, whole: Floats, spans: Spans) -> None:
        pieces = [(i, min(i + NEAR, end)) for start, end in spans for i in range(start, end, NEAR)]
        self._runs = _runs(whole, pieces)
        self._low, self._high = np.empty((2, len(pieces)), np.float32)
        counts = [-(-(end - start) // NEAR) for start, end in spans]
        self._firsts = None if len(pieces) == len(spans) else np.cumsum([0, *counts[:-1]])

    def now(self) -> tuple[Floats, Floats]:
        """NaN where there is one. The caller may change the arrays until the next time."""
        for part, borders, at in self._runs:
            self._low[at] = np.minimum.reduceat(part, borders)[::2]
            self._high[at] = np.maximum.reduceat(part, borders)[::2]
        if self._firsts is None:
            return self._low, self._high
        return np.minimum.reduceat(self._low, self._firsts), np.maximum.reduceat(self._high, self._firsts)


def _is_plain(array: Array, buffer: Array, observer: Observer) -> bool:
    within = array.dtype == np.float32 and np.may_share_memory(array, buffer)
    return within and array.size > 0 and not observer.by_channel


def _runs(whole: Floats, spans: Spans) -> list[tuple[Floats, NDArray[np.intp], slice]]:
    """Stretches of the buffer that hold spans next to each other: the stretch, where in it spans and what is
    between them start in turns, and which spans they are."""
    apart = [i for i, (a, b) in enumerate(pairwise(spans), 1) if not 0 <= b[0] - a[1] <= GAP]
    found: list[tuple[Floats, NDArray[np.intp], slice]] = []
    for begin, stop in pairwise([0, *apart, len(spans)] if spans else []):
        for a, b in pairwise(parted([b - a for a, b in spans[begin:stop]], NEAR)):
            own = spans[begin + a : begin + b]
            start, end = own[0][0], own[-1][1]
            borders = [at - start for span in own for at in span]
            at = slice(begin + a, begin + b)
            found.append((whole[start:end], np.array(borders[:-1], np.intp), at))
    return found
