"""Families: several static graphs of one dynamic model, in one artifact with one copy of the weights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from openqnn.api.convert import Source, convert
from openqnn.api.files import holds_graph, load_all, save_graphs
from openqnn.errors import UsageError
from openqnn.formats.shapes_file import ShapesFile, read_shapes, shapes_of
from openqnn.ir import Encoding, Graph, Value

# What exporters call the output that becomes this input in the next step.
_STEPS: Final = (
    ("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"),
    ("past", "new"), ("_in", "_out"), ("", "_out"), ("", "_new"),
)  # fmt: skip


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
            check_states(self.graphs, {**found_state(self.graphs), **self.state})

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


def found_state(graphs: Sequence[Graph]) -> dict[str, str]:
    """Pairs of input and output that every graph has, by the names that exporters give them."""
    inputs = set.intersection(*({v.name for v in graph.inputs} for graph in graphs))
    outputs = set.intersection(*({v.name for v in graph.outputs} for graph in graphs))
    found: dict[str, str] = {}
    for name in sorted(inputs):
        named = (name.replace(old, new) if old else name + new for old, new in _STEPS if old in name)
        match = next((other for other in named if other != name and other in outputs), None)
        if match is not None:
            found[name] = match
    return found


def check_states(graphs: Sequence[Graph], state: Mapping[str, str]) -> None:
    """UsageError where a state tensor has one encoding here and another one there."""
    for into, out in state.items():
        places = [(g, v) for g in graphs for v in (*g.inputs, *g.outputs) if v.name in (into, out)]
        kinds = {_stored(graph, value) for graph, value in places}
        if len(kinds) > 1:
            told = "; ".join(f"{g.name}: '{v.name}' {_told(g, v)}" for g, v in places)
            raise UsageError(
                f"the graphs share the state '{into}', and store it differently: {told}",
                hint="quantize the others with the encodings of the first: `openqnn encodings` writes them,"
                " --quantization_overrides reads them",
            )


def _stored(graph: Graph, value: Value) -> tuple[Any, ...]:
    return value.dtype, _encoding(graph, value)


def _encoding(graph: Graph, value: Value) -> Encoding | None:
    if value.encoding is not None:
        return value.encoding
    said = graph.given.get(value.name)
    return getattr(said, "encoding", None)


def _told(graph: Graph, value: Value) -> str:
    encoding = _encoding(graph, value)
    return value.dtype.label + ("" if encoding is None else f" ({encoding})")
