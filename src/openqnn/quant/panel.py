"""Many tensors looked at together.

Of a tensor of some hundred numbers numpy takes longer to be called than to compute. So the extremes of all
tensors in a buffer come from one call, and the numbers for their histograms are put aside until there are
enough to be worth counting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array
from openqnn.quant.observers import Bins, Observer, Scratch, Seen

MOST_SAMPLES = 16  # whose numbers wait to be counted; few, so that many samples take no more memory than some
GAP = 4096  # numbers between two tensors that are sooner looked at than gone around

Floats = NDArray[np.float32]


class Panel:
    """Tensors that a thread sees at the same time, in arrays that every sample overwrites.

    `look` at each sample, and `hand_over` in the end what observers were not told at once.
    """

    def __init__(
        self, buffer: Array, arrays: Mapping[str, Array], observers: Mapping[str, Observer],
        room: int, scratch: Scratch,
    ) -> None:  # fmt: skip
        """Most arrays are parts of the buffer. Of each tensor `room` numbers may be put aside."""
        whole, base = buffer.view(np.float32), buffer.ctypes.data
        self._arrays, self._observers = arrays, observers
        self._apart = [n for n, array in arrays.items() if not _is_plain(array, buffer, observers[n])]
        starts = {n: (arrays[n].ctypes.data - base) // whole.itemsize for n in arrays.keys() - self._apart}
        self._names = sorted(starts, key=starts.__getitem__)
        self._runs = _runs(whole, [(starts[n], starts[n] + arrays[n].size) for n in self._names])
        self._low, self._high = np.empty((2, len(self._names)), np.float32)
        self._least, self._most = np.full_like(self._low, inf), np.full_like(self._high, -inf)
        self._good = np.zeros(len(self._names), np.int64)  # samples, by tensor
        self._held = [
            (i, _Held(bins, observers[name].step, arrays[name].reshape(-1), room, scratch))
            for i, name in enumerate(self._names)
            if (bins := observers[name].bins) is not None
        ]

    def look(self, turn: int) -> dict[str, Seen]:
        """At sample number `turn`. Returns what has to be added to observers in the order of the samples."""
        seen = {name: self._observers[name].look(self._arrays[name], turn) for name in self._apart}
        for part, borders, at in self._runs:
            self._low[at] = np.minimum.reduceat(part, borders)[::2]
            self._high[at] = np.maximum.reduceat(part, borders)[::2]
        good = np.isfinite(self._low) & np.isfinite(self._high)
        if not good.all():
            for i in np.flatnonzero(~good):
                name = self._names[i]
                seen[name] = self._observers[name].look(self._arrays[name], turn)
                self._low[i], self._high[i] = inf, -inf
        np.minimum(self._least, self._low, out=self._least)
        np.maximum(self._most, self._high, out=self._most)
        self._good += good
        if self._held:
            self._put_aside(turn)
        return seen

    def _put_aside(self, turn: int) -> None:
        low, high = self._low.tolist(), self._high.tolist()
        for i, held in self._held:
            if low[i] <= high[i]:
                held.take(turn, low[i], high[i])

    def hand_over(self) -> None:
        """Tells the observers what they have not been told. Only one panel may at a time."""
        for _, held in self._held:
            held.count()
        for name, low, high, good in zip(
            self._names, self._least.tolist(), self._most.tolist(), self._good.tolist(), strict=True
        ):
            self._observers[name].add(Seen(low, high, good * self._arrays[name].size, 0))


class _Held:
    """Numbers of one tensor that wait to be counted."""

    def __init__(self, bins: Bins, step: int, flat: Array, room: int, scratch: Scratch) -> None:
        self._bins, self._flat, self._step, self._scratch = bins, flat, step, scratch
        self._picked = -(-flat.size // step)  # at most, of each sample
        # Where only one sample would fit, its numbers are counted where they are.
        size = min(room, MOST_SAMPLES * self._picked)
        self._numbers = np.empty(size, np.float32) if size >= 2 * self._picked else None
        self._filled, self._ends = 0, list[float]()

    def take(self, turn: int, low: float, high: float) -> None:
        picked = self._flat[turn % self._step :: self._step]
        if self._numbers is None:
            self._bins.add(picked, [low, high], self._step, self._scratch)
            return
        self._ends += low, high
        filled = self._filled + picked.size
        self._numbers[self._filled : filled] = picked
        self._filled = filled
        if filled + self._picked > self._numbers.size:
            self.count()

    def count(self) -> None:
        if self._numbers is not None and self._ends:
            self._bins.add(self._numbers[: self._filled], self._ends, self._step, self._scratch)
            self._filled, self._ends = 0, []


def _is_plain(array: Array, buffer: Array, observer: Observer) -> bool:
    within = array.dtype == np.float32 and np.may_share_memory(array, buffer)
    return within and array.size > 0 and not observer.by_channel


def _runs(whole: Floats, spans: Sequence[tuple[int, int]]) -> list[tuple[Floats, NDArray[np.intp], slice]]:
    """Stretches of the buffer that hold tensors next to each other: the stretch, where in it tensors and what
    is between them start in turns, and which tensors they are. Spans are in the order of their starts."""
    apart = [i for i, (a, b) in enumerate(pairwise(spans), 1) if not 0 <= b[0] - a[1] <= GAP]
    found: list[tuple[Floats, NDArray[np.intp], slice]] = []
    for first, last in pairwise([0, *apart, len(spans)] if spans else []):
        start, end = spans[first][0], spans[last - 1][1]
        borders = [at - start for span in spans[first:last] for at in span]
        found.append((whole[start:end], np.array(borders[:-1], np.intp), slice(first, last)))
    return found
