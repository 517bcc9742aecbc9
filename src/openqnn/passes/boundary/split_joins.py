"""Outputs that join several tensors: what they are made of, and a graph that gives the parts instead.

Detectors join boxes in pixels with scores from 0 to 1. In fixed point such an output has one step for all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from openqnn.errors import InputError, UsageError
from openqnn.ir import Graph, Node, Port, Value
from openqnn.ops import Builder, Kind, kind_of, schema_of
from openqnn.ops.layout import is_reshape, permutation_of
from openqnn.passes.explain import Explain
from openqnn.passes.merge_repeated import remove_dead_code


@dataclass(frozen=True, slots=True)
class Piece:
    """Some places along an axis of an output, and the tensor whose values they hold."""

    label: str
    start: int
    stop: int
    bounded: bool


@dataclass(frozen=True, slots=True)
class Join:
    """An output, the axis along which it is joined, and the pieces in their order."""

    output: str
    axis: int
    pieces: tuple[Piece, ...]

    @property
    def mixed(self) -> bool:
        """Whether values of a known range, such as scores, are joined with others, such as boxes."""
        return len({piece.bounded for piece in self.pieces}) > 1


def joins_of(graph: Graph) -> list[Join]:
    """The outputs that join several tensors, each along the axis where their kinds differ if there is one."""
    found: list[Join] = []
    for value in graph.outputs:
        joins = [Join(value.name, a, tuple(p)) for a in range(value.rank) if len(p := _pieces(value, a)) > 1]
        found += sorted(joins, key=lambda j: not j.mixed)[:1]
    return found


def split_joins(graph: Graph, names: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Ends the graph before its joins: an output of boxes and scores becomes two.

    Those that join values of a known range with others are split between them; outputs in `names` are split
    in any case. A part that was a tensor of its own keeps that name, another is NAME_0, NAME_1 and so on.
    Gives the new outputs of each one that is gone.
    """
    unknown = [name for name in names if name not in {v.name for v in graph.outputs}]
    if unknown:
        known = ", ".join(f"'{v.name}'" for v in graph.outputs)
        raise InputError(f"the graph has no output '{unknown[0]}'", hint=f"its outputs: {known}")
    made: dict[str, tuple[str, ...]] = {}
    for join in joins_of(graph):
        if join.output in names or (join.mixed and not names):
            made[join.output] = _split(graph, join)
    missing = [name for name in names if name not in made]
    if missing:
        raise UsageError(f"output '{missing[0]}' is not what several tensors are joined to last")
    remove_dead_code(graph, Explain())
    return made


def _split(graph: Graph, join: Join) -> tuple[str, ...]:
    old = next(v for v in graph.outputs if v.name == join.output)
    builder = Builder(graph, old.producer.source if old.producer else f"output {old.name}")
    places = _kinds(join) if join.mixed else [(p.start, p.stop) for p in join.pieces]
    builder.stem = old.name
    known = {v.name for v in graph.values()}
    parts = [_part(builder, old, join.axis, *place) for place in places]
    new = [_own(builder, part) for part in parts]
    _give(graph, old, new, known)
    return tuple(value.name for value in new)


def _own(b: Builder, part: Value) -> Value:
    """What is an input or an output already is given once more."""
    taken = part.producer is None or b.graph.is_output(part)
    return b.reshape(part, part.shape) if taken else part


def _kinds(join: Join) -> list[tuple[int, int]]:
    """Where pieces of one kind begin and end."""
    edges = [0, *(b.start for a, b in pairwise(join.pieces) if a.bounded != b.bounded), join.pieces[-1].stop]
    return list(pairwise(edges))


def _give(graph: Graph, old: Value, new: Sequence[Value], known: Collection[str]) -> None:
    """The new outputs take the place of the old one, in their order; what is `known` keeps its name."""
    port, place = graph.ports.pop(old.name), next(i for i, v in enumerate(graph.outputs) if v is old)
    for index, value in enumerate(new):
        if value.name not in known:
            value.name = graph.unique(f"{old.name}_{index}")
        graph.ports[value.name] = Port(port.dtype, value.shape)
    graph.outputs[place : place + 1] = new


def is_bounded(value: Value) -> bool:
    """Whether the values have a range that is known, as a Sigmoid and a Softmax have."""
    node = value.producer
    if node is None:
        return False
    moved, schema = _moved(node), schema_of(node)
    return all(map(is_bounded, moved)) if moved else schema.output_range is not None and not schema.clips


def _moved(node: Node) -> list[Value]:
    """The tensors whose values a node hands on."""
    data = [v for v in node.inputs if v is not None and not v.is_constant]
    return data if schema_of(node).hands_on(node) else []


# -- through what only moves values --------------------------------------------------------------------------


def _pieces(value: Value, axis: int) -> list[Piece]:
    """What lies along an axis of a tensor."""
    node, size = value.producer, value.shape[axis]
    whole = [Piece(value.name, 0, size, is_bounded(value))]
    if node is None:
        return whole
    if kind_of(node) is Kind.JOIN:
        parts = [v for v in node.inputs if v is not None]
        if node.int("axis") % value.rank == axis:
            return _behind_each_other([_pieces(v, axis) for v in parts])
        return _common([_pieces(v, axis) for v in parts]) or whole
    below = _below(node, axis)
    return whole if below is None else _pieces(*below)


def _behind_each_other(lists: Sequence[Sequence[Piece]]) -> list[Piece]:
    found: list[Piece] = []
    for pieces in lists:
        start = found[-1].stop if found else 0
        found += [Piece(p.label, start + p.start, start + p.stop, p.bounded) for p in pieces]
    return found


def _common(lists: Sequence[list[Piece]]) -> list[Piece]:
    """The pieces where all tensors are cut alike, as the scales of a detector are."""
    same = {tuple((p.start, p.stop, p.bounded) for p in pieces) for pieces in lists}
    return lists[0] if len(same) == 1 else []


def _below(node: Node, axis: int) -> tuple[Value, int] | None:
    """The tensor and the axis that an axis of a result is, through transpositions and reshapes."""
    turn = permutation_of(node)
    if turn is not None:
        return node.x(0), turn[axis]
    if not is_reshape(node):
        return None
    before, after = node.x(0).shape, node.out.shape
    for place, size in enumerate(before):
        if size == after[axis] and prod(before[place + 1 :]) == prod(after[axis + 1 :]):
            return node.x(0), place
    return None


def _part(b: Builder, value: Value, axis: int, start: int, stop: int) -> Value:
    """Some places along an axis, made of what was joined; what was one tensor is cut."""
    node = value.producer
    if (start, stop) == (0, value.shape[axis]):
        return value
    assert node is not None
    if kind_of(node) is Kind.JOIN:
        return _part_of_join(b, node, axis, start, stop)
    turn = permutation_of(node)
    if turn is not None:
        return b.transpose(_part(b, node.x(0), turn[axis], start, stop), turn)
    below = _below(node, axis)
    assert below is not None
    inner = _part(b, below[0], below[1], start, stop)
    shape = tuple(stop - start if i == axis else d for i, d in enumerate(value.shape))
    return b.reshape(inner, shape)


def _part_of_join(b: Builder, node: Node, axis: int, start: int, stop: int) -> Value:
    parts = [v for v in node.inputs if v is not None]
    along = node.int("axis") % node.out.rank
    if along != axis:
        return b.concat([_part(b, v, axis, start, stop) for v in parts], along)
    chosen: list[Value] = []
    place = 0
    for v in parts:
        low, high = max(start - place, 0), min(stop - place, v.shape[axis])
        if low < high:
            chosen.append(_part(b, v, axis, low, high))
        place += v.shape[axis]
    return chosen[0] if len(chosen) == 1 else b.concat(chosen, axis)
