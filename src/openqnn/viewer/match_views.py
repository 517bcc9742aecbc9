"""Which node of one view is which of another, and what differs between them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from openqnn.viewer.group_tree import scope_of
from openqnn.viewer.view import View, ViewNode, ViewTensor

ADDED = "added"
REMOVED = "removed"
CHANGED = "changed"
COMPILED = "Compiled"
SOURCES = ("ONNX", "TFLite", "SavedModel", "TensorFlow graph", "PyTorch program", "Caffe")
"""Kinds of views of a model as its framework wrote it: their attributes are not QNN's parameters."""


def match_views(first: View, second: View) -> dict[str, Any]:
    """Pairs of node numbers, and for each side the nodes that differ with the reasons. Graphs of one file are
    different ones, which nobody compares."""
    pairs = _pairs(first.nodes, second.nodes)
    found: dict[str, Any] = {"pairs": pairs, "links": _links(first, second, pairs)}
    if first.file and first.file == second.file:
        return found | {"left": {}, "right": {}, "one_file": True}
    changed = _changed(first, second, pairs)
    left = {a: [CHANGED, *changed[a, b]] for a, b in pairs if (a, b) in changed}
    right = {b: [CHANGED, *changed[a, b]] for a, b in pairs if (a, b) in changed}
    if COMPILED not in {node.op for node in (*first.nodes, *second.nodes)}:
        # where one side is compiled, that all nodes are gone is no difference to tell
        here, there = {a for a, _ in pairs}, {b for _, b in pairs}
        left |= {index: [REMOVED] for index in range(len(first.nodes)) if index not in here}
        right |= {index: [ADDED] for index in range(len(second.nodes)) if index not in there}
    return found | {"left": left, "right": right}


def _changed(first: View, second: View, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], list[str]]:
    """What differs between the nodes of each pair that is not alike."""
    ours, theirs = (view.kind if view.kind in SOURCES else "" for view in (first, second))
    told = {(a, b): _changes(first.nodes[a], second.nodes[b], ours == theirs) for a, b in pairs}
    return {pair: changes for pair, changes in told.items() if changes}


def _links(first: View, second: View, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where to look for nodes without a partner: those of one source beside each other, and a node that
    became part of another one at that one."""
    known = {key: index for index, node in enumerate(first.nodes) for key in node.keys}
    matched = {b for _, b in pairs}
    found = [
        (known[key], index)
        for index, node in enumerate(second.nodes)
        if index not in matched
        for key in node.keys[-1:]
        if key in known
    ]
    partners = dict(pairs) | dict(found)
    found += _compiled_away(first, second, partners)
    readers = {a: b for a, b, _ in reversed(first.edges())}
    for index in range(len(first.nodes) - 1, -1, -1):
        other = partners.get(readers.get(index, -1))
        if index not in partners and other is not None:
            partners[index] = other
            found.append((index, other))
    return found


def _compiled_away(first: View, second: View, partners: Mapping[int, int]) -> list[tuple[int, int]]:
    """The nodes of a graph beside the one that it was compiled to: they are all in that."""
    kinds = [[node.op for node in view.nodes] for view in (first, second)]
    ends = [[i for i, kind in enumerate(each) if kind == COMPILED] for each in kinds]
    if ends[1] and not ends[0]:
        return [(index, ends[1][0]) for index in range(len(first.nodes)) if index not in partners]
    if ends[0] and not ends[1]:
        taken = set(partners.values())
        return [(ends[0][0], index) for index in range(len(second.nodes)) if index not in taken]
    return []


def with_scopes(views: Sequence[View]) -> list[View]:
    """Views whose nodes tell nothing of modules take them from the view beside them that does."""
    found: list[View] = []
    telling: View | None = None
    for view in views:
        if any(scope_of(node) for node in view.nodes):
            telling = view
        elif telling is not None:
            view = _scoped_like(view, telling)
        found.append(view)
    return found


def _scoped_like(view: View, telling: View) -> View:
    scopes = {key: "/".join(scope_of(node)) for node in telling.nodes for key in node.keys}
    nodes = [
        replace(node, scope=next((scopes[key] for key in node.keys if key in scopes), ""))
        for node in view.nodes
    ]
    return replace(view, nodes=tuple(nodes))


def _pairs(first: Sequence[ViewNode], second: Sequence[ViewNode]) -> list[tuple[int, int]]:
    """Nodes are matched by the names of their results, then by their own name, then by their source."""
    known: dict[str, int] = {}
    for index, node in enumerate(first):
        for key in node.keys:
            known.setdefault(key, index)
    found: dict[int, int] = {}
    taken: set[int] = set()
    for keys_of in (_result_names, _own_name, _all_keys):
        for index in (i for i in range(len(second)) if i not in found):
            match = _free(keys_of(second[index]), known, taken)
            if match is not None:
                taken.add(match)
                found[index] = match
    return [(match, index) for index, match in sorted(found.items())]


def _free(keys: Sequence[str], known: Mapping[str, int], taken: Container[int]) -> int | None:
    """The node that the first of the keys leads to which none has taken."""
    return next((known[key] for key in keys if key in known and known[key] not in taken), None)


def _result_names(node: ViewNode) -> tuple[str, ...]:
    names = {tensor.name for tensor in node.outputs}
    return tuple(key for key in node.keys if key in names)


def _own_name(node: ViewNode) -> tuple[str, ...]:
    return tuple(key for key in node.keys if key == node.name)


def _all_keys(node: ViewNode) -> tuple[str, ...]:
    return node.keys


def _changes(first: ViewNode, second: ViewNode, alike: bool) -> list[str]:
    """What differs; between a source and its QNN graph neither other names for ops nor another order of
    axes."""
    found: list[str] = []
    if alike and first.op != second.op:
        found.append(f"op: {first.op} -> {second.op}")
    elif alike:
        found += _param_changes(first.params, second.params)
    for a, b in zip(first.outputs, second.outputs, strict=False):
        if alike or not _turned(a, b):
            found += _tensor_changes(a, b)
    return found


def _turned(first: ViewTensor, second: ViewTensor) -> bool:
    """Whether only the order of axes differs, or the shape is open on one side."""
    if first.shape is None or second.shape is None:
        return first.dtype == second.dtype
    settled = all(isinstance(size, int) and size > 0 for size in first.shape)
    same = sorted(map(str, first.shape)) == sorted(map(str, second.shape))
    return first.dtype == second.dtype and (same or not settled)


def _param_changes(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*first, *second}):
        before = first.get(name, "-")
        after = second.get(name, "-")
        if before != after:
            yield f"{name}: {before} -> {after}"


def _tensor_changes(first: ViewTensor, second: ViewTensor) -> Iterator[str]:
    """What is said of a tensor on both sides, and differs."""
    for what in ("dtype", "shape", "encoding"):
        before = getattr(first, what)
        after = getattr(second, what)
        if before and after and before != after:
            yield f"{what} of {second.name}: {before} -> {after}"
