"""Which node of one view is which of another, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openqnn.viewer.view import View, ViewNode, ViewTensor

ADDED = "added"
REMOVED = "removed"
CHANGED = "changed"
SOURCES = ("ONNX", "TFLite", "SavedModel", "TensorFlow graph", "PyTorch program", "Caffe")
"""Kinds of views of a model as its framework wrote it: their attributes are not QNN's parameters."""


def match_views(first: View, second: View) -> dict[str, Any]:
    """Pairs of node numbers, and for each side the nodes that differ with the reasons."""
    pairs = _pairs(first.nodes, second.nodes)
    ours, theirs = (view.kind if view.kind in SOURCES else "" for view in (first, second))
    alike = ours == theirs
    partners = {b: a for a, b in pairs}
    left: dict[int, list[str]] = {}
    right: dict[int, list[str]] = {}
    mine = {a for a, _ in pairs}
    for index in range(len(first.nodes)):
        if index not in mine:
            left[index] = [REMOVED]
    for index, node in enumerate(second.nodes):
        if index not in partners:
            right[index] = [ADDED]
            continue
        changes = _changes(first.nodes[partners[index]], node, alike)
        if changes:
            left[partners[index]] = [CHANGED, *changes]
            right[index] = [CHANGED, *changes]
    return {"pairs": pairs, "left": left, "right": right}


def _pairs(first: Sequence[ViewNode], second: Sequence[ViewNode]) -> list[tuple[int, int]]:
    """Nodes are matched by the names of their results, then by their own name, then by their source."""
    known: dict[str, int] = {}
    for index, node in enumerate(first):
        for key in node.keys:
            known.setdefault(key, index)
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    for index, node in enumerate(second):
        match = next((known[key] for key in node.keys if key in known and known[key] not in taken), None)
        if match is not None:
            taken.add(match)
            found.append((match, index))
    return found


def _changes(first: ViewNode, second: ViewNode, with_params: bool) -> list[str]:
    found: list[str] = []
    if first.op != second.op:
        found.append(f"op: {first.op} -> {second.op}")
    elif with_params:
        found += _param_changes(first.params, second.params)
    for a, b in zip(first.outputs, second.outputs, strict=False):
        found += _tensor_changes(a, b)
    return found


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
