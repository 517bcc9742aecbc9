"""What a graph costs: operations, parameters, multiply-accumulates, memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from openqnn.ir import Graph, Value
from openqnn.ops import schema_of


@dataclass(frozen=True)
class OpCost:
    op: str
    count: int
    parameters: int
    macs: int


@dataclass(frozen=True)
class Summary:
    """Totals and one row per kind of op, the most expensive first."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: tuple[OpCost, ...]
    parameters: int
    parameter_bytes: int
    macs: int
    activation_bytes: int  # the most that is alive at once, each tensor from its producer to its last reader


def summarise(graph: Graph) -> Summary:
    count, macs, parameters = Counter[str](), Counter[str](), Counter[str]()
    seen: set[Value] = set()
    for node in graph.nodes:
        schema = schema_of(node)
        count[node.op] += 1
        macs[node.op] += schema.macs(node) if schema.macs else 0
        for value in node.inputs:
            if value is not None and value.is_constant and value not in seen:
                seen.add(value)
                parameters[node.op] += value.size
    rows = sorted((OpCost(op, n, parameters[op], macs[op]) for op, n in count.items()), key=_expense)
    return Summary(
        graph.name,
        tuple(_described(graph, v) for v in graph.inputs),
        tuple(_described(graph, v) for v in graph.outputs),
        tuple(rows),
        sum(v.size for v in seen),
        sum(v.nbytes for v in seen),
        sum(macs.values()),
        _peak(graph),
    )


def _expense(row: OpCost) -> tuple[int, int, int, str]:
    return (-row.macs, -row.parameters, -row.count, row.op)


def _described(graph: Graph, value: Value) -> str:
    port = graph.ports[value.name]
    return f"{value.name}: {port.dtype.label}[{','.join(map(str, port.shape))}]"


def _peak(graph: Graph) -> int:
    """Liveness over the nodes in order."""
    last: dict[Value, int] = {}
    for index, node in enumerate(graph.nodes):
        last.update({v: index for v in node.inputs if v is not None and not v.is_constant})
    for value in graph.outputs:
        last[value] = len(graph.nodes)
    alive = peak = sum(v.nbytes for v in graph.inputs)
    ends: dict[int, list[Value]] = {}
    for value, index in last.items():
        ends.setdefault(index, []).append(value)
    for index, node in enumerate(graph.nodes):
        alive += sum(v.nbytes for v in node.outputs)
        peak = max(peak, alive)
        alive -= sum(v.nbytes for v in ends.get(index, ()))
    return peak
