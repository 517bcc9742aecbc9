"""What the viewer shows, as records that become JSON: a `View` is one pane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ViewTensor:
    """A tensor at a node: `origin` says where its encoding came from, `statistics` what a constant holds."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] = ()
    encoding: str = ""
    origin: str = ""
    statistics: dict[str, Any] | None = None

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}
        if self.encoding:
            found["encoding"] = self.encoding
        if self.origin:
            found["origin"] = self.origin
        if self.statistics is not None:
            found["statistics"] = self.statistics
        return found


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node or a boundary of the graph. `keys` are the names by which other panes know it."""

    name: str
    op: str
    source: str = ""
    params: dict[str, str] = field(default_factory=dict[str, str])
    inputs: tuple[ViewTensor, ...] = ()
    outputs: tuple[ViewTensor, ...] = ()
    keys: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "op": self.op,
            "source": self.source,
            "params": self.params,
            "inputs": [tensor.record() for tensor in self.inputs],
            "outputs": [tensor.record() for tensor in self.outputs],
            "keys": list(self.keys),
        }


@dataclass(frozen=True, slots=True)
class Overlay:
    """A number for some of the nodes, by name: MACs, bytes, errors, times."""

    title: str
    values: dict[str, float]
    unit: str = ""

    def record(self) -> dict[str, Any]:
        return {"title": self.title, "unit": self.unit, "values": self.values}


@dataclass(frozen=True, slots=True)
class View:
    """One graph of one file. `facts` are lines about the whole: totals, settings, library builds."""

    title: str
    kind: str
    nodes: tuple[ViewNode, ...]
    facts: dict[str, str] = field(default_factory=dict[str, str])
    overlays: tuple[Overlay, ...] = ()

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
