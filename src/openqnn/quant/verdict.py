"""Whether a graph in fixed point can be used: a verdict on its outputs, and on the parts that they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from openqnn.ir import Graph
from openqnn.passes.boundary.split_joins import joins_of
from openqnn.runtime.compare import Noise, Outputs, Part

GOOD, DOUBTFUL, USELESS = "good", "doubtful", "useless"
LEAST_GOOD, LEAST_USEFUL = 20.0, 10.0  # dB
LOST = 1.0  # dB: less than that is nothing
MOST_PARTS = 8
WIDEST = 16
FEW = 32  # steps of an output that one of its parts should have


@dataclass(frozen=True, slots=True)
class Figure:
    """How near an output is to floating point, or the part of it that a Concat takes from another tensor."""

    output: str
    part: str
    sqnr: float
    cosine: float
    count: int = 1

    @property
    def place(self) -> str:
        return f"output '{self.output}'" + (f", part '{self.part}'" if self.part else "")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was tried, what it is as options, and what the worst output has with it."""

    what: str
    option: str
    sqnr: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, what it rests on, the cheapest change that helped, and what is to be said of joins."""

    word: str
    figures: tuple[Figure, ...]
    on: str
    remedy: Remedy | None = None
    joins: tuple[str, ...] = ()

    @property
    def worst(self) -> Figure:
        return min(self.figures, key=lambda f: f.sqnr)

    def __str__(self) -> str:
        said = f"quantization is {self.word}: {shown(self.worst.sqnr)} at {self.worst.place}, {self.on}"
        if not self.worst.count:
            return f"{said}: in floating point, too, none of its numbers is finite there; look at the samples"
        if self.remedy is None:
            return said
        return f"{said}; with {self.remedy.what} ({self.remedy.option}): {shown(self.remedy.sqnr)}"


def shown(sqnr: float) -> str:
    if not isfinite(sqnr):
        return "exact" if sqnr > 0 else "nothing left"
    return f"{sqnr:z.1f} dB" if sqnr >= LOST else f"nothing left ({sqnr:z.1f} dB)"


def word_for(sqnr: float) -> str:
    return USELESS if sqnr < LEAST_USEFUL else DOUBTFUL if sqnr < LEAST_GOOD else GOOD


def figures_of(origin: Graph, outputs: Outputs, fixed: Graph) -> tuple[Figure, ...]:
    """A figure for each output, and one for each part of those that join several tensors."""
    whole, parts = outputs.noise_of(fixed, joined_parts(origin))
    found = [_figure(name, "", noise) for name, noise in whole.items()]
    return (*found, *(_figure(part.output, part.label, noise) for part, noise in parts.items()))


def _figure(output: str, part: str, noise: Noise) -> Figure:
    silent = noise.count > 0 and noise.signal == noise.noise == 0  # zeros that stay zeros
    return Figure(output, part, inf if silent else noise.sqnr, noise.cosine, noise.count)


def judged(figures: Sequence[Figure], on: str, remedy: Remedy | None = None) -> Verdict | None:
    """Nothing for a graph without outputs in numbers."""
    if not figures:
        return None
    return Verdict(word_for(min(f.sqnr for f in figures)), tuple(figures), on, remedy)


def joined_parts(graph: Graph) -> list[Part]:
    """The parts of outputs that are put together last, such as boxes and scores."""
    return [
        Part(join.output, piece.label, join.axis, piece.start, piece.stop)
        for join in joins_of(graph)
        for piece in join.pieces
        if len(join.pieces) <= MOST_PARTS
    ]


def coarse_joins(origin: Graph, outputs: Outputs, fixed: Graph) -> tuple[str, ...]:
    """What is to be said of outputs that join values of so different ranges that one gets few steps."""
    encodings = {v.name: v.encoding for v in fixed.outputs}
    found: dict[str, str] = {}
    for part in joined_parts(origin):
        encoding, (low, high) = encodings.get(part.output), outputs.range_of(part)
        if encoding is None or encoding.axis is not None or not 0 < high - low < FEW * encoding.scale[0]:
            continue
        step = f"one step of its {encoding.bitwidth} bits is {encoding.scale[0]:.3g}"
        finer = "16-bit activations have finer steps, and " if encoding.bitwidth < WIDEST else ""
        found.setdefault(
            part.output,
            f"output '{part.output}' joins values of different ranges: {step}, and part '{part.label}' has"
            f" values from {low:.3g} to {high:.3g}; {finer}with --split_outputs (openqnn.split_outputs) the"
            " graph ends before the join and gives the parts",
        )
    return tuple(found.values())
