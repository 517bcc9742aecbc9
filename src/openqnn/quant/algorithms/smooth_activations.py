"""Moves outliers of activations into weights: channels of a norm are scaled, the layers behind it undo that.

Activations of transformers have a few channels that are much larger than all others, and one scale for a
tensor leaves the others few steps. Weights have scales of their own and no such channels, so half of the
difference (in the logarithm) is theirs to bear (Xiao et al., arXiv:2211.10438).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from openqnn.errors import UsageError
from openqnn.ir import Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import Kind, kind_of, schema_of
from openqnn.ops.schema import Role
from openqnn.quant.algorithms.channels import (
    Vector,
    data_of,
    input_size,
    is_free_layer,
    is_own_constant,
    is_view,
    scale_input,
    takes_channels,
)
from openqnn.quant.calibration import calibrate
from openqnn.quant.observe.observers import Statistics, Watch

ALPHA = 0.5  # how much of a channel's size goes into the weights: 0 to 1
MOST = 1e4  # and no channel is scaled by more


@dataclass(frozen=True, slots=True)
class Place:
    """A node whose channels can be scaled by its constants, and the layers that read it and nothing else."""

    node: Node
    constants: tuple[Value, ...]
    layers: tuple[Node, ...]

    @property
    def channels(self) -> int:
        return self.node.out.shape[-1]


def smooth_activations(
    graph: Graph,
    samples: Iterable[Mapping[str, Any]] | None,
    given: Container[str] = (),
    *,
    alpha: float = ALPHA,
    threads: int = 0,
) -> tuple[Graph, list[str]]:
    """A graph that computes the same with smaller outliers, and a word on each thing done.

    Tensors that are named in `given` have encodings already and stay as they are.
    """
    if samples is None:
        raise UsageError("smoothquant needs data to see which channels are large", hint="or leave it out")
    made = clone_graph(graph)
    places = places_of(made, given)
    if not places:
        return made, ["smoothquant: no norm or product whose channels only layers read"]
    watch = Watch.EXTREMES | Watch.CHANNELS
    seen = calibrate(made, samples, {p.node.out.name: watch for p in places}, threads=threads)
    for place in places:
        _migrate(place, _scales(place, seen[place.node.out.name], alpha))
    return made, [f"smoothquant: '{p.node.name}' into {_listed(p.layers)}" for p in places]


def places_of(graph: Graph, given: Container[str] = ()) -> list[Place]:
    """Where channels can be scaled, in the order of the graph."""
    found: list[Place] = []
    for node in graph.nodes:
        constants = _constants(node, given)
        layers = _layers(graph, node.out, node.out.shape[-1], given) if constants else None
        if layers:
            found.append(Place(node, tuple(constants), tuple(dict.fromkeys(layers))))
    return found


def _constants(node: Node, given: Container[str]) -> list[Value]:
    """What the channels of a node's output are multiplied with and moved by; none where that is not free."""
    if not node.out.shape:
        return []
    if kind_of(node) is Kind.PRODUCT:
        found = [v for v in node.inputs if v is not None and v.is_constant]
    elif _is_norm(node):
        found = [v for v in node.inputs[1:] if v is not None]
    else:
        return []
    fits = all(is_own_constant(v, given) and _is_along_last(v, node.out) for v in found)
    return found if fits and node.out.dtype.is_float else []


def _is_norm(node: Node) -> bool:
    """Multiplies by gamma at the end: that has the role of a weight, but is no matrix."""
    operand = schema_of(node).operand(1) if node.has(1) else None
    if operand is None or operand.role is not Role.WEIGHT or operand.channel_axis is not None:
        return False
    last = (node.out.rank - 1,)
    return node.params.get("axes", last) == last and bool(node.params.get("normalize_variance", True))


def _is_along_last(value: Value, out: Value) -> bool:
    return value.size == out.shape[-1] == value.shape[-1]


def _layers(graph: Graph, value: Value, channels: int, given: Container[str]) -> list[Node] | None:
    """The layers that read a value, also in another shape; None where anything else does."""
    if graph.is_output(value) or value.name in given or not value.users:
        return None
    found: list[Node] = []
    for user in value.users:
        if is_free_layer(user, given) and user.x(0) is value and takes_channels(user, channels):
            found.append(user)
            continue
        behind = _layers(graph, user.out, channels, given) if is_view(user, channels) else None
        if behind is None:
            return None
        found += behind
    return found


def _scales(place: Place, known: Statistics, alpha: float) -> Vector:
    """What each channel is divided by; one where a channel is always zero or never used."""
    assert known.channel_low is not None and known.channel_high is not None
    data = np.maximum(np.abs(known.channel_low), np.abs(known.channel_high)).astype(np.float64)
    weight = np.max([input_size(n, place.channels) for n in place.layers], axis=0)
    used = (data > 0) & (weight > 0)
    found = np.where(used, data, 1.0) ** alpha / np.where(used, weight, 1.0) ** (1 - alpha)
    return np.where(used, np.clip(found, 1 / MOST, MOST), 1.0)


def _migrate(place: Place, scales: Vector) -> None:
    for value in place.constants:
        data = data_of(value)
        value.data = (data / scales.reshape(data.shape)).astype(value.dtype.numpy)
    for node in place.layers:
        scale_input(node, scales)


def _listed(layers: Iterable[Node]) -> str:
    return ", ".join(f"'{n.name}'" for n in layers)
