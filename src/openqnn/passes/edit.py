"""Edits that most passes make, so that names, sources and links survive every one of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from openqnn.ir import Array, Graph, Node, Shape, Value
from openqnn.ops import Builder, schema_of


def alive(node: Node) -> bool:
    """Whether a node is still in its graph: passes walk over a list made before their changes."""
    return node.outputs[0].producer is node


def builder_at(graph: Graph, node: Node) -> Builder:
    """Builds what will stand in for `node`: in its place, from its source."""
    builder = Builder(graph, node.source, before=node)
    builder.stem = node.out.name
    return builder


def bypass(graph: Graph, old: Value, new: Value) -> str:
    """`new`, which is already there, takes the place of `old`. Gives the reason when it cannot."""
    if graph.is_output(old):
        if new.is_constant or new.producer is None:
            kind = "constant" if new.is_constant else "graph input"
            return f"output '{old.name}' needs a node: '{new.name}' is a {kind}"
        if graph.is_output(new):
            return f"both '{old.name}' and '{new.name}' are graph outputs"
    graph.replace(old, new)
    return ""


def supplant(graph: Graph, old: Value, new: Value) -> None:
    """`new`, made for the purpose, takes place and name of `old`; what only `old` needed goes away."""
    dying = old.producer
    if graph.is_output(old):
        graph.replace(old, new)
    else:
        graph.replace_uses(old, new)
        old.name, new.name = new.name, old.name
    if dying is not None:
        if new.producer is not None and dying.out is old:
            dying.name, new.producer.name = new.producer.name, dying.name
        sweep(graph, [dying])


def sweep(graph: Graph, nodes: Iterable[Node]) -> int:
    """Removes those nodes that nothing reads, and then what only they read."""
    removed, waiting = 0, list(nodes)
    while waiting:
        node = waiting.pop()
        if not alive(node) or any(v.users or graph.is_output(v) for v in node.outputs):
            continue
        waiting += [v.producer for v in node.inputs if v is not None and v.producer is not None]
        graph.remove(node)
        removed += 1
    return removed


def is_quantized(*values: Value | None) -> bool:
    return any(v is not None and (v.encoding is not None or v.dtype.is_fixed) for v in values)


def private(graph: Graph, value: Value, users: Sequence[Node]) -> str:
    """Why a value cannot disappear with those users, the last of which comes first; empty when it can."""
    if graph.is_output(value):
        return f"'{value.name}' is a graph output"
    other = next((u for u in value.users if u not in users), None)
    if other is not None:
        return f"'{value.name}' is also used by {other.where}"
    if _loses_encoding(graph, value, users[0].out):
        return f"'{value.name}' has an encoding of the model's own, and '{users[0].out.name}' has none"
    return ""


def _loses_encoding(graph: Graph, value: Value, last: Value) -> bool:
    """Whether an encoding goes with a tensor: not if what it was made from by moving values has the same."""
    said, node = graph.given.get(value.name), value.producer
    if said is None or last.name in graph.given:
        return False
    moved = node is not None and schema_of(node).keeps_values
    sources = [v for v in node.inputs if v is not None] if node is not None and moved else []
    return all(graph.given.get(v.name) != said for v in sources)


def data_of(value: Value | None) -> Array:
    assert value is not None and value.data is not None
    return value.data


def scalar(value: Value | None) -> float | None:
    """The number that a constant holds, when it is a single one."""
    if value is None or value.data is None or value.data.size != 1:
        return None
    return float(value.data.reshape(-1)[0])


def aligned_shape(shape: Shape, rank: int) -> Shape:
    """A shape with leading ones, as broadcasting sees it."""
    return (1,) * (rank - len(shape)) + shape


def vector_along(value: Value, shape: Shape, axis: int) -> Array | None:
    """A constant that varies along one axis at most, as one number for each position of that axis."""
    if value.data is None or value.rank > len(shape):
        return None
    full = aligned_shape(value.shape, len(shape))
    if any(d != 1 for i, d in enumerate(full) if i != axis) or full[axis] not in (1, shape[axis]):
        return None
    return np.broadcast_to(value.data.reshape(-1), (shape[axis],))
