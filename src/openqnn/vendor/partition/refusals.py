"""Which nodes of a graph a library refuses, by its own validation, and why."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from openqnn.emit import lower
from openqnn.errors import OpenQnnWarning, UnsupportedError
from openqnn.ir import Graph, Node
from openqnn.ir.subgraph import subgraph
from openqnn.qnn.library import find_library
from openqnn.qnn.net import NetNode, qnn_name
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import find_soc, no_floats
from openqnn.targets.registry import target_of_library
from openqnn.vendor.source import suited
from openqnn.vendor.validate import validate_net

_SECONDS = 300.0
ROUNDS = 12


def refusals(graph: Graph, library: str, soc: str | int | None = None) -> dict[str, str]:
    """Reasons by the name of the node. What is refused is taken out, and the rest is asked again: a graph is
    brought into other forms for a library, and these depend on what is around a node."""
    path = find_library(library)
    chip = find_soc(soc) if target_of_library(path).compiles else None
    found: dict[str, str] = {}
    for _ in range(ROUNDS):
        left = [node for node in graph.nodes if node.name not in found]
        if not left:
            return found
        part = subgraph(graph, left)
        new = _asked(part, str(path), chip.model if chip else None)
        if chip is not None and not chip.has_floats:
            new |= {n.name: no_floats(chip) for n in part.nodes if _computes_floats(n)}
        if not new:
            return found
        found |= new
    around = "the library refuses what is around it"
    return dict.fromkeys((node.name for node in graph.nodes), around) | found


def _asked(part: Graph, library: str, soc: int | None) -> dict[str, str]:
    """One round."""
    try:
        # What it costs to bring a part into such a form is told where the part is run.
        with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):
            adapted = suited(part, library)
    except UnsupportedError as error:
        named = {each.node: each.reason for each in error.problems}
        known = {n.name: named[n.name] for n in part.nodes if n.name in named}
        return known or dict.fromkeys((n.name for n in part.nodes), error.message)
    net = lower(adapted)
    device = DeviceOptions(soc) if soc is not None else None
    verdicts = [v for v in validate_net(net, library, device, timeout=_SECONDS) if not v.ok]
    found: dict[str, str] = {}
    for verdict in verdicts:
        for node in _origins(verdict.node, part.nodes):
            found.setdefault(node.name, verdict.reason)
    return found


def _computes_floats(node: Node) -> bool:
    return any(v.dtype.is_float for v in node.outputs)


def _origins(refused: NetNode, nodes: Iterable[Node]) -> list[Node]:
    """The nodes of the graph behind a record: that of its name, or of its source, or all of them."""
    listed = list(nodes)
    by_name = [n for n in listed if qnn_name(n.name) == refused.name or n.name == refused.name]
    by_source = [n for n in listed if refused.source and refused.source in (n.source, n.name)]
    made = set(refused.outputs)
    by_output = [n for n in listed if made & {qnn_name(v.name) for v in n.outputs}]
    return by_name or by_source or by_output or listed
