"""How far a graph in fixed point is from the one in floating point, tensor by tensor, on the same samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from openqnn.errors import InputError
from openqnn.ir import Array, Encoding, Graph, Value
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.metrics import cosine_of_sums, decibels

TOGETHER = 192 << 20  # bytes of tensors of one sample that are held at a time
BINS = 64


@dataclass(slots=True)
class Noise:
    """Sums over all samples: of the real tensor, of the fixed one, and of what its encoding alone costs."""

    encoding: Encoding | None
    signal: float = 0.0
    noise: float = 0.0
    own: float = 0.0
    product: float = 0.0
    power: float = 0.0
    clipped: int = 0
    count: int = 0
    low: float = 0.0
    high: float = 0.0
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def sqnr(self) -> float:
        """Signal to noise ratio in dB, with the noise that comes from the tensors before. Where no number was
        finite nothing is left, and not everything."""
        return decibels(self.signal, self.noise) if self.count else -inf

    @property
    def own_sqnr(self) -> float:
        """The SQNR that the encoding of this tensor alone allows."""
        return decibels(self.signal, self.own)

    @property
    def cosine(self) -> float:
        return cosine_of_sums(self.product, self.signal, self.power)

    def add(self, real: Array, fixed: Array, signed: bool) -> None:
        """One sample's tensor in both graphs, as real numbers. What is infinite (a mask) or NaN in floating
        point is left out: no encoding reaches it, and ranges are measured without it."""
        good = np.isfinite(real).reshape(-1)
        x, y = (a.astype(np.float64).reshape(-1)[good] for a in (real, fixed))
        if not x.size:
            return
        self.signal += float(x @ x)
        self.power += float(y @ y)
        self.product += float(x @ y)
        self.noise += float(np.square(x - y).sum())
        self.count += x.size
        if self.encoding is not None and self.encoding.axis is None:
            alone = self.encoding.dequantize(self.encoding.quantize(x, signed))
            self.own += float(np.square(x - alone).sum())
            self.clipped += int((np.abs(x - alone) > self.encoding.scale[0]).sum())
        self._spread(x)

    def _spread(self, x: Array) -> None:
        """The histogram has the range of all samples so far: where that grows, bins go where their middles
        lie."""
        low, high = float(x.min()), float(x.max())
        if not len(self.counts):
            self.low, self.high, self.counts = low, high, np.zeros(BINS, np.int64)
        elif low < self.low or self.high < high:
            middles = self.low + (np.arange(BINS) + 0.5) * ((self.high - self.low) / BINS)
            self.low, self.high = min(low, self.low), max(high, self.high)
            self.counts = np.bincount(self._places(middles), self.counts, BINS).astype(np.int64)
        self.counts = self.counts + np.bincount(self._places(x), minlength=BINS)

    def _places(self, x: Array) -> Array:
        span = (self.high - self.low) or 1.0
        return np.clip((x - self.low) * (BINS / span), 0, BINS - 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output: some places along one axis, and what they are called."""

    output: str
    label: str
    axis: int
    start: int
    stop: int

    def of(self, array: Array) -> Array:
        return array.take(range(self.start, self.stop), self.axis)


def measure_noise(
    real: Graph, fixed: Graph, samples: Iterable[Mapping[str, Array]], names: Sequence[str] | None = None
) -> dict[str, Noise]:
    """The noise of the named tensors, or of all that both graphs have and that are in fixed point."""
    pairs = _pairs(real, fixed, names)
    found = {name: Noise(value.encoding) for name, (_, value) in pairs.items()}
    held = list(samples)
    if not held:
        raise InputError("there are no samples to compare on", hint="give at least one input set")
    for part in _parts(list(pairs.values())):
        sides = [_run(g, held, [p[i] for p in part]) for i, g in enumerate((real, fixed))]
        for before, after in zip(*sides, strict=True):
            for x, y in part:
                found[y.name].add(before[x.name], _real(y, after[y.name]), y.dtype.signed)
    return found


def output_noise(real: Graph, fixed: Graph, samples: Iterable[Mapping[str, Array]]) -> dict[str, Noise]:
    """The noise of the graph's outputs."""
    return measure_noise(real, fixed, samples, [v.name for v in fixed.outputs])


class Outputs:
    """What the graph in floating point gives, kept to hold many others against it."""

    def __init__(self, real: Graph, samples: Iterable[Mapping[str, Array]]) -> None:
        self._real, self._samples = real, list(samples)
        self._arrays = list(_run(real, self._samples))

    def range_of(self, part: Part) -> tuple[float, float]:
        """The least and the largest number of a part of an output, over all samples."""
        found = [part.of(arrays[part.output]) for arrays in self._arrays]
        return min(float(a.min()) for a in found), max(float(a.max()) for a in found)

    def noise_of(
        self, fixed: Graph, parts: Sequence[Part] = ()
    ) -> tuple[dict[str, Noise], dict[Part, Noise]]:
        """The noise of the outputs, as `output_noise` tells it, and that of some parts of them."""
        pairs = _pairs(self._real, fixed, [v.name for v in fixed.outputs])
        found = {name: Noise(value.encoding) for name, (_, value) in pairs.items()}
        of_parts = {part: Noise(None) for part in parts if part.output in pairs}
        for before, after in zip(self._arrays, _run(fixed, self._samples), strict=True):
            sides = {y.name: (before[x.name], _real(y, after[y.name])) for x, y in pairs.values()}
            for name, (x, y) in sides.items():
                found[name].add(x, y, pairs[name][1].dtype.signed)
            for part, noise in of_parts.items():
                x, y = sides[part.output]
                noise.add(part.of(x), part.of(y), signed=False)
        return found, of_parts


def _pairs(real: Graph, fixed: Graph, names: Sequence[str] | None) -> dict[str, tuple[Value, Value]]:
    known = {v.name: v for v in real.values() if not v.is_constant}
    shared = {
        v.name: (known[v.name], v)
        for v in fixed.values()
        if not v.is_constant and v.name in known and known[v.name].shape == v.shape
    }
    if names is not None:
        return {name: shared[name] for name in names if name in shared}
    return {name: pair for name, pair in shared.items() if pair[1].encoding is not None}


def _parts(pairs: Sequence[tuple[Value, Value]]) -> Iterator[list[tuple[Value, Value]]]:
    part: list[tuple[Value, Value]] = []
    size = 0
    for pair in pairs:
        if part and size + pair[0].nbytes > TOGETHER:
            yield part
            part, size = [], 0
        part.append(pair)
        size += pair[0].nbytes
    if part:
        yield part


def _is_border(graph: Graph, value: Value) -> bool:
    return value.producer is None or graph.is_output(value)


def _run(
    graph: Graph, samples: Sequence[Mapping[str, Array]], values: Sequence[Value] = ()
) -> Iterator[dict[str, Array]]:
    """For each sample the graph's inputs, its outputs and some of its other values."""
    extra = [v for v in values if not _is_border(graph, v)]
    given = [accepted(graph, sample) for sample in samples]
    executable = CpuExecutable(graph, extra=extra, many=True)
    for arrays, results in zip(given, executable.run_many(given), strict=True):
        yield {**arrays, **results}
    executable.close()


def _real(value: Value, array: Array) -> Array:
    return array if value.encoding is None else value.encoding.dequantize(array)
