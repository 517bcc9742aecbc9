"""How fast a graph will be, with no device: libQnnHtp's own cost model, and lines from its cycles to chips.

The library gives an estimate when it compiles for some chips; it is asked for QCS9100. Milliseconds of a
chip are `start + slope * cycles`, fitted by least absolute relative error to published latencies of six
networks at 8 bits: squeezenet1_1, mobilenet_v2, googlenet, resnet18, resnet50, wide_resnet50_2. `median` and
`largest` are the relative errors for each network by a line that was fitted without it. The largest is
googlenet's everywhere, which is faster on devices than the cost model says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from openqnn.errors import BackendError, UnsupportedError
from openqnn.ir import DType, Graph
from openqnn.qnn.net import Net, NetNode
from openqnn.qnn.profile import ProfileEvent
from openqnn.qnn.subnet import part_of
from openqnn.vendor.library_worker import shared_worker
from openqnn.vendor.source import net_of
from openqnn.vendor.target_setup import Target, target_of

COSTED_SOC = "QCS9100"
COMPILING = 600.0  # seconds

CYCLES, LOW, HIGH = 2006, 2007, 2008
INPUT_FILL, FILL, SPILL, OUTPUT_SPILL = 2011, 2012, 2013, 2016
WITHOUT_COST = 2017


@dataclass(frozen=True, slots=True)
class ChipFit:
    """Milliseconds from cycles, and how far off that was on networks that were not fitted."""

    chip: str
    start: float
    slope: float
    median: float
    largest: float

    def milliseconds(self, cycles: float) -> float:
        return self.start + self.slope * cycles / 1e6


CHIPS = (
    ChipFit("QCS9100", 0.352, 0.561, 0.06, 0.72),
    ChipFit("SM8650", 0.170, 0.450, 0.10, 0.95),
    ChipFit("SM8750", 0.092, 0.402, 0.02, 0.69),
)
NETWORKS = 6


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


def estimate_graph(graph: Graph, *, timeout: float = COMPILING) -> Estimate:
    """Compile a graph for a chip that libQnnHtp has costs of, and read them."""
    from openqnn.vendor import jobs

    target = target_of("htp", COSTED_SOC)
    net = net_of(graph, target.library)
    events = shared_worker().ask(jobs.finalize_events, target.library, timeout, net=net, device=target.device)
    return _estimate(events, graph)


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
    )


def _doubt(graph: Graph, missing: Sequence[str]) -> str:
    if any(node.outputs[0].dtype in (DType.FLOAT_32, DType.FLOAT_16) for node in graph.nodes):
        return "the graph computes in floating point, of which the cost model lacks ops: quantize it first"
    if missing:
        return f"{len(missing)} ops have no cost in the model, and are not counted"
    if any(v.encoding is not None and v.encoding.bitwidth == 16 for v in graph.values() if not v.is_constant):
        return "the lines to chips were fitted to networks of 8 bits, and activations have 16 here"
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
