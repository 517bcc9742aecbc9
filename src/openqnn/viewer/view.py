"""What the viewer shows, as records that become JSON: a `View` is one pane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class ViewTensor:
    """A tensor at a node: `origin` says where its encoding came from, `statistics` what a constant holds. A
    shape that the file does not tell is None, which is not that of a single number.

    `weight` computes the statistics when they are asked for: a page that is served asks for them one by one.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None = None
    encoding: str = ""
    origin: str = ""
    statistics: dict[str, Any] | None = None
    weight: Callable[[], dict[str, Any]] | None = field(default=None, compare=False)

    def figures(self) -> dict[str, Any] | None:
        """The statistics of a constant, read now where they were not yet."""
        return self.weight() if self.statistics is None and self.weight is not None else self.statistics

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "dtype": self.dtype}
        if self.shape is not None:
            found["shape"] = list(self.shape)
        if self.encoding:
            found["encoding"] = self.encoding
        if self.origin:
            found["origin"] = self.origin
        if self.statistics is not None:
            found["statistics"] = self.statistics
        elif self.weight is not None:
            found["constant"] = True
        return found


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node or a boundary of the graph. `keys` are the names by which other panes know it.

    `scope` is the path of modules around it, as `encoder/layer.0`; without one, the name's slashes tell.
    `places` are lines of the program that made the model, the innermost last.
    """

    name: str
    op: str
    source: str = ""
    params: dict[str, str] = field(default_factory=dict[str, str])
    inputs: tuple[ViewTensor, ...] = ()
    outputs: tuple[ViewTensor, ...] = ()
    keys: tuple[str, ...] = ()
    scope: str = ""
    places: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "op": self.op,
            "source": self.source,
            "params": self.params,
            "inputs": [tensor.record() for tensor in self.inputs],
            "outputs": [tensor.record() for tensor in self.outputs],
            "keys": list(self.keys),
        }
        if self.places:
            found["places"] = list(self.places)
        return found


@dataclass(frozen=True, slots=True)
class Overlay:
    """A number for some of the nodes, by name: MACs, bytes, errors, times. `least_is_worst` is for those of
    which more is better; `labels` are words instead of numbers, and `notes` what is to be said of a node."""

    title: str
    values: dict[str, float]
    unit: str = ""
    least_is_worst: bool = False
    labels: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_about_something(self) -> bool:
        return bool(self.values or self.labels or self.notes)

    def renamed(self, names: Mapping[str, str]) -> Overlay:
        """With other names for the nodes; what is said of nodes without one is left out."""
        return replace(
            self,
            values={names[node]: value for node, value in self.values.items() if node in names},
            labels={names[node]: word for node, word in self.labels.items() if node in names},
            notes={names[node]: text for node, text in self.notes.items() if node in names},
        )

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = {"title": self.title, "unit": self.unit, "values": self.values}
        if self.least_is_worst:
            found["worst"] = "least"
        if self.labels:
            found["labels"] = self.labels
        if self.notes:
            found["notes"] = self.notes
        return found


@dataclass(frozen=True, slots=True)
class Mark:
    """What two runs of a network tell of a node: whether accuracy and performance differ, in lines."""

    kinds: tuple[str, ...]
    lines: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        return {"kinds": list(self.kinds), "lines": list(self.lines)}


@dataclass(frozen=True, slots=True)
class View:
    """One graph of one `file`. `facts` are lines about the whole: totals, settings, library builds."""

    title: str
    kind: str
    nodes: tuple[ViewNode, ...]
    facts: dict[str, str] = field(default_factory=dict[str, str])
    overlays: tuple[Overlay, ...] = ()
    marks: Mapping[str, Mark] = field(default_factory=dict[str, "Mark"])
    file: str = ""

    def mark_records(self) -> dict[int, dict[str, Any]]:
        """Marks by the numbers of nodes; a graph's output often has the name of the node that makes it."""
        nodes = ((i, node) for i, node in enumerate(self.nodes) if node.op not in ("Input", "Output"))
        numbered = ((i, self.marks.get(node.name)) for i, node in nodes)
        return {i: mark.record() for i, mark in numbered if mark is not None}

    def edges(self) -> list[tuple[int, int, str]]:
        """Pairs of node numbers with the name of the tensor between them."""
        makers: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            for tensor in node.outputs:
                makers.setdefault(tensor.name, index)
        found: list[tuple[int, int, str]] = []
        for index, node in enumerate(self.nodes):
            for tensor in node.inputs:
                maker = makers.get(tensor.name)
                if maker is not None and maker != index:
                    found.append((maker, index, tensor.name))
        return found
