"""Cross-layer equalization: channels of neighbouring layers are scaled so that their weights are alike.

Relu and its kin are scale-equivariant: what a layer's channel is divided by, the next layer's weights for it
are multiplied with, and nothing else changes. Pairs of layers are brought to the same range per channel over
and over until all are (Nagel et al., arXiv:1906.04721). A channel that never falls near zero before its Relu
then hands that height to the next layer's bias, which is exact on the data that was seen.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from openqnn.ir import Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import schema_of
from openqnn.ops.conv import pads_of
from openqnn.quant.algorithms.channels import (
    Vector,
    add_to_bias,
    effect_of,
    input_size,
    is_free_layer,
    is_view,
    output_size,
    scale_input,
    scale_output,
    takes_channels,
)
from openqnn.quant.calibration import calibrate
from openqnn.quant.observe.observers import Statistics, Watch

RAMP, SLOPED = "Relu", "Prelu"
ROUNDS = 50
SETTLED = 1e-3  # a round that changes no channel by more ends it
MANY = 1e9  # numbers, the lowest of which a channel is taken to stay above


@dataclass(frozen=True, slots=True)
class Pair:
    """Two layers, and what stands between them: activations, and other shapes of the same data."""

    first: Node
    second: Node
    between: tuple[Node, ...]

    @property
    def channels(self) -> int:
        return self.first.out.shape[-1]

    @property
    def bounded(self) -> list[Node]:
        """Activations that have to lose their upper bound."""
        return [n for n in self.between if _is_bounded(n)]


def equalise_layers(
    graph: Graph,
    samples: Iterable[Mapping[str, Any]] | None = None,
    given: Container[str] = (),
    *,
    threads: int = 0,
) -> tuple[Graph, list[str]]:
    """A graph that computes the same with weights of more even ranges, and a word on each thing done.

    Tensors that are named in `given` have encodings already: layers that make or use them stay as they are.
    Without samples biases are not absorbed. Bounds such as that of Relu6 go.
    """
    made = clone_graph(graph)
    pairs = pairs_of(made, given)
    if not pairs:
        return made, ["cle: no two layers with Relu, PRelu or nothing between them"]
    said = [_unbound(node) for pair in pairs for node in pair.bounded]
    seen = _statistics(made, samples, pairs, threads) if samples is not None else {}
    scales = _even(pairs, seen)
    said += [f"cle: equalized '{p.first.name}' and '{p.second.name}'" for p in pairs]
    for pair, scale in zip(pairs, scales, strict=True):
        known = seen.get(pair.first.out.name)
        count = 0 if known is None else _absorb(made, pair, known, scale)
        if count:
            said.append(f"cle: {count} biases of '{pair.first.name}' went into '{pair.second.name}'")
    return made, said


def pairs_of(graph: Graph, given: Container[str] = ()) -> list[Pair]:
    """The pairs that may be equalized, in the order of the graph."""
    found = (_pair(graph, node, given) for node in graph.nodes if is_free_layer(node, given))
    return [pair for pair in found if pair is not None]


def _pair(graph: Graph, first: Node, given: Container[str]) -> Pair | None:
    channels, value = first.out.shape[-1], first.out
    between: list[Node] = []
    while len(value.users) == 1 and not graph.is_output(value) and value.name not in given:
        node = value.users[0]
        if is_free_layer(node, given):
            return Pair(first, node, tuple(between)) if takes_channels(node, channels) else None
        if not is_view(node, channels) and not _is_equivariant(node, value):
            return None
        between.append(node)
        value = node.out
    return None


def _is_equivariant(node: Node, data: Value) -> bool:
    """Whether scaling the data by positive numbers scales the result, but for an upper bound."""
    if node.op == SLOPED:
        return node.x(0) is data and node.x(1).is_constant
    return _is_relu(node) or _is_bounded(node)


def _is_relu(node: Node) -> bool:
    return node.op == RAMP


def _is_bounded(node: Node) -> bool:
    """An activation that is Relu but for an upper bound."""
    schema = schema_of(node)
    if not schema.clips or _is_relu(node):
        return False
    low = schema.output_range[0] if schema.output_range else node.params.get("min_value")
    return low == 0


def _unbound(node: Node) -> str:
    before, node.op, node.params = node.op, RAMP, {}
    return f"cle: {before} '{node.name}' became {RAMP}"


def _statistics(
    graph: Graph, samples: Iterable[Mapping[str, Any]], pairs: Sequence[Pair], threads: int
) -> dict[str, Statistics]:
    watch = Watch.EXTREMES | Watch.CHANNELS
    return calibrate(graph, samples, {p.first.out.name: watch for p in pairs}, threads=threads)


# -- scales --------------------------------------------------------------------------------------------------


def _even(pairs: Sequence[Pair], seen: Mapping[str, Statistics]) -> list[Vector]:
    """Scales weights until nothing changes; gives what each pair's channels were divided by in all."""
    total = [np.ones(p.channels) for p in pairs]
    for _ in range(ROUNDS):
        furthest = 0.0
        for index, pair in enumerate(pairs):
            step = _step(pair, seen.get(pair.first.out.name), total[index])
            scale_output(pair.first, 1 / step)
            scale_input(pair.second, step)
            total[index] *= step
            furthest = max(furthest, float(np.abs(np.log(step)).max()))
        if furthest < SETTLED:
            break
    return total


def _step(pair: Pair, known: Statistics | None, done: Vector) -> Vector:
    """sqrt(r1 r2) / r2 for each channel; one where a layer does not use the channel at all."""
    first, second = output_size(pair.first), input_size(pair.second, pair.channels)
    used = (first > 0) & (second > 0)
    step = np.sqrt(np.divide(first, second, out=np.ones_like(first), where=used))
    return step if known is None else np.maximum(step, _least(step, known, done))


def _least(step: Vector, known: Statistics, done: Vector) -> Vector:
    """What keeps a channel of small weights and a large bias from becoming the widest of its tensor.

    All channels scaled alike cost nothing, so it is the median scale that counts as none.
    """
    size = _height(known)
    usual = float(np.median(step * done))
    return size / max(float(size.max()), 1e-30) * usual / done


def _height(known: Statistics) -> Vector:
    assert known.channel_low is not None and known.channel_high is not None
    return np.maximum(np.abs(known.channel_low), np.abs(known.channel_high)).astype(np.float64)


# -- biases --------------------------------------------------------------------------------------------------


def _absorb(graph: Graph, pair: Pair, known: Statistics, scale: Vector) -> int:
    """Takes from the first layer's bias what every number seen lies above; gives for how many channels.

    Not where the next layer pads its data: zeros at the border would not take part.
    """
    if not pair.first.has(2) or _pads(pair.second):
        return 0
    assert known.channel_low is not None and known.channel_high is not None
    low, high = (a.astype(np.float64) / scale for a in (known.channel_low, known.channel_high))
    shift = np.maximum(low - _margin(known.count // pair.channels) * (high - low), 0)
    if not shift.any():
        return 0
    add_to_bias(graph, pair.first, -shift)
    add_to_bias(graph, pair.second, effect_of(pair.second, shift))
    return int(np.count_nonzero(shift))


def _margin(count: int) -> float:
    """How far below so many numbers others may still come, in parts of their range.

    The law is that of bell-shaped data: the lowest of n numbers falls with the root of log n.
    """
    return max(sqrt(log(MANY) / log(max(count, 2))) - 1, 0) / 2


def _pads(node: Node) -> bool:
    return "pad_amount" in node.params and bool(np.any(pads_of(node, node.x(0).rank - 2)))
