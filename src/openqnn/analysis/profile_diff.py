"""Whether one profiling log is slower than another, with noise told from change.

Executions of one run are not independent: a busy second makes neighbours slow together. So the executions of
a log are cut into ten blocks in the order of time, and the medians of blocks are compared by Mann and
Whitney's test; p-values are corrected for the number of comparisons by Holm. A change counts when it is both
significant and larger than a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from openqnn.analysis.profile_nodes import node_times, totals
from openqnn.errors import InputError
from openqnn.formats.profiling_log import ProfilingLog

BLOCKS = 10
FEWEST = 5  # executions of each log: with fewer, no difference can be significant
LEVEL = 0.05
SLOWER, FASTER, SAME, FEW = "slower", "faster", "same", "too few"


@dataclass(frozen=True, slots=True)
class Change:
    """One time in both logs. `ratio` is the second over the first."""

    name: str
    before: float
    after: float
    ratio: float
    p: float | None
    verdict: str = SAME


@dataclass(frozen=True, slots=True)
class ProfileDiff:
    """Changes of whole executions and of nodes; nodes that only one log has are named."""

    whole: list[Change]
    nodes: list[Change]
    only_before: list[str]
    only_after: list[str]

    @property
    def has_regression(self) -> bool:
        return any(change.verdict == SLOWER for change in (*self.whole, *self.nodes))


def diff_profiles(before: ProfilingLog, after: ProfilingLog, threshold: float) -> ProfileDiff:
    """Compare two logs; `threshold` is the relative change below which nothing counts."""
    for log in (before, after):
        if not log.executions():
            raise InputError(f"{log.path} has no execution in it: there is nothing to compare")
    whole = _changes(totals(before), totals(after))
    ours, theirs = ({f"{n.name} ({n.unit})": n.values for n in node_times(log)} for log in (before, after))
    nodes = _changes(ours, theirs)
    return ProfileDiff(
        _judged(whole, threshold),
        sorted(_judged(nodes, threshold), key=lambda change: -abs(change.after - change.before)),
        sorted(set(ours) - set(theirs)),
        sorted(set(theirs) - set(ours)),
    )


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value by the normal approximation, with ties and continuity corrected."""
    n, m = len(first), len(second)
    ordered = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    ranks, ties, at = 0.0, 0.0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        rank, size = (at + 1 + end) / 2, end - at
        ranks += rank * sum(1 for _, side in ordered[at:end] if side == 0)
        ties += size**3 - size
        at = end
    u = ranks - n * (n + 1) / 2
    total = n + m
    variance = n * m / 12 * ((total + 1) - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def _changes(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> list[Change]:
    found: list[Change] = []
    for name in before:
        if name in after:
            first, second = _blocks(before[name]), _blocks(after[name])
            old, new = median(before[name]), median(after[name])
            enough = min(len(before[name]), len(after[name])) >= FEWEST
            p = mann_whitney(first, second) if enough else None
            ratio = new / old if old else (1.0 if new == old else math.inf)
            found.append(Change(name, old, new, ratio, p))
    return found


def _blocks(values: Sequence[float]) -> list[float]:
    count = min(BLOCKS, len(values))
    size = len(values) / count
    return [median(values[round(i * size) : round((i + 1) * size)]) for i in range(count)]


def _judged(changes: Sequence[Change], threshold: float) -> list[Change]:
    """Verdicts by Holm's correction: the smallest p has to stand against all comparisons."""
    tested = sorted((i for i, c in enumerate(changes) if c.p is not None), key=lambda i: changes[i].p or 0.0)
    significant: set[int] = set()
    for order, index in enumerate(tested):
        if (changes[index].p or 0.0) * (len(tested) - order) > LEVEL:
            break
        significant.add(index)
    found: list[Change] = []
    for index, change in enumerate(changes):
        verdict = FEW if change.p is None else SAME
        if index in significant and abs(change.ratio - 1) > threshold:
            verdict = SLOWER if change.ratio > 1 else FASTER
        found.append(replace(change, verdict=verdict))
    return found
