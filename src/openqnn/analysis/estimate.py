"""How fast a graph will be, with no device: libQnnHtp's own cost model, for the whole graph and its layers.

The library gives an estimate when it compiles for some chips; it is asked for QCS9100. Layers are the graph
cut into parts, each compiled alone: a convolution or matrix product with the ops behind it that HTP joins
with it. `openqnn.analysis.chip_fits` has the way from cycles to milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from openqnn.analysis.architecture_rule import bytes_of
from openqnn.analysis.chip_fits import ChipFit
from openqnn.analysis.summary import summarise
from openqnn.errors import BackendError, UnsupportedError
from openqnn.formats.htp_timeline import HtpTimeline, Schematic, parse_schematic, read_timeline
from openqnn.ir import DType, Graph
from openqnn.ops import schema_of
from openqnn.qnn.net import Net, NetNode, TensorKind
from openqnn.qnn.net_parts import part_of
from openqnn.qnn.profile import ProfileEvent
from openqnn.vendor.library_worker import shared_worker
from openqnn.vendor.source import net_of
from openqnn.vendor.target_setup import Target, target_of

COSTED_SOC = "QCS9100"
PEAK_MACS = {8: 11_000, 16: 6_000, 32: 1_800}
"""The most multiplications a cycle that the cost model gives, by bits of activations: large convolutions."""
BYTES_PER_CYCLE = 30
"""What it gives for reading weights: large matrices times a vector."""
COMPILING = 600.0  # seconds

CYCLES, LOW, HIGH = 2006, 2007, 2008
INPUT_FILL, FILL, SPILL, OUTPUT_SPILL = 2011, 2012, 2013, 2016
WITHOUT_COST = 2017


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the cost model says. `read` and `written` are bytes from and to memory, `spilled` and `filled`
    what does not fit the fast memory on the way. Ops of `without_cost` are not in the cycles."""

    cycles: int
    low: int
    high: int
    read: int
    written: int
    spilled: int
    filled: int
    without_cost: tuple[str, ...]
    rough: str = ""
    """Why the figure is not to be trusted, where it is not."""
    width: int = 8
    """Bits of activations, by most of them."""
    macs: int = 0
    live: int = 0
    """Bytes of activations that are alive at once, at most; VTCM has 8 MB."""

    @property
    def utilisation(self) -> float:
        """Multiplications a cycle, as a share of the most that the cost model gives."""
        return self.macs / self.cycles / PEAK_MACS[self.width] if self.cycles else 0.0

    @property
    def use(self) -> str:
        """The utilisation as reports say it: a small network uses little, and not nothing."""
        return f"{self.utilisation:.0%}" if self.utilisation >= 0.01 else "less than 1%"

    def milliseconds(self, fit: ChipFit) -> float:
        return fit.milliseconds(self.cycles, self.read, self.spilled + self.filled, self.live)


def estimate_graph(graph: Graph, *, timeout: float = COMPILING) -> Estimate:
    """Compile a graph for a chip that libQnnHtp has costs of, and read them."""
    from openqnn.vendor import jobs

    target = target_of("htp", COSTED_SOC)
    net = net_of(graph, target.library)
    events = shared_worker().ask(jobs.finalize_events, target.library, timeout, net=net, device=target.device)
    return _estimate(events, graph)


def expected_timeline(graph: Graph, *, timeout: float = COMPILING) -> tuple[HtpTimeline, Schematic]:
    """What the cost model expects each unit of HTP to do and when, with the names of the nodes."""
    from openqnn.vendor import jobs

    target = target_of("htp", COSTED_SOC)
    net = net_of(graph, target.library)
    worker = shared_worker()
    events, left = worker.ask(jobs.finalize_traced, target.library, timeout, net=net, device=target.device)
    objects = [e.content for root in events for e in root.walk() if e.content]
    if not objects:
        raise UnsupportedError(f"libQnnHtp gave no timeline of graph '{graph.name}' for {COSTED_SOC}")
    return read_timeline(objects[0], graph.name), parse_schematic(left, f"the schematic of '{graph.name}'")


def _estimate(events: Sequence[ProfileEvent], graph: Graph) -> Estimate:
    numbers: dict[int, int] = {}
    missing: list[str] = []
    for event in (each for root in events for each in root.walk()):
        numbers[event.type] = numbers.get(event.type, 0) + int(event.value)
        if event.type == WITHOUT_COST:
            missing += [child.identifier for child in event.children]
    if not numbers.get(CYCLES):
        raise UnsupportedError(
            f"libQnnHtp gave no estimate of graph '{graph.name}' for {COSTED_SOC}",
            hint="the version of onnxruntime-qnn that this package names has one",
        )
    summary = summarise(graph)
    return Estimate(
        numbers[CYCLES],
        numbers.get(LOW, numbers[CYCLES]),
        numbers.get(HIGH, numbers[CYCLES]),
        numbers.get(INPUT_FILL, 0),
        numbers.get(OUTPUT_SPILL, 0),
        numbers.get(SPILL, 0),
        numbers.get(FILL, 0),
        tuple(missing),
        _doubt(graph, missing),
        width_of(graph),
        summary.macs,
        summary.activation_bytes,
    )


def width_of(graph: Graph) -> int:
    """Bits of most activations that are in fixed point; 32 where none is."""
    widths = [v.encoding.bitwidth for v in graph.values() if v.encoding is not None and not v.is_constant]
    if not widths:
        return 32
    return 16 if 2 * sum(width == 16 for width in widths) > len(widths) else 8


def _doubt(graph: Graph, missing: Sequence[str]) -> str:
    if any(node.outputs[0].dtype in (DType.FLOAT_32, DType.FLOAT_16) for node in graph.nodes):
        return "the graph computes in floating point, of which the cost model lacks ops: quantize it first"
    if missing:
        return f"{len(missing)} ops have no cost in the model, and are not counted"
    return ""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A node compiled alone: neighbours that the library would join with it are not there."""

    name: str
    op: str
    source: str
    cycles: int


def node_costs(graph: Graph, *, progress: Callable[[int, int], None] | None = None) -> list[NodeCost]:
    """The cycles of each node by itself, the costliest first. Equal nodes are compiled once, and what the
    library does not compile alone is left out."""
    from openqnn.vendor import jobs

    target = target_of("htp", COSTED_SOC)
    net = net_of(graph, target.library)
    known: dict[object, int] = {}
    found: list[NodeCost] = []
    for index, node in enumerate(net.nodes):
        part = part_of(net, [index])
        key = _shape_of(part, node)
        if key not in known:
            known[key] = _cycles_alone(part, jobs.finalize_events, target)
        if known[key]:
            found.append(NodeCost(node.name, node.op, node.source, known[key]))
        if progress is not None:
            progress(index + 1, len(net.nodes))
    return sorted(found, key=lambda cost: -cost.cycles)


JOINED = frozenset({
    "Relu", "Relu6", "ReluMinMax", "ElementWiseNeuron", "Sigmoid", "Tanh", "HardSwish", "Prelu", "Elu",
    "Gelu", "Batchnorm", "ElementWiseAdd", "ElementWiseMultiply", "Convert", "Quantize", "Dequantize", "Cast",
    "Reshape",
})  # fmt: skip
"""Ops that HTP computes together with what makes their input, where nothing else reads that."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """A part of the graph compiled alone. `share` is of all parts, `cycles` that share of the whole graph."""

    name: str
    ops: tuple[str, ...]
    source: str
    alone: int
    cycles: float
    share: float
    macs: int
    bytes: int
    advice: tuple[str, ...] = ()


def layer_costs(
    graph: Graph, whole: Estimate, *, progress: Callable[[int, int], None] | None = None
) -> list[LayerCost]:
    """The layers of a graph, the costliest first, with what would help. Equal ones are compiled once."""
    from openqnn.analysis.architecture_rules import inspect_architecture
    from openqnn.emit import lower
    from openqnn.vendor import jobs
    from openqnn.vendor.source import suited

    target = target_of("htp", COSTED_SOC)
    adapted = suited(graph, target.library)
    net = lower(adapted)
    macs = _macs(adapted, net)
    advice: dict[str, list[str]] = {}
    for finding in inspect_architecture(net):
        if finding.node is not None:
            advice.setdefault(finding.node.name, []).append(f"{finding.issue} {finding.advice}")
    known: dict[object, int] = {}
    found: list[LayerCost] = []
    groups = layer_groups(net)
    for number, group in enumerate(groups):
        part = part_of(net, group)
        key = tuple(_shape_of(part, node) for node in part.nodes)
        if key not in known:
            known[key] = _cycles_alone(part, jobs.finalize_events, target)
        if known[key]:
            found.append(_layer(part, known[key], macs, advice))
        if progress is not None:
            progress(number + 1, len(groups))
    total = sum(layer.alone for layer in found) or 1
    shares = [replace(c, share=c.alone / total, cycles=whole.cycles * c.alone / total) for c in found]
    return sorted(shares, key=lambda layer: -layer.alone)


def _macs(graph: Graph, net: Net) -> dict[str, int]:
    """Multiplications by the names that nodes have in the records: each is known by what it makes."""
    outputs = {output_name(node.outputs[0].name): node for node in graph.nodes}
    found: dict[str, int] = {}
    for record in net.nodes:
        node = outputs.get(output_name(record.outputs[0]))
        if node is not None and (macs := schema_of(node).macs) is not None:
            found[record.name] = macs(node)
    return found


def output_name(name: str) -> str:
    """A tensor's name as files of C++ take it."""
    return re.sub(r"\W", "_", name)


def layer_groups(net: Net) -> list[list[int]]:
    """Positions of the nodes of each layer."""
    readers: dict[str, int] = {}
    for node in net.nodes:
        for name in filter(None, node.inputs):
            readers[name] = readers.get(name, 0) + 1
    group_of: dict[str, list[int]] = {}
    groups: list[list[int]] = []
    for index, node in enumerate(net.nodes):
        makers = [group_of[n] for n in node.inputs if n in group_of and readers[n] == 1]
        joins = node.op in JOINED and bool(makers) and not set(node.inputs) & set(net.outputs)
        if joins:
            group = makers[-1]
        else:
            groups.append(group := [])
        group.append(index)
        group_of |= dict.fromkeys(node.outputs, group)
    return groups


def _layer(part: Net, cycles: int, macs: Mapping[str, int], advice: Mapping[str, Sequence[str]]) -> LayerCost:
    """A layer by its node of most multiplications."""
    main = max(part.nodes, key=lambda node: macs.get(node.name, 0))
    kept = [tensor for tensor in part.tensors.values() if tensor.kind is not TensorKind.NATIVE]
    said = dict.fromkeys(text for node in part.nodes for text in advice.get(node.name, ()))
    return LayerCost(
        main.name,
        tuple(node.op for node in part.nodes),
        main.source,
        cycles,
        cycles,
        0.0,
        sum(macs.get(node.name, 0) for node in part.nodes),
        sum(bytes_of(tensor) for tensor in kept),
        tuple(said),
    )


def _cycles_alone(part: Net, job: Callable[..., object], target: Target) -> int:
    try:
        events = shared_worker().ask(job, target.library, COMPILING, net=part, device=target.device)
    except BackendError:
        return 0
    return sum(int(e.value) for root in events for e in root.walk() if e.type == CYCLES)


def _shape_of(part: Net, node: NetNode) -> object:
    """What decides how long a node takes: op, parameters, types and shapes of its tensors."""
    names = (*node.inputs, *node.outputs)
    tensors = tuple((part.tensors[n].dtype, part.tensors[n].dims) if n else None for n in names)
    params = tuple((name, repr(getattr(value, "value", None) or value)) for name, value in node.params)
    return node.op, tensors, params
