"""Places for the nodes of a view: a layered layout from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COLUMN = 190.0
ROW = 76.0
GAP = 1.0  # columns between parts of the graph that no edge joins


@dataclass(frozen=True, slots=True)
class Layout:
    """The middle of every node, in page units, and the size of the whole."""

    places: tuple[tuple[float, float], ...]
    width: float
    height: float


def layout(count: int, edges: Sequence[tuple[int, int, str]]) -> Layout:
    """Nodes follow what they read; each part of the graph that no edge joins stands beside the others."""
    joined = sorted({(a, b) for a, b, _ in edges})
    columns = dict[int, tuple[float, float]]()
    right = 0.0
    for part in _parts(joined):
        least = min(x for x, _ in part.values())
        for index, (x, y) in part.items():
            columns[index] = (x - least + right, y)
        right = max(x for x, _ in columns.values()) + 1 + GAP
    for index in range(count):
        if index not in columns:
            columns[index] = (right, 0.0)
            right += 1 + GAP
    places = tuple((columns[i][0] * COLUMN, columns[i][1] * ROW) for i in range(count))
    width = max((x for x, _ in places), default=0.0) + COLUMN
    height = max((y for _, y in places), default=0.0) + ROW
    return Layout(places, width, height)


def _parts(joined: Sequence[tuple[int, int]]) -> list[dict[int, tuple[float, float]]]:
    """Columns and rows of the nodes of each connected part, without the vertices that the library adds along
    edges over several rows."""
    from fast_sugiyama import from_edges

    found: list[dict[int, tuple[float, float]]] = []
    if not joined:
        return found
    real = {index for pair in joined for index in pair}
    layouts = from_edges(joined, minimum_length=1, vertex_spacing=1, ranking_type="down")
    for positions, *_ in layouts:
        rows = sorted({y for _, (_, y) in positions}, reverse=True)
        number = {y: float(row) for row, y in enumerate(rows)}
        found.append({index: (x, number[y]) for index, (x, y) in positions if index in real})
    return found
