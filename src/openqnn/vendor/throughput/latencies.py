"""Latencies of one thread, in memory that does not grow: percentiles, and how they went over time."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CHUNK = 2048  # executions that are noted down before they are sorted in
EXACT = 1 << 16  # executions whose times are kept as they are
RATIO, LEAST = 1.005, 1e-7  # of the histogram that takes over from there: buckets of half a percent
BUCKETS = 5100  # up to 10,000 seconds
SLOTS = 240
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
PARTS = ("latency", "queue", "copy", "execute")


@dataclass(frozen=True, slots=True)
class Course:
    """How latency went: `width` seconds a slot, with the executions, their mean and largest latency."""

    width: float
    counts: tuple[int, ...]
    means: tuple[float, ...]
    largest: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of one time in seconds. A percentile that the count does not support is not there."""

    count: int
    total: float
    least: float
    largest: float
    percentiles: dict[str, float]
    curve: tuple[tuple[float, float], ...] = field(default=())
    """Points of the cumulative distribution: seconds, share."""

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class Latencies:
    """Times of executions; `add` is cheap, and sorting in happens once in a while."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._fresh = array("d")
        self._parts = {name: _Times() for name in PARTS}
        self._width = 0.05
        self._slots = np.zeros((3, SLOTS))

    def add(self, end: float, queue: float, copy: float, execute: float) -> None:
        self._fresh.extend((end, queue, copy, execute))
        if len(self._fresh) >= 4 * CHUNK:
            self._sort_in()

    def spread(self, part: str = "latency") -> Spread:
        self._sort_in()
        return self._parts[part].spread()

    def course(self) -> Course:
        self._sort_in()
        used = int(np.flatnonzero(self._slots[0])[-1]) + 1 if self._slots[0].any() else 0
        counts, sums, largest = self._slots[:, :used]
        means = np.divide(sums, counts, out=np.zeros(used), where=counts > 0)
        return Course(
            self._width, tuple(map(int, counts)), tuple(map(float, means)), tuple(map(float, largest))
        )

    def _sort_in(self) -> None:
        if not self._fresh:
            return
        times = np.frombuffer(self._fresh, np.float64).reshape(-1, 4).copy()
        self._fresh = array("d")
        whole = times[:, 1:].sum(1)
        for name, column in zip(PARTS, (whole, *times[:, 1:].T), strict=True):
            self._parts[name].add(column)
        self._place(times[:, 0] - self._began, whole)

    def _place(self, at: Any, whole: Any) -> None:
        while at.max() >= self._width * SLOTS:
            self._halve()
        index = np.maximum((at / self._width).astype(int), 0)
        np.add.at(self._slots[0], index, 1)
        np.add.at(self._slots[1], index, whole)
        np.maximum.at(self._slots[2], index, whole)

    def _halve(self) -> None:
        """Two slots become one."""
        pairs = self._slots.reshape(3, -1, 2)
        self._slots = np.zeros((3, SLOTS))
        self._slots[:2, : SLOTS // 2] = pairs[:2].sum(2)
        self._slots[2, : SLOTS // 2] = pairs[2].max(1)
        self._width *= 2


class _Times:
    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._buckets: Any = None
        self._count, self._total, self._least, self._largest = 0, 0.0, np.inf, 0.0

    def add(self, times: Any) -> None:
        self._count += len(times)
        self._total += float(times.sum())
        self._least = min(self._least, float(times.min()))
        self._largest = max(self._largest, float(times.max()))
        if self._buckets is None:
            self._kept.append(times.copy())
            if self._count <= EXACT:
                return
            self._buckets = np.zeros(BUCKETS, np.int64)
            times = np.concatenate(self._kept)
            self._kept.clear()
        index = np.log(np.maximum(times, LEAST) / LEAST) / np.log(RATIO)
        np.add.at(self._buckets, np.minimum(index.astype(int), BUCKETS - 1), 1)

    def spread(self) -> Spread:
        if not self._count:
            return Spread(0, 0.0, 0.0, 0.0, {})
        found = {
            name: self._quantile(share)
            for name, share in PERCENTILES.items()
            if self._count * (1 - share) >= 1 or share == 0.5
        }
        shares = np.linspace(0, 1, 101)
        curve = tuple((self._quantile(float(share)), float(share)) for share in shares)
        return Spread(self._count, self._total, self._least, self._largest, found, curve)

    def _quantile(self, share: float) -> float:
        """The least time that such a share of executions stayed within."""
        rank = max(0, int(np.ceil(share * self._count)) - 1)
        if self._buckets is None:
            kept = self._sorted()
            return float(kept[rank])
        index = int(np.searchsorted(np.cumsum(self._buckets), rank + 1))
        middle = LEAST * RATIO ** (index + 0.5)
        return float(min(max(middle, self._least), self._largest))

    def _sorted(self) -> Any:
        kept = np.sort(np.concatenate(self._kept))
        self._kept = [kept]
        return kept
