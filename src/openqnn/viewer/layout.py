"""Places for the items of one group of a view: a layered layout in rows and columns, from top to bottom.

Items are nodes and groups, whose sizes the page knows only when it draws: what is computed here is which
row and which column each has, and through which columns edges go that are longer than a row. The page
stretches rows and columns to what stands in them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, TypeAlias

FEWEST = 4  # items of a row of those that no edge joins
GAP = 1.0  # columns between parts of the graph that no edge joins
BEND = 0.35  # the width of an edge's own column, as part of a node's

Place: TypeAlias = tuple[float, int]  # column, row
Run: TypeAlias = tuple[float, int, int]  # a column that an edge keeps from one row to another
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """The column and row of every item, and of every edge the columns between its ends."""

    places: tuple[Place, ...]
    routes: Mapping[Pair, tuple[Run, ...]]


def layout(count: int, edges: Iterable[Pair], ports: Sequence[int] = ()) -> Layout:
    """Items follow what they read; each part of the graph that no edge joins stands beside the others.
    `ports` stand for what is around the group: they begin and end its lines."""
    every = sorted({(a, b) for a, b in edges if a != b})
    feeders = _feeders(every, ports)
    joined = [pair for pair in every if pair[0] not in feeders]
    places: dict[int, Place] = {}
    routes: dict[Pair, tuple[Run, ...]] = {}
    right = 0.0
    for part in _parts(joined):
        least = min(x for x, _ in part.places.values())
        moved = {item: (x - least + right, row) for item, (x, row) in part.places.items()}
        routes |= _routes(joined, part, moved)
        right = max(x for x, _ in moved.values()) + 1 + GAP
        places |= {item: place for item, place in moved.items() if item < count}
    lonely = [item for item in range(count) if item not in places and item not in feeders]
    wide = max(FEWEST, isqrt(2 * len(lonely)))  # lists are blocks: a row of hundreds cannot be read
    places |= {item: (right + i % wide, i // wide) for i, item in enumerate(lonely)}
    places |= _beside_readers(feeders, places, routes)
    return Layout(tuple(places[item] for item in range(count)), routes)


def _feeders(joined: Sequence[Pair], ports: Sequence[int]) -> dict[int, int]:
    """Items that read nothing and have one reader, which also reads others: dequantized weights, say. As
    vertices of a layered layout each of them pushes the rest of the graph aside by half a column."""
    makers: defaultdict[int, list[int]] = defaultdict(list)
    readers: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in joined:
        makers[b].append(a)
        readers[a].append(b)
    able = {
        item: found[0]
        for item, found in readers.items()
        if len(found) == 1 and item not in makers and item not in ports
    }
    return {item: reader for item, reader in able.items() if any(each not in able for each in makers[reader])}


def _beside_readers(
    feeders: Mapping[int, int], places: Mapping[int, Place], routes: Mapping[Pair, tuple[Run, ...]]
) -> dict[int, Place]:
    """Each in the row above its reader, in the nearest column where nothing else stands or passes."""
    taken: defaultdict[int, list[float]] = defaultdict(list)
    above = {reader: max(0, places[reader][1] - 1) for reader in feeders.values()}
    rows = set(above.values())
    for column, row in places.values():
        taken[row].append(column)
    for runs in routes.values() if feeders else ():
        for column, start, end in runs:
            for row in rows.intersection(range(min(start, end), max(start, end) + 1)):
                taken[row].append(column)
    for columns in taken.values():
        columns.sort()
    found: dict[int, Place] = {}
    for item, reader in feeders.items():
        row = above[reader]
        free = _nearest_free(taken[row], places[reader][0])
        insort(taken[row], free)
        found[item] = (free, row)
    return found


def _nearest_free(taken: Sequence[float], column: float) -> float:
    """The column nearest to one, to its right before its left, that is a column away from those taken."""
    step = 1.0
    while True:
        for tried in (column + step, column - step):
            at = bisect_left(taken, tried)
            if all(abs(tried - each) >= 1 for each in taken[max(0, at - 1) : at + 1]):
                return tried
        step += 0.5


@dataclass(frozen=True, slots=True)
class _Part:
    """A connected part: `next_bend` leads from each bend of an edge to what follows."""

    places: dict[int, Place]
    edges: tuple[Pair, ...]


def _parts(joined: Sequence[Pair]) -> list[_Part]:
    """Bends of edges are vertices above all items: the library numbers its own after those that it was
    given."""
    from fast_sugiyama import from_edges

    if not joined:
        return []
    items = sorted({item for pair in joined for item in pair})
    number = {item: index for index, item in enumerate(items)}
    first_bend = items[-1] + 1 - len(items)
    real = lambda vertex: items[vertex] if vertex < len(items) else first_bend + vertex
    layouts = from_edges(
        [(number[a], number[b]) for a, b in joined],
        minimum_length=1, vertex_spacing=1, ranking_type="down", dummy_size=BEND,
    )  # fmt: skip
    # The library's wrapper maps vertices by a set of small numbers, which leaves them as they are.
    return [_part(positions, edges or (), real) for positions, _, _, edges in layouts]


def _part(positions: Iterable[Any], edges: Iterable[Any], real: Callable[[int], int]) -> _Part:
    rows = {y: row for row, y in enumerate(sorted({y for _, (_, y) in positions}, reverse=True))}
    places = {real(int(vertex)): (float(x), rows[y]) for vertex, (x, y) in positions}
    return _Part(places, tuple((real(int(a)), real(int(b))) for a, b in edges))


def _routes(joined: Sequence[Pair], part: _Part, places: Mapping[int, Place]) -> dict[Pair, tuple[Run, ...]]:
    """Follow each edge from bend to bend, and keep the columns in which it stays."""
    least_bend = max(max(pair) for pair in joined) + 1
    follows = {a: b for a, b in part.edges if a >= least_bend}
    found: dict[Pair, tuple[Run, ...]] = {}
    for start, bend in part.edges:
        if start >= least_bend or bend < least_bend:
            continue
        passed: list[Place] = []
        while bend >= least_bend:
            passed.append(places[bend])
            bend = follows[bend]
        runs = _runs(passed)
        # A cycle's edge is turned round for the layout.
        found[start, bend] = runs
        found[bend, start] = tuple((x, b, a) for x, a, b in reversed(runs))
    return found


def _runs(passed: Sequence[Place]) -> tuple[Run, ...]:
    found: list[Run] = []
    for x, row in passed:
        if found and found[-1][0] == x:
            found[-1] = (x, found[-1][1], row)
        else:
            found.append((x, row, row))
    return tuple(found)
