"""The groups of a view's nodes: by module path or name prefix, or where names say nothing by what repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from openqnn.viewer.find_repeats import Repeat, find_repeats
from openqnn.viewer.view import View, ViewNode

LEAST_REPEATS = 3
LEAST_NODES = 24  # below it, a graph without names that tell is shown as it stands
BOUNDARY = frozenset({"Input", "Output"})

Signature: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Group:
    """Nodes and groups that belong together. `repeat` is how many alike ones it holds, or 0."""

    name: str
    path: str
    items: list[int | Group] = field(default_factory=lambda: list[int | Group]())
    repeat: int = 0

    @property
    def first(self) -> int:
        """The least node in it, which is where it stands among others."""
        item = self.items[0]
        return item if isinstance(item, int) else item.first

    @property
    def size(self) -> int:
        return sum(1 if isinstance(item, int) else item.size for item in self.items)


def group_tree(view: View) -> Group:
    """The whole as a group, with groups in it. A list is none: its order is what it tells."""
    if not view.edges():
        return Group("", "", list(range(len(view.nodes))))
    scopes = [scope_of(node) for node in view.nodes]
    if not any(scopes):
        return _by_repeats(view.nodes)
    root = Group("", "")
    known: dict[tuple[str, ...], Group] = {(): root}
    for index, scope in enumerate(scopes):
        _group(known, scope).items.append(index)
    _simplify(root)
    _fold_repeats(root, view.nodes)
    return root


def scope_of(node: ViewNode) -> tuple[str, ...]:
    """The modules around a node: what it says itself, or what stands before the last slash of its name."""
    if {node.op} <= BOUNDARY:
        return ()
    if node.scope:
        return tuple(part for part in node.scope.split("/") if part)
    parts = [part for part in node.name.split(";")[0].split("/") if part]
    return tuple(parts[:-1])


def _group(known: dict[tuple[str, ...], Group], scope: tuple[str, ...]) -> Group:
    """The group of a path; those around it are made with it, in the order of their first nodes."""
    for length in range(1, len(scope) + 1):
        path = scope[:length]
        if path not in known:
            known[path] = Group(path[-1], "/".join(path))
            known[path[:-1]].items.append(known[path])
    return known[scope]


def _simplify(group: Group) -> None:
    """A group of a single node is that node; one that holds but a group is that one, under both names."""
    kept: list[int | Group] = []
    for item in group.items:
        if isinstance(item, int):
            kept.append(item)
            continue
        _simplify(item)
        if len(item.items) > 1:
            kept.append(item)
            continue
        only = item.items[0]
        if isinstance(only, Group):
            only.name = f"{item.name}/{only.name}"
        kept.append(only)
    group.items = kept


def _fold_repeats(group: Group, nodes: Sequence[ViewNode]) -> Signature:
    """Neighbours that hold the same ops become one group; gives what this group holds."""
    signatures: list[Signature] = [
        (nodes[item].op,) if isinstance(item, int) else _fold_repeats(item, nodes) for item in group.items
    ]
    folded: list[int | Group] = []
    start = 0
    while start < len(group.items):
        end = start + 1
        while end < len(group.items) and signatures[end] == signatures[start]:
            end += 1
        run = [item for item in group.items[start:end] if isinstance(item, Group)]
        if len(run) == end - start >= LEAST_REPEATS and len(run) < len(group.items):
            folded.append(_repeated(run, group.path))
        else:
            folded += group.items[start:end]
        start = end
    group.items = folded
    return ("group", *signatures)


def _repeated(run: Sequence[Group], path: str) -> Group:
    name = f"{run[0].name} to {run[-1].name}"
    return Group(name, f"{path}/{name}".strip("/"), list(run), len(run))


def _by_repeats(nodes: Sequence[ViewNode]) -> Group:
    """Blocks that follow one another with the same ops, in graphs whose names have no structure."""
    root = Group("", "")
    repeats = find_repeats([node.op for node in nodes]) if len(nodes) >= LEAST_NODES else []
    at = 0
    for number, repeat in enumerate(repeats, 1):
        root.items += range(at, repeat.start)
        root.items.append(_blocks(repeat, number))
        at = repeat.end
    root.items += range(at, len(nodes))
    return root


def _blocks(repeat: Repeat, number: int) -> Group:
    outer = Group(f"block {number}", f"block {number}", repeat=repeat.times)
    for turn in range(repeat.times):
        start = repeat.start + turn * repeat.length
        name = f"block {number}.{turn + 1}"
        outer.items.append(Group(name, f"{outer.path}/{name}", list(range(start, start + repeat.length))))
    return outer


def all_groups(root: Group) -> Iterator[Group]:
    """Every group, a group before those in it."""
    yield root
    for item in root.items:
        if isinstance(item, Group):
            yield from all_groups(item)
