"""Histograms of many tensors, with few calls and no new memory: both cost more than the counting.

The places of numbers in their bins are found for many tensors at once, and wait there: a tensor's bins are
fetched once for the numbers of several samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from openqnn.quant.observe.observers import BINS, NOWHERE, PLACES, SAMPLE, Bins, Observer
from openqnn.runtime.cpu.huge_pages import large

COUNTED = 8 * SAMPLE  # numbers that are counted at a time; no tensor has a quarter of them in a sample
MOST_SAMPLES = 16  # whose numbers wait; few, so that many samples take no more memory than some
HELD = 16 << 20  # bytes that may wait

Floats = NDArray[np.float32]
Picks = Sequence[Floats]  # the numbers of a tensor that count, for one sample after the other


class Tallies:
    """All that is counted, for any thread.

    Two threads that count at once take longer than one after the other: most of it is calls too short for the
    handing over of Python's lock. So one waits for the other, while more of them compute.
    """

    def __init__(self, observers: Mapping[str, Observer]) -> None:
        self._counted = {name: o for name, o in observers.items() if o.bins is not None}
        each = sum(o.picked for o in self._counted.values())
        rows = max(1, min(MOST_SAMPLES, HELD // (2 * each))) if each else 0
        self._room, self._used = large((rows, each), np.int16), 0
        size = COUNTED if each else 0
        self.scaled, self.flags = np.empty(size, np.float32), np.empty(size, np.bool_)
        self.indices = np.empty(size, np.intp)
        self.lock = Lock()
        self._known: dict[tuple[str, ...], Tally] = {}

    def of(self, names: Iterable[str]) -> list[tuple[list[str], Tally]]:
        """Tallies of these tensors and who is in them; the same for all who ask about the same tensors."""
        counted = [name for name in names if name in self._counted]
        borders = parted([self._counted[name].picked for name in counted], COUNTED)
        parts = [counted[a:b] for a, b in pairwise(borders)]
        return [(part, self._known.get(tuple(part)) or self._new(part)) for part in parts]

    def _new(self, names: list[str]) -> Tally:
        observers = [self._counted[name] for name in names]
        start, self._used = self._used, self._used + sum(o.picked for o in observers)
        tally = self._known[tuple(names)] = Tally(observers, self, self._room[:, start : self._used])
        return tally

    def picks(self, name: str, numbers: Floats) -> Picks:
        """What counts of an array that every sample overwrites."""
        step = self._counted[name].step
        return [numbers[turn::step] for turn in range(step)]

    def count(self) -> None:
        """All that has waited."""
        with self.lock:
            for tally in self._known.values():
                tally.count()


class _Member:
    """A tensor in a tally: where its numbers go, and what is told of those that wait."""

    def __init__(self, bins: Bins, step: int, start: int, end: int, common: Tallies) -> None:
        self.bins, self.step, self.start, self.end = bins, step, start, end
        self.scaled, self.flags = common.scaled[start:end], common.flags[start:end]
        self.zeros, self.ends = 0, list[float]()
        self.exponent, self.bound, self.scale = 0, -1.0, np.float32(0)

    def widen(self, low: float, high: float) -> None:
        """For numbers between these; none may wait."""
        self.exponent = self.bins.reach(low, high)
        self.bound, self.scale = BINS * 2.0**self.exponent, np.float32(2.0**-self.exponent)

    def place(self, picked: Floats, low: float, high: float) -> None:
        """Scales the numbers of a sample; a low above the high says that none of them count."""
        if not low <= high:
            self.scaled[:] = NOWHERE - BINS
            return
        if picked.size == self.scaled.size:
            np.multiply(picked, self.scale, self.scaled)
        else:  # where the step does not go evenly into the size, some samples have one less
            np.multiply(picked, self.scale, self.scaled[:-1])
            self.scaled[-1] = NOWHERE - BINS
        if self.step > 1:
            self.ends += low, high


class Tally:
    """Tensors whose numbers are taken together; there are at most COUNTED of them in a sample."""

    def __init__(self, observers: Sequence[Observer], common: Tallies, room: NDArray[np.int16]) -> None:
        """The room has a row for each of the samples that may wait."""
        borders = pairwise(accumulate((observer.picked for observer in observers), initial=0))
        self._members = [
            _Member(observer.bins, observer.step, start, end, common)
            for observer, (start, end) in zip(observers, borders, strict=True)
            if observer.bins is not None
        ]
        self._waiting, self._filled = room, 0
        size = room.shape[1]
        self._scaled, self._flags, self._indices = common.scaled[:size], common.flags[:size], common.indices

    def take(self, turn: int, picks: Sequence[Picks], lows: Sequence[float], highs: Sequence[float]) -> None:
        """Counts sample number `turn`, which has these extremes; a low above the high says that none of them
        count."""
        for member, low, high in zip(self._members, lows, highs, strict=True):
            if not (-member.bound <= low and high < member.bound) and low <= high:
                self.count()
                member.widen(low, high)
        for member, own, low, high in zip(self._members, picks, lows, highs, strict=True):
            member.place(own[turn % member.step], low, high)
        scaled, row = self._scaled, self._waiting[self._filled]
        np.not_equal(scaled, 0, self._flags)
        # Scaling by a power of two is exact, and so is the floor: a number always meets the same bin.
        np.floor(scaled, scaled)
        np.copyto(row, scaled, casting="unsafe")
        row += BINS
        for member in self._members:
            member.zeros += member.flags.size - int(np.count_nonzero(member.flags))
        self._filled += 1
        if self._filled == len(self._waiting):
            self.count()

    def count(self) -> None:
        """What has waited."""
        if not self._filled:
            return
        for member in self._members:
            waited = self._waiting[: self._filled, member.start : member.end]
            at_once = COUNTED // member.scaled.size
            for first, last in pairwise([*range(0, self._filled, at_once), self._filled]):
                indices = self._indices[: (last - first) * member.scaled.size]
                np.copyto(indices.reshape(last - first, -1), waited[first:last])
                member.bins.count(indices, member.exponent, member.step)
            ends = np.reshape(member.ends, (-1, 2)) if member.ends else None
            member.bins.note(member.zeros * member.step, ends)
            member.zeros, member.ends = 0, []
        self._filled = 0


def bins_room(count: int) -> NDArray[np.int64]:
    """For so many histograms."""
    room = large((count, PLACES), np.int64)
    room.fill(0)  # asked for with zeros in it, it would come in small pages
    return room


def parted(sizes: Sequence[int], most: int) -> list[int]:
    """Where to part things of these sizes so that those together have at most so much, or are one alone."""
    borders, total = [0], 0
    for i, size in enumerate(sizes):
        if i > borders[-1] and total + size > most:
            borders.append(i)
            total = 0
        total += size
    return [*borders, len(sizes)] if sizes else []
