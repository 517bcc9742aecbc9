"""The groups of a view as JSON: what is in each, where it stands there, and which lines join it.

An item of a group is a node by its number, or a group by the number of nodes plus its own. Lines are
between items, by their place in the group; two more places, behind those of the items, stand for what comes
from outside and what goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from openqnn.viewer.group_tree import Group, all_groups
from openqnn.viewer.layout import Pair, layout

Edge: TypeAlias = tuple[int, int, str]


def group_records(root: Group, count: int, edges: Sequence[Edge]) -> list[dict[str, Any]]:
    """Every group; the first is the whole."""
    groups = list(all_groups(root))
    numbers = {id(group): count + index for index, group in enumerate(groups)}
    items = [[_number(item, numbers) for item in group.items] for group in groups]
    parents = {item: index for index, held in enumerate(items) for item in held}
    lines = _lines(count, items, parents, edges)
    return [
        _record(group, held, parents.get(count + index, -1), lines[index])
        for index, (group, held) in enumerate(zip(groups, items, strict=True))
    ]


def _number(item: int | Group, numbers: dict[int, int]) -> int:
    return item if isinstance(item, int) else numbers[id(item)]


def _lines(
    count: int, items: Sequence[Sequence[int]], parents: dict[int, int], edges: Sequence[Edge]
) -> list[set[Pair]]:
    """An edge joins two items of the innermost group that holds both ends; on its way there it leaves the
    groups around its start, and enters those around its end."""
    local = {item: place for held in items for place, item in enumerate(held)}
    found: list[set[Pair]] = [set() for _ in items]
    chains: dict[int, tuple[int, ...]] = {}
    chain = lambda node: chains.get(node) or chains.setdefault(node, _chain(node, count, parents))
    for a, b, _ in edges:
        above, below = chain(a), chain(b)
        shared = 0
        while shared < min(len(above), len(below)) and above[shared] == below[shared]:
            shared += 1
        meeting = above[shared - 1] - count if shared else 0
        found[meeting].add((local[(*above, a)[shared]], local[(*below, b)[shared]]))
        for depth in range(shared, len(above)):
            group = above[depth] - count
            found[group].add((local[(*above, a)[depth + 1]], len(items[group]) + 1))
        for depth in range(shared, len(below)):
            group = below[depth] - count
            found[group].add((len(items[group]), local[(*below, b)[depth + 1]]))
    return found


def _chain(node: int, count: int, parents: dict[int, int]) -> tuple[int, ...]:
    """The groups around a node but the whole, the outermost first."""
    around: list[int] = []
    group = parents[node]
    while group:
        around.append(count + group)
        group = parents[count + group]
    return tuple(reversed(around))


def _record(group: Group, held: list[int], parent: int, lines: set[Pair]) -> dict[str, Any]:
    source, target = len(held), len(held) + 1
    joined = sorted(lines)
    ends = {end for pair in joined for end in pair}
    made = layout(len(held) + 2, joined, (source, target))
    routes: dict[Pair, list[float]] = {pair: [] for pair in joined}
    for pair in joined:
        for column, start, end in made.routes.get(pair, ()):
            routes[pair] += (_short(column), start, end)
    found: dict[str, Any] = {
        "name": group.name,
        "path": group.path,
        "parent": parent,
        "items": held,
        "size": group.size,
        "columns": [_short(x) for x, _ in made.places],
        "rows": [row for _, row in made.places],
        "ports": [source in ends, target in ends],
        "lines": [[a, b, *routes[a, b]] for a, b in joined],
    }
    if group.repeat:
        found["repeat"] = group.repeat
    return found


def _short(column: float) -> float:
    """Fewer digits, and whole numbers without a point."""
    rounded = round(column, 2)
    return int(rounded) if rounded == int(rounded) else rounded
