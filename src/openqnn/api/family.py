"""Families: several static graphs of one dynamic model, in one artifact with one copy of the weights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from openqnn.api.convert import Source, convert
from openqnn.api.files import holds_graph, load_all, save_graphs
from openqnn.errors import UsageError
from openqnn.formats.shapes_file import ShapesFile, read_shapes, shapes_of
from openqnn.ir import Graph, Value
from openqnn.qnn.shared_states import Stored, check_alike, state_names


@dataclass(frozen=True, slots=True)
class Family:
    """Graphs of one model; `state` has of tensors that carry state the output by the input.

    UsageError where graphs that share a state tensor store it differently: what one writes, another reads.
    A graph alone may do as it likes.
    """

    graphs: tuple[Graph, ...]
    state: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        names = [graph.name for graph in self.graphs]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"a family has one or more graphs of different names, not {names}")
        if len(names) > 1:
            _check_states(self.graphs, {**_found_state(self.graphs), **self.state})

    def save(self, path: str | os.PathLike[str]) -> None:
        """One DLC with all graphs and each weight once; it appears whole or not at all."""
        save_graphs(self.graphs, path)


def convert_family(
    model: Source, shapes: str | os.PathLike[str] | Mapping[str, Any] | ShapesFile, **settings: Any
) -> Family:
    """The graphs that shapes.yaml, or its content, asks for; `settings` are those of `convert`."""
    asked = shapes if isinstance(shapes, ShapesFile) else _asked(shapes)
    graphs: list[Graph] = []
    for name, sizes in asked.graphs.items():
        graph = convert(model, **{**settings, **_merged(settings, sizes.settings())})
        graph.name = name
        graphs.append(graph)
    _check_named(asked.state, graphs)
    return Family(tuple(graphs), asked.state)


def graphs_of(path: str | os.PathLike[str]) -> tuple[Graph, ...]:
    """All graphs of a file, or the one of a model that is converted."""
    return tuple(load_all(path)) if holds_graph(path) else (convert(path),)


def _asked(shapes: str | os.PathLike[str] | Mapping[str, Any]) -> ShapesFile:
    return shapes_of(shapes) if isinstance(shapes, Mapping) else read_shapes(shapes)


def _merged(settings: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of all graphs, and what one of them says for itself."""
    found = {key: {**(settings.get(key) or {}), **own[key]} for key in ("input_shapes", "dims")}
    return {**found, "batch": settings.get("batch") if own["batch"] is None else own["batch"]}


def _check_named(state: Mapping[str, str], graphs: Sequence[Graph]) -> None:
    for graph in graphs:
        inputs, outputs = {v.name for v in graph.inputs}, {v.name for v in graph.outputs}
        for into, out in state.items():
            if into not in inputs or out not in outputs:
                missing = f"input '{into}'" if into not in inputs else f"output '{out}'"
                raise UsageError(f"state: graph '{graph.name}' has no {missing}")


# -- tensors that carry state --------------------------------------------------------------------------------


def _check_states(graphs: Sequence[Graph], state: Mapping[str, str]) -> None:
    check_alike(
        {
            into: [_stored(g, v) for g in graphs for v in (*g.inputs, *g.outputs) if v.name in (into, out)]
            for into, out in state.items()
        }
    )


def _found_state(graphs: Sequence[Graph]) -> dict[str, str]:
    inputs = [[v.name for v in graph.inputs] for graph in graphs]
    return state_names(inputs, [[v.name for v in graph.outputs] for graph in graphs])


def _stored(graph: Graph, value: Value) -> Stored:
    encoding = value.encoding or getattr(graph.given.get(value.name), "encoding", None)
    found = Stored(graph.name, value.name, value.dtype.label)
    return found if encoding is None else replace(found, scales=encoding.scale, offsets=encoding.offset)
