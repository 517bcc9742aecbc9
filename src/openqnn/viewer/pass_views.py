"""The graph before and after every pass, with what each pass did and declined: for the pass explorer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from openqnn.errors import UsageError
from openqnn.ir import Graph
from openqnn.ir.clone import clone_graph
from openqnn.passes import Explain
from openqnn.passes.explain import Event
from openqnn.viewer.from_graph import view_from_graph
from openqnn.viewer.match_views import match_views
from openqnn.viewer.page import pane_record
from openqnn.viewer.view import Overlay, View

BORDERS = "borders"
WHY_BORDERS = "inputs and outputs get the layout and the types that were asked for"


@dataclass(frozen=True, slots=True)
class PassStep:
    """A pass: why it stands where it does, its decisions, and the graphs by their numbers."""

    name: str
    why: str
    before: int
    after: int
    events: tuple[Event, ...]

    def record(self) -> dict[str, Any]:
        events = [
            {"pass": e.pass_name, "where": e.where, "node": e.name, "applied": e.applied, "reason": e.reason}
            for e in self.events
        ]
        return {
            "name": self.name,
            "why": self.why,
            "before": self.before,
            "after": self.after,
            "events": events,
        }


class PassLog(Explain):
    """Decisions by pass, and a copy of the graph after each pass that changed it."""

    def __init__(self) -> None:
        super().__init__()
        self.graphs: list[Graph] = []
        self.steps: list[PassStep] = []
        self._text = ""
        self._seen = 0

    def begun(self, graph: Graph) -> None:
        self._keep(graph)
        self._seen = len(self.events)

    def finished(self, pass_name: str, why: str, graph: Graph) -> None:
        before = len(self.graphs) - 1
        self._keep(graph)
        events = self.events
        made = PassStep(pass_name, why, before, len(self.graphs) - 1, tuple(events[self._seen :]))
        self._seen = len(events)
        self.steps.append(made)

    def _keep(self, graph: Graph) -> None:
        """Nodes, their operands and parameters tell whether the graph is another one."""
        text = "\n".join(f"{n.op} {n.name} {n.params} {n.inputs} {n.outputs}" for n in graph.nodes)
        if not self.graphs or text != self._text:
            self.graphs.append(clone_graph(graph))
            self._text = text


def log_passes(model: str | os.PathLike[str], settings: Mapping[str, Any]) -> PassLog:
    """Convert a model, and keep what happens on the way."""
    from openqnn.api.convert import convert
    from openqnn.formats.oqnn import is_oqnn

    if is_oqnn(model):
        raise UsageError(f"{model} was converted already: its passes are over", hint="give the source model")
    log = PassLog()
    graph = convert(model, **settings, explain=log)
    log.finished(BORDERS, WHY_BORDERS, graph)
    return log


def pass_page_data(
    model: str | os.PathLike[str], log: PassLog, overlays: Sequence[Overlay] = ()
) -> dict[str, Any]:
    """What the page's script reads; a node that several graphs have alike is there once, in the pool."""
    views = [
        view_from_graph(g, f"{Path(model).name}, graph {i}", "QNN graph") for i, g in enumerate(log.graphs)
    ]
    views = [_without_weights(view) for view in views]
    panes = [pane_record(view, overlays, embed=False) for view in views]
    return {
        "panes": panes,
        "pool": _pool(panes),
        "diffs": [match_views(a, b) for a, b in pairwise(views)],
        "passes": [step.record() for step in log.steps],
    }


def _without_weights(view: View) -> View:
    """The explorer is about structure: statistics of the same weights a dozen times over help nobody."""
    bare = lambda tensors: tuple(replace(tensor, weight=None) for tensor in tensors)
    nodes = tuple(replace(n, inputs=bare(n.inputs), outputs=bare(n.outputs)) for n in view.nodes)
    return replace(view, nodes=nodes)


def _pool(panes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    known: dict[str, int] = {}
    pool: list[dict[str, Any]] = []
    for pane in panes:
        numbers: list[int] = []
        for node in pane["nodes"]:
            key = json.dumps(node)
            if key not in known:
                known[key] = len(pool)
                pool.append(node)
            numbers.append(known[key])
        pane["nodes"] = numbers
    return pool
