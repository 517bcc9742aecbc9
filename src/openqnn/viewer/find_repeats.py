"""Finding what repeats in a sequence of ops: blocks that follow one another and are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST, LONGEST = 3, 96  # ops in a block
LEAST_TIMES = 3
LEAST_COVERED = 9  # ops in all repetitions together


@dataclass(frozen=True, slots=True)
class Repeat:
    """`times` blocks of `length` ops from `start` on."""

    start: int
    length: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.length * self.times


def find_repeats(ops: Sequence[str]) -> list[Repeat]:
    """Repeats that do not overlap, in their order: those that cover most are taken first."""
    names = {op: number for number, op in enumerate(dict.fromkeys(ops))}
    numbers = np.array([names[op] for op in ops], dtype=np.int32)
    found = [repeat for length in range(SHORTEST, LONGEST + 1) for repeat in _of_length(numbers, length)]
    found.sort(key=lambda r: (-r.length * r.times, r.length, r.start))
    taken = np.zeros(len(ops), dtype=bool)
    chosen: list[Repeat] = []
    for repeat in found:
        if not taken[repeat.start : repeat.end].any():
            taken[repeat.start : repeat.end] = True
            chosen.append(repeat)
    return sorted(chosen, key=lambda r: r.start)


def _of_length(numbers: NDArray[np.int32], length: int) -> list[Repeat]:
    """Runs in which every op is the one `length` places on."""
    if len(numbers) < LEAST_TIMES * length:
        return []
    same = np.concatenate(([False], numbers[:-length] == numbers[length:], [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(same))
    found: list[Repeat] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        times = (end - start) // length + 1
        one_op = len(set(numbers[start : start + length].tolist())) == 1
        if times >= LEAST_TIMES and times * length >= LEAST_COVERED and not one_op:
            found.append(Repeat(start, length, times))
    return found
