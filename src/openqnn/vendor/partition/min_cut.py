"""The cheapest way to divide things between two sides: the minimum cut of a network, by Dinic's algorithm."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
_FIRST, _SECOND = 0, 1


class _Network:
    def __init__(self, size: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(size)]  # numbers of edges
        self.ends: list[int] = []
        self.room: list[float] = []

    def add(self, start: int, end: int, capacity: float, back: float = 0.0) -> None:
        for source, target, room in ((start, end, capacity), (end, start, back)):
            self.edges[source].append(len(self.ends))
            self.ends.append(target)
            self.room.append(room)

    def levels(self) -> list[int]:
        found = [-1] * len(self.edges)
        found[_FIRST] = 0
        waiting = deque([_FIRST])
        while waiting:
            here = waiting.popleft()
            for edge in self.edges[here]:
                if self.room[edge] > 1e-15 and found[self.ends[edge]] < 0:
                    found[self.ends[edge]] = found[here] + 1
                    waiting.append(self.ends[edge])
        return found

    def push(self, level: list[int], tried: list[int]) -> bool:
        """One path from the first to the second side, filled; False where there is none."""
        path: list[int] = []
        here = _FIRST
        while here != _SECOND:
            edges = self.edges[here]
            while tried[here] < len(edges):
                edge = edges[tried[here]]
                if self.room[edge] > 1e-15 and level[self.ends[edge]] == level[here] + 1:
                    break
                tried[here] += 1
            if tried[here] == len(edges):
                if not path:
                    return False
                here = self.ends[path.pop() ^ 1]
                tried[here] += 1
                continue
            path.append(edges[tried[here]])
            here = self.ends[path[-1]]
        least = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= least
            self.room[edge ^ 1] += least
        return True


def min_cut(
    first: Mapping[Item, float], second: Mapping[Item, float], ties: Iterable[tuple[Item, Item, float]]
) -> set[Item]:
    """The items of the first side, where each item costs what a side says of it (inf where it cannot be
    there), and a tie costs its price when its ends are on different sides.

    An item that can be on neither side counts as one of the second.
    """
    items = {item: number + 2 for number, item in enumerate(first)}
    network = _Network(len(items) + 2)
    largest = 1 + sum(c for side in (first, second) for c in side.values() if c != inf)
    ties = list(ties)
    largest += sum(price for *_, price in ties)
    for item, number in items.items():
        network.add(_FIRST, number, min(second[item], largest))
        network.add(number, _SECOND, min(first[item], largest))
    for one, other, price in ties:
        network.add(items[one], items[other], price, price)
    while (level := network.levels())[_SECOND] >= 0:
        tried = [0] * len(network.edges)
        while network.push(level, tried):
            pass
    return {item for item, number in items.items() if level[number] >= 0 and first[item] != inf}
