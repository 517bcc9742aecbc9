"""What a node costs on a backend, and a tensor where the graph is cut: rough seconds on a phone's chip.

They are there to compare places, not to promise times, which `openqnn estimate` tells. Rates are orders of
magnitude of published ones: products per second by width, and bytes that pass through memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.ir import Node, Value
from openqnn.ops import schema_of
from openqnn.targets import registry
from openqnn.targets.target import Target

HTP, CPU, BUILT_IN = "htp", "cpu", "builtin"
_TARGETS = {HTP: registry.HTP, CPU: registry.CPU_LIBRARY, BUILT_IN: registry.BUILT_IN}
BACKENDS = tuple(_TARGETS)


def target_at(backend: str) -> Target:
    """The target behind the name that a partition has for a backend."""
    return registry.find_target(_TARGETS[backend])


@dataclass(frozen=True, slots=True)
class Rates:
    """Multiply-accumulates a second in 8 bits, in 16 and in floats; bytes a second; seconds for any node."""

    narrow: float
    wide: float
    floating: float
    memory: float
    node: float
    start: float
    power: float
    """Energy for a second of work, against that of HTP."""


RATES = {
    HTP: Rates(6e12, 1.5e12, 1.5e12, 60e9, 0.3e-6, 150e-6, 1.0),
    CPU: Rates(1e10, 1e10, 1e10, 6e9, 4e-6, 10e-6, 2.2),
    BUILT_IN: Rates(6e10, 3e10, 6e10, 12e9, 2e-6, 5e-6, 2.2),
}
CROSSING, CROSSING_BYTES = 40e-6, 6e9  # seconds for a tensor from backend to backend, and bytes a second
REQUANTIZED = 2e9  # numbers a second that change between real and stored


def node_cost(node: Node, backend: str, power: bool = False) -> float:
    """Seconds of a node, or with `power` what they cost in energy."""
    schema, rates = schema_of(node), RATES[backend]
    macs = schema.macs(node) if schema.macs else 0
    moved = sum(v.nbytes for v in (*node.inputs, *node.outputs) if v is not None)
    seconds = rates.node + macs / _rate(node, rates) + moved / rates.memory
    return seconds * (rates.power if power else 1.0)


def _rate(node: Node, rates: Rates) -> float:
    widths = [v.dtype.bits for v in (*node.inputs, *node.outputs) if v is not None and v.dtype.is_fixed]
    data = node.outputs[0].dtype
    if not widths or not data.is_fixed:
        return rates.floating
    return rates.narrow if data.bits <= 8 else rates.wide


def start_cost(backend: str) -> float:
    """Seconds to start a part."""
    return RATES[backend].start


def crossing_cost(value: Value) -> float:
    """Seconds of a tensor at a cut; real numbers have to become half precision for HTP, and back."""
    changed = 0 if value.dtype.is_fixed or not value.dtype.is_float else value.size
    return CROSSING + value.nbytes / CROSSING_BYTES + changed / REQUANTIZED
