"""Placing every node: which backend runs it at the least total cost, and why the graph is cut where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from openqnn.errors import LibraryError, UnsupportedError, UsageError
from openqnn.ir import Graph, Node, Value
from openqnn.ir.subgraph import subgraph
from openqnn.ops import schema_of
from openqnn.vendor.partition.choices import Choices
from openqnn.vendor.partition.costs import BUILT_IN, CPU, HTP, crossing_cost, node_cost, start_cost, target_at
from openqnn.vendor.partition.min_cut import min_cut
from openqnn.vendor.partition.refusals import refusals

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that one backend runs together."""

    backend: str
    nodes: tuple[Node, ...]

    def graph(self, whole: Graph, name: str) -> Graph:
        return subgraph(whole, self.nodes, name)


@dataclass(frozen=True, slots=True)
class Cut:
    """A tensor that goes from one backend to another, and why."""

    tensor: str
    nbytes: int
    source: str
    target: str
    reason: str

    def __str__(self) -> str:
        way = f"{self.source} -> {self.target}"
        return f"'{self.tensor}' {self.nbytes:,} bytes {way}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Parts in an order in which they can run. `single` has the cost of each backend that could run all."""

    parts: tuple[Part, ...]
    cuts: tuple[Cut, ...]
    cost: float
    single: Mapping[str, float]
    refused: Mapping[str, Mapping[str, str]]
    """By backend, the reasons by the name of the node."""

    @property
    def places(self) -> dict[str, str]:
        return {node.name: part.backend for part in self.parts for node in part.nodes}


def plan_partition(graph: Graph, choices: Choices | None = None, soc: str | int | None = None) -> Plan:
    """Ask the libraries, and place every node."""
    chosen = choices or Choices()
    chosen.check(graph)
    refused = {name: _refused(graph, name, soc) for name in chosen.backends}
    able = {node: _able(node, chosen, refused) for node in graph.nodes}
    places = _placed(graph, able, chosen)
    if chosen.memory_mb is not None:
        _fit_memory(places, able, chosen)
    parts = _parts(graph, places)
    single = {
        name: _cost(graph, [Part(name, tuple(graph.nodes))], chosen)
        for name in chosen.backends
        if all(name in backends for backends in able.values()) and _fits_whole(graph, name, chosen)
    }
    cost = _cost(graph, parts, chosen)
    best = min(single, key=lambda name: single[name], default="")
    if best and single[best] <= cost:
        parts, cost = [Part(best, tuple(graph.nodes))], single[best]
    return Plan(tuple(parts), tuple(_cuts(graph, parts, refused, chosen)), cost, single, refused)


def _refused(graph: Graph, backend: str, soc: str | int | None) -> dict[str, str]:
    target = target_at(backend)
    if target.is_built_in:
        return {n.name: schema_of(n).why_not for n in graph.nodes if not _runs_here(n)}
    try:
        return refusals(graph, target.libraries[0], soc if target.compiles else None)
    except LibraryError as error:
        return dict.fromkeys((node.name for node in graph.nodes), error.message)


def _runs_here(node: Node) -> bool:
    schema = schema_of(node)
    return schema.lower is not None or schema.compute is not None


def _able(node: Node, choices: Choices, refused: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The backends that can have a node, by the libraries' word and the user's."""
    pin = choices.pin_of(node)
    if pin and pin not in choices.backends:
        raise UsageError(f"{node.where} is pinned to {pin}, which is not among the backends")
    if pin and node.name in refused[pin]:
        raise UsageError(
            f"{node.where} is pinned to {pin}, which refuses it: {refused[pin][node.name].splitlines()[0]}"
        )
    able = [pin] if pin else [name for name in choices.backends if node.name not in refused[name]]
    if not able:
        said = "; ".join(f"{name}: {refused[name][node.name].splitlines()[0]}" for name in choices.backends)
        raise UnsupportedError(f"no backend takes {node.where}: {said}", hint="allow more backends")
    return able


def _placed(graph: Graph, able: Mapping[Node, Sequence[str]], choices: Choices) -> dict[Node, str]:
    """Two questions one after the other, each answered exactly: the chip or the host, and which host."""
    price = {
        node: {name: node_cost(node, name, choices.power_critical) for name in names}
        for node, names in able.items()
    }
    first = {node: costs.get(HTP, inf) for node, costs in price.items()}
    second = {
        node: min((c for name, c in costs.items() if _is_host(name)), default=inf)
        for node, costs in price.items()
    }
    on_chip = min_cut(first, second, _ties(graph.nodes))
    host = [node for node in graph.nodes if node not in on_chip]
    at_home = min_cut(
        {node: price[node].get(BUILT_IN, inf) for node in host},
        {node: price[node].get(CPU, inf) for node in host},
        _ties(host),
    )
    return {node: HTP if node in on_chip else BUILT_IN if node in at_home else CPU for node in graph.nodes}


def _is_host(backend: str) -> bool:
    """Whether it runs on the host's cores, with the host's memory."""
    return not target_at(backend).compiles


def _ties(nodes: Sequence[Node]) -> list[tuple[Node, Node, float]]:
    """What it costs to part a node from those that read its results."""
    known, found = set(nodes), list[tuple[Node, Node, float]]()
    for node in nodes:
        for value in node.outputs:
            users = list(dict.fromkeys(user for user in value.users if user in known))
            found += [(node, user, crossing_cost(value) / len(users)) for user in users]
    return found


def _fit_memory(places: dict[Node, str], able: Mapping[Node, Sequence[str]], choices: Choices) -> None:
    """Nodes leave the chip, those first that gain least there for their bytes, until the rest fits."""
    assert choices.memory_mb is not None
    limit = choices.memory_mb * MEGABYTE
    free = [node for node in _on_chip(places) if any(_is_host(name) for name in able[node])]
    free.sort(key=lambda node: _gain(node, able[node]) / max(1, _bytes([node])))
    while free and _bytes(_on_chip(places)) > limit:
        node = free.pop(0)
        places[node] = BUILT_IN if BUILT_IN in able[node] else CPU
    if _bytes(_on_chip(places)) > limit:
        raise UsageError(
            f"memory_mb is {choices.memory_mb:g}, and nodes that only HTP may run need more",
            hint="allow another backend, or more memory",
        )


def _on_chip(places: Mapping[Node, str]) -> list[Node]:
    return [node for node, place in places.items() if not _is_host(place)]


def _gain(node: Node, able: Sequence[str]) -> float:
    return min(node_cost(node, name) for name in able if _is_host(name)) - node_cost(node, HTP)


def _bytes(nodes: Sequence[Node]) -> int:
    """Weights, and the largest activation in and out."""
    weights = {v for node in nodes for v in node.inputs if v is not None and v.is_constant}
    data = [
        sum(v.nbytes for v in (*node.inputs, *node.outputs) if v is not None and not v.is_constant)
        for node in nodes
    ]
    return sum(v.nbytes for v in weights) + max(data, default=0)


def _fits_whole(graph: Graph, backend: str, choices: Choices) -> bool:
    limit = choices.memory_mb
    return limit is None or _is_host(backend) or _bytes(graph.nodes) <= limit * MEGABYTE


def _parts(graph: Graph, places: Mapping[Node, str]) -> list[Part]:
    """Nodes of one backend together as far as no circle comes of it: each crossing begins a new stage."""
    stages: dict[Node, int] = {}
    groups: dict[tuple[int, str], list[Node]] = {}
    for node in graph.nodes:
        before = [v.producer for v in node.inputs if v is not None and v.producer is not None]
        stage = max((stages[p] + (places[p] != places[node]) for p in before), default=0)
        stages[node] = stage
        groups.setdefault((stage, places[node]), []).append(node)
    return [Part(place, tuple(nodes)) for (_, place), nodes in sorted(groups.items(), key=lambda g: g[0][0])]


def _cost(graph: Graph, parts: Sequence[Part], choices: Choices) -> float:
    work = sum(node_cost(n, part.backend, choices.power_critical) for part in parts for n in part.nodes)
    crossing = sum(crossing_cost(value) for value, *_ in _crossings(graph, parts))
    return work + crossing + sum(start_cost(part.backend) for part in parts)


def _crossings(graph: Graph, parts: Sequence[Part]) -> list[tuple[Value, Part, Part, Node]]:
    """Tensors between parts, each once for every part that reads it, with the first node that does."""
    home = {node: part for part in parts for node in part.nodes}
    found: dict[tuple[Value, int], tuple[Value, Part, Part, Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is None or value.producer is None or home[value.producer] is home[node]:
                continue
            key = (value, id(home[node]))
            found.setdefault(key, (value, home[value.producer], home[node], node))
    return list(found.values())


def _cuts(
    graph: Graph, parts: Sequence[Part], refused: Mapping[str, Mapping[str, str]], choices: Choices
) -> list[Cut]:
    return [
        Cut(
            value.name, value.nbytes, source.backend, target.backend,
            _pinned(value, reader, choices)
            or _refusal(reader, source, refused) or _refusal(value.producer, target, refused)
            or _cheaper(source, target, reader, refused, choices),
        )
        for value, source, target, reader in _crossings(graph, parts)
    ]  # fmt: skip


def _pinned(value: Value, reader: Node, choices: Choices) -> str:
    for node in (reader, value.producer):
        if node is not None and choices.pin_of(node):
            return f"{node.where} is pinned to {choices.pin_of(node)}"
    return ""


def _refusal(node: Node | None, other: Part, refused: Mapping[str, Mapping[str, str]]) -> str:
    reason = refused.get(other.backend, {}).get(node.name) if node is not None else None
    return f"{other.backend} refuses {node.where}: {short_reason(reason)}" if node and reason else ""


def _cheaper(
    source: Part, target: Part, reader: Node, refused: Mapping[str, Mapping[str, str]], choices: Choices
) -> str:
    """Why the graph is cut at a place that nobody asked for: near a refusal, or for the sake of cost."""
    if source.backend == target.backend:
        return "what lies between depends on one and feeds the other"
    for part, other in ((source, target), (target, source)):
        for node in part.nodes:
            if said := _refusal(node, other, refused):
                return f"the cheapest place near this: {said}"
    if choices.memory_mb is not None and not (_is_host(source.backend) and _is_host(target.backend)):
        return f"HTP has {choices.memory_mb:g} MB"
    return f"{reader.where} is cheaper on {target.backend}"


def short_reason(text: str) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else text
