"""What becomes of a node when its data is stored with permuted axes: derived from the op's declaration.

Permutations are numpy's: `stored = natural.transpose(perm)`, so stored axis i is natural axis perm[i].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import TypeAlias

from openqnn.ir import Node, ParamValue, Shape
from openqnn.ops.builder import schema_of
from openqnn.ops.schema import Axis, Moves, Param, Role
from openqnn.ops.shape_rules import MOVED_LAST

Perm: TypeAlias = tuple[int, ...]


@cache
def identity(rank: int) -> Perm:
    return tuple(range(rank))


@cache
def inverse(perm: Perm) -> Perm:
    return tuple(perm.index(i) for i in range(len(perm)))


@lru_cache(maxsize=4096)
def compose(first: Perm, then: Perm) -> Perm:
    """The permutation that equals transposing by `first` and the result by `then`."""
    return tuple(first[i] for i in then)


def permuted(shape: Shape, perm: Perm) -> Shape:
    return tuple(shape[i] for i in perm)


@dataclass(frozen=True, slots=True)
class Moved:
    """Parameters and the permutation of every output, given that of the data inputs."""

    params: dict[str, ParamValue]
    out_perm: Perm


def move(node: Node, perm: Perm) -> Moved | None:
    """The node on data stored as `perm`, or None when it must see its data as declared."""
    schema = schema_of(node)
    moves = schema.moves
    if perm == identity(len(perm)):
        return Moved(node.params, identity(node.out.rank))
    if schema.can_move is not None and not schema.can_move(node, perm):
        return None
    if moves is Moves.ELEMENTWISE:
        return Moved(node.params, perm) if node.out.rank == len(perm) else None
    if moves is Moves.AXES:
        return _move_axes(node, perm)
    if moves is Moves.VIEW:
        out_perm = move_view(node.x(0).shape, node.out.shape, perm)
        return None if out_perm is None else Moved(node.params, out_perm)
    return None


def travels(node: Node, index: int) -> bool:
    """Whether an operand is data that is permuted along with the output."""
    schema, value = schema_of(node), node.inputs[index]
    if schema.moves is Moves.ELEMENTWISE:
        return True
    if schema.moves is Moves.VIEW:
        return index == 0
    return (
        schema.moves is Moves.AXES
        and schema.operand(index).role is Role.ACTIVATION
        and value is not None
        and value.rank == node.x(0).rank
    )


# -- views ------------------------------------------------------------------------------------------------


def long_axes(shape: Shape) -> list[int]:
    """The axes that order matters for: those of size 1 can stand anywhere."""
    return [i for i, d in enumerate(shape) if d != 1]


def is_view(shape: Shape, perm: Perm) -> bool:
    """Whether transposing data of that shape moves nothing in memory, so that a reshape does it too."""
    moving = [a for a in perm if shape[a] != 1]
    return moving == sorted(moving)


def _runs(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The shortest runs of axes that a reshape turns into each other, axes of size 1 left out."""
    if 0 in before:
        return None
    sources, targets = long_axes(before), long_axes(after)
    found: list[tuple[list[int], list[int]]] = []
    while sources:
        left, right = [sources.pop(0)], [targets.pop(0)]
        while (a := prod(before[i] for i in left)) != (b := prod(after[i] for i in right)):
            (left if a < b else right).append((sources if a < b else targets).pop(0))
        found.append((left, right))
    return found


def move_view(before: Shape, after: Shape, perm: Perm) -> Perm | None:
    """The order of a reshape's output when its data is stored as `perm`: whole runs move, others cannot."""
    runs = _runs(before, after)
    if runs is None:
        return None
    by_first = {left[0]: (left, right) for left, right in runs}
    stored, order = [a for a in perm if before[a] != 1], list[int]()
    while stored:
        left, right = by_first.get(stored[0], ([], []))
        if not left or stored[: len(left)] != left:
            return None
        stored, order = stored[len(left) :], order + right
    return _with_short_axes(after, order, perm)


def _with_short_axes(shape: Shape, order: list[int], like: Perm) -> Perm:
    """A full permutation of `order` and the axes of size 1, preferably one that occurs elsewhere too."""
    rank = len(shape)
    natural = identity(rank)
    usual = [like] if len(like) == rank else []
    if like != identity(len(like)) and rank > 2:
        usual += [(0, *natural[2:], 1), (0, rank - 1, *natural[1:-1])]  # channel last, channel first
    for perm in (*usual, natural):
        if [a for a in perm if shape[a] != 1] == order:
            return perm
    for axis in natural:
        if shape[axis] == 1:
            order.insert(order.index(axis - 1) + 1 if axis else 0, axis)
    return tuple(order)


def _move_axes(node: Node, perm: Perm) -> Moved | None:
    schema = schema_of(node)
    params = {p.name: _follow(p, node.params[p.name], perm) for p in schema.params if p.name in node.params}
    if schema.on_last:
        params[MOVED_LAST] = perm.index(len(perm) - 1)
    if node.out.rank == len(perm):
        return Moved(params, perm)
    dropped = _dropped_axes(node)
    if node.out.rank != len(perm) - len(dropped):
        return None
    kept = [a for a in range(len(perm)) if a not in dropped]
    return Moved(params, tuple(kept.index(a) for a in perm if a in kept))


def _dropped_axes(node: Node) -> set[int]:
    """The axes that a reduction takes away."""
    found: set[int] = set()
    for param in schema_of(node).params:
        if param.name not in node.params:
            continue
        if param.axis is Axis.ONE:
            found.add(node.int(param.name))
        elif param.axis is Axis.MANY:
            found.update(node.ints(param.name))
    return found


def _follow(param: Param, value: ParamValue, perm: Perm) -> ParamValue:
    """An axis parameter after the data moved."""
    if param.axis is Axis.ONE and isinstance(value, int):
        return perm.index(value)
    if isinstance(value, tuple):
        if param.axis is Axis.MANY:
            return tuple(sorted(perm.index(a) for a in value if isinstance(a, int)))
        if param.axis is Axis.EACH:
            return tuple(value[i] for i in perm)
    return value


def is_reshape(node: Node) -> bool:
    """Whether a node gives its data another shape and says no more than that."""
    schema = schema_of(node)
    return schema.moves is Moves.VIEW and not schema.params


def permutation_of(node: Node) -> Perm | None:
    """The permutation that a pure transposition performs, None for every other op."""
    return node.ints("perm") if "perm" in node.params else None
