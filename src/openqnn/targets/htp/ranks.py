"""Ranks: HTP's tensors have five axes at most, many ops take four. More are merged where the op allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod

from openqnn.ir import Graph, Node, Shape, Value
from openqnn.ops import Builder, schema_of
from openqnn.ops.layout import is_reshape
from openqnn.ops.schema import Axis, Moves
from openqnn.passes.edit import aligned_shape, sweep
from openqnn.targets.htp.rules import MOST, Instead, Refusal, again, taken


def fit_rank(node: Node, b: Builder) -> Instead:
    """Runs a node on fewer axes, between two reshapes that `merge_views` joins with their neighbours."""
    schema = schema_of(node)
    if schema.moves is Moves.VIEW:  # the others are limited in rank, and in types too
        return None if is_reshape(node) else b.reshape(node.x(0), node.out.shape)
    if not has_too_many_axes(node):
        return None
    if schema.moves is Moves.ELEMENTWISE:
        return _elementwise(node, b)
    axis = [p.name for p in schema.params if p.axis is Axis.ONE]
    if len(axis) == 1 and len(node.outputs) == 1:
        return _along_axis(node, b, axis[0])
    return _along_axes(node, b) if "axes" in node.params else None


def has_too_many_axes(node: Node) -> bool:
    values = (*filter(None, node.inputs), *node.outputs)
    rank = max((v.rank for v in values), default=0)
    # int32 and bool of five axes pass the validator, but a graph of several such nodes fails in finalize.
    whole = schema_of(node).moves is Moves.ELEMENTWISE and any(not v.dtype.is_float for v in values)
    return rank > (4 if whole else taken(node).axes)


def refuse_rank(node: Node) -> None:
    for value in (*filter(None, node.inputs), *node.outputs):
        if value.rank > MOST:
            raise Refusal(
                f"'{value.name}' has {value.rank} axes; HTP's tensors have {MOST} at most",
                "merge axes in the source model",
            )


def view(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    return value if value.shape == tuple(shape) else b.reshape(value, shape)


# -- by kind of op -------------------------------------------------------------------------------------------


def _neighbours(axes: Sequence[int], kind: Callable[[int], object]) -> list[list[int]]:
    """The axes in groups of neighbours of one kind."""
    return [list(group) for _, group in groupby(axes, kind)]


def merged(shapes: Sequence[Shape]) -> list[Shape]:
    """Shapes that broadcast alike on as few axes as possible: neighbours merge where all operands agree."""
    rank = max(map(len, shapes))
    full = [aligned_shape(s, rank) for s in shapes]
    out = tuple(max(s[i] for s in full) for i in range(rank))
    spread = lambda axis: [s[axis] == out[axis] for s in full]
    groups = _neighbours([i for i in range(rank) if out[i] != 1], spread)
    return [tuple(prod(s[i] for i in g) for g in groups) or (1,) for s in full]


def _elementwise(node: Node, b: Builder) -> Instead:
    values = [v for v in node.inputs if v is not None]
    shapes = merged([v.shape for v in (*values, node.out)])
    if len(shapes[-1]) > taken(node).axes:
        return None
    done = again(b, node, *(view(b, v, s) for v, s in zip(values, shapes, strict=False)), shape=shapes[-1])
    return view(b, done, node.out.shape)


def _along_axis(node: Node, b: Builder, name: str) -> Instead:
    """All that lies before and behind the axis as one axis each; inputs beyond the first must be as long."""
    at, rank = node.int(name), node.x(0).rank
    if any(v is not None and v.rank not in (0, rank) for v in node.inputs[1:]):
        return None

    def three(shape: Shape) -> Shape:
        return prod(shape[:at]), shape[at], prod(shape[at + 1 :])

    inputs = [None if v is None else view(b, v, three(v.shape)) for v in node.inputs]
    keeps = node.out.rank == rank
    target = three(node.out.shape) if keeps else (prod(node.out.shape[:at]), prod(node.out.shape[at:]))
    return view(b, again(b, node, *inputs, shape=target, **{name: 1}), node.out.shape)


def _along_axes(node: Node, b: Builder) -> Instead:
    """A reduction: neighbours that are both folded, or both kept, merge."""
    x, axes = node.x(0), set(node.ints("axes"))
    if "keep_dims" not in node.params or len(node.outputs) != 1:
        return None
    groups = _neighbours([i for i in range(x.rank) if x.shape[i] != 1], axes.__contains__)
    if not any(g[0] in axes for g in groups) or len(groups) > taken(node).axes:
        return None
    low = view(b, x, tuple(prod(x.shape[i] for i in g) for g in groups))
    folded = tuple(k for k, g in enumerate(groups) if g[0] in axes)
    return view(b, again(b, node, low, axes=folded, keep_dims=True), node.out.shape)


def transpose(b: Builder, x: Value, perm: Sequence[int]) -> Value:
    """A transposition of any rank: axes of size 1 left out, neighbours that stay together merged."""
    target = tuple(x.shape[a] for a in perm)
    order = [a for a in perm if x.shape[a] != 1]
    runs: list[list[int]] = []
    rank_of = {a: i for i, a in enumerate(sorted(order))}
    for a in order:
        if runs and rank_of[a] == rank_of[runs[-1][-1]] + 1:
            runs[-1].append(a)
        else:
            runs.append([a])
    low = sorted(runs)
    shape = tuple(prod(x.shape[a] for a in run) for run in low)
    short = tuple(low.index(run) for run in runs)
    if len(short) <= 1:
        return view(b, x, target)
    if len(short) > MOST:
        return view(b, _in_moves(b, view(b, x, shape), short), target)
    return view(b, b.transpose(view(b, x, shape), short), target)


def _in_moves(b: Builder, x: Value, perm: tuple[int, ...]) -> Value:
    """One axis after the other to its place: each move sees (before, passed over, moved, behind)."""
    at = list(range(len(perm)))
    shape = list(x.shape)
    for place, axis in enumerate(perm):
        here = at.index(axis)
        if here == place:
            continue
        low = (prod(shape[:place]), prod(shape[place:here]), shape[here], prod(shape[here + 1 :]))
        x = b.transpose(view(b, x, low), (0, 2, 1, 3))
        at.insert(place, at.pop(here))
        shape.insert(place, shape.pop(here))
    return x


# -- joining reshapes ----------------------------------------------------------------------------------------


def merge_views(graph: Graph) -> None:
    """A reshape of a reshape is one reshape: what had too many axes in between is gone."""
    for node in list(graph.nodes):
        before = node.x(0).producer if is_reshape(node) and node.inputs else None
        while before is not None and is_reshape(before):
            graph.set_input(node, 0, before.x(0))
            sweep(graph, [before])
            before = node.x(0).producer
    for node in list(graph.nodes):
        same = is_reshape(node) and node.x(0).shape == node.out.shape
        if same and not graph.is_output(node.out):
            graph.replace_uses(node.out, node.x(0))
            sweep(graph, [node])
