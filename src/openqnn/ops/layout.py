"""What becomes of a node when its data is stored with permuted axes: derived from the op's declaration.

Permutations are numpy's: `stored = natural.transpose(perm)`, so stored axis i is natural axis perm[i].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from openqnn.ir import Node, ParamValue, Shape
from openqnn.ops.build import schema_of
from openqnn.ops.schema import Axis, Moves, Param
from openqnn.ops.shapes import MOVED_LAST

Perm: TypeAlias = tuple[int, ...]


def identity(rank: int) -> Perm:
    return tuple(range(rank))


def inverse(perm: Perm) -> Perm:
    return tuple(perm.index(i) for i in range(len(perm)))


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
    return None


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


def permutation_of(node: Node) -> Perm | None:
    """The permutation that a pure transposition performs, None for every other op."""
    return node.ints("perm") if "perm" in node.params else None
