"""Attribution of the error at a graph's outputs: one layer alone in fixed point, or one alone in floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from openqnn.analysis.accuracy.layer_errors import Samples
from openqnn.analysis.accuracy.layers import Layer
from openqnn.analysis.accuracy.tally import power_of_difference
from openqnn.ir import Array, DType, Graph, Port, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import Builder
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.metrics import decibels

DELTA = "error of "
TOGETHER = 256 << 20  # bytes of errors that one compiled graph takes
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Kept:
    """The error that each layer adds, sample by sample, by the tensor's name."""

    samples: Samples
    errors: Sequence[Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Attribution:
    """By the name of a layer: the SQNR of the worst output in dB where the layer alone is in fixed point
    (`only`), and where all others are (`without`). `all` is the SQNR with the errors of all layers."""

    only: Mapping[str, float]
    without: Mapping[str, float]
    all: float


def attribute_errors(
    real: Graph,
    layers: Sequence[Layer],
    kept: Kept,
    worst: Sequence[Layer] = (),
    progress: Progress | None = None,
    known: Mapping[str, float] | None = None,
    keep: Callable[[Attribution], None] | None = None,
) -> Attribution:
    """What the errors that layers add do to the outputs, one by one, and what the `worst` ones do there.

    A layer's error is added to what floating point has in its place, and the rest runs in floating point: one
    graph, compiled once, takes the errors of all layers as inputs. What is `known` of single layers is not
    computed again; `keep` gets what was found after each.
    """
    noisy = [layer for layer in layers if any(np.any(e.get(n)) for e in kept.errors for n in layer.outputs)]
    had = known or {}
    only = {layer.name: had[layer.name] for layer in noisy if layer.name in had}
    without: dict[str, float] = {}
    everything = inf
    parts = list(_parts(noisy, kept))
    for part in parts:
        bench = ErrorBench(real, part, kept)
        for layer in (y for y in part if y.name not in only):
            only[layer.name] = bench.with_errors([layer])
            if keep is not None:
                keep(Attribution(only, {}, inf))
            if progress is not None:
                progress(len(only), len(noisy))
        if len(parts) == 1:  # errors of layers that are not in the graph cannot be put in
            everything = bench.with_errors(part)
            without = bench.without_errors(part, worst)
        bench.close()
    return Attribution(only, without, everything)


class ErrorBench:
    """The graph in floating point with an input for the error of each layer of a part."""

    def __init__(self, real: Graph, part: Sequence[Layer], kept: Kept) -> None:
        self.graph = _with_deltas(real, [name for layer in part for name in layer.outputs])
        self.executable = CpuExecutable(self.graph, many=True)
        self.kept = kept
        self.given = [accepted(real, sample) for sample in kept.samples]
        wanted = [v for v in self.graph.inputs if v.name.startswith(DELTA)]
        self.zeros = {v.name: np.zeros(v.shape, np.float32) for v in wanted}
        self.clean = list(self.executable.run_many([{**g, **self.zeros} for g in self.given]))

    def close(self) -> None:
        self.executable.close()

    def with_errors(self, layers: Sequence[Layer]) -> float:
        """The SQNR of the worst output, in dB."""
        return _worst(self.graph, self.clean, self.outputs_with(layers))

    def without_errors(self, part: Sequence[Layer], worst: Sequence[Layer]) -> dict[str, float]:
        """For each of the worst layers the SQNR where all others of the part have their errors."""
        others = {layer.name: [o for o in part if o is not layer] for layer in worst if layer in part}
        return {name: self.with_errors(rest) for name, rest in others.items()}

    def outputs_with(self, layers: Sequence[Layer]) -> list[dict[str, Array]]:
        """The outputs of each sample, where these layers have their errors, by the names of outputs."""
        names = [name for layer in layers for name in layer.outputs]
        feeds = [
            {**given, **self.zeros, **{DELTA + n: errors[n] for n in names if DELTA + n in self.zeros}}
            for given, errors in zip(self.given, self.kept.errors, strict=True)
        ]
        return list(self.executable.run_many(feeds))


def _parts(layers: Sequence[Layer], kept: Kept) -> Iterator[list[Layer]]:
    part: list[Layer] = []
    size = 0
    for layer in layers:
        own = sum(kept.errors[0][n].nbytes for n in layer.outputs if n in kept.errors[0])
        if part and size + own > TOGETHER:
            yield part
            part, size = [], 0
        part.append(layer)
        size += own
    if part:
        yield part


def _with_deltas(real: Graph, names: Sequence[str]) -> Graph:
    """The graph with an input for each tensor that is added to it."""
    graph = clone_graph(real)
    wanted, builder = set(names), Builder(graph)
    values = [
        v for v in graph.values() if v.name in wanted and v.dtype is DType.FLOAT_32 and not v.is_constant
    ]
    for value in values:
        delta = Value(DELTA + value.name, value.dtype, value.shape)
        users = list(dict.fromkeys(value.users))
        graph.inputs.append(delta)
        graph.ports[delta.name] = Port(delta.dtype, delta.shape)
        moved = builder.add(value, delta)
        for user in users:
            for index, read in enumerate(user.inputs):
                if read is value:
                    graph.set_input(user, index, moved)
        graph.outputs = [moved if v is value else v for v in graph.outputs]
    graph.sort()
    return graph


def _worst(graph: Graph, clean: Sequence[Mapping[str, Array]], noisy: Sequence[Mapping[str, Array]]) -> float:
    worst = inf
    for value in graph.outputs:
        if not value.dtype.is_float:
            continue
        signal = sum(float(np.square(a[value.name], dtype=np.float64).sum()) for a in clean)
        noise = sum(
            power_of_difference(a[value.name], b[value.name]) for a, b in zip(clean, noisy, strict=True)
        )
        worst = min(worst, decibels(signal, noise))
    return worst
