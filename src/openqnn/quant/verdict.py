"""Whether a graph in fixed point can be used: a verdict on its outputs, and on the parts that they join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from openqnn.ir import Graph, Value
from openqnn.ops.layout import permutation_of
from openqnn.quant.plan import carries
from openqnn.runtime.compare import Noise, Outputs, Part

GOOD, DOUBTFUL, USELESS = "good", "doubtful", "useless"
LEAST_GOOD, LEAST_USEFUL = 20.0, 10.0  # dB
LOST = 1.0  # dB: less than that is nothing
MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """How near an output is to floating point, or the part of it that a Concat takes from another tensor."""

    output: str
    part: str
    sqnr: float
    cosine: float

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
    """The word, what it rests on, and the cheapest change that helped."""

    word: str
    figures: tuple[Figure, ...]
    on: str
    remedy: Remedy | None = None

    @property
    def worst(self) -> Figure:
        return min(self.figures, key=lambda f: f.sqnr)

    def __str__(self) -> str:
        said = f"quantization is {self.word}: {shown(self.worst.sqnr)} at {self.worst.place}, {self.on}"
        if self.remedy is None:
            return said
        return f"{said}; with {self.remedy.what} ({self.remedy.option}): {shown(self.remedy.sqnr)}"


def shown(sqnr: float) -> str:
    if not isfinite(sqnr):
        return "exact" if sqnr > 0 else "nothing left"
    return f"{sqnr:.1f} dB" if sqnr >= LOST else f"nothing left ({sqnr:.1f} dB)"


def word_for(sqnr: float) -> str:
    return USELESS if sqnr < LEAST_USEFUL else DOUBTFUL if sqnr < LEAST_GOOD else GOOD


def figures_of(origin: Graph, outputs: Outputs, fixed: Graph) -> tuple[Figure, ...]:
    """A figure for each output, and one for each part of those that join several tensors."""
    whole, parts = outputs.noise_of(fixed, joined_parts(origin))
    found = [_figure(name, "", noise) for name, noise in whole.items()]
    return (*found, *(_figure(part.output, part.label, noise) for part, noise in parts.items()))


def _figure(output: str, part: str, noise: Noise) -> Figure:
    return Figure(output, part, noise.sqnr if noise.signal > 0 or noise.noise > 0 else inf, noise.cosine)


def judged(figures: Sequence[Figure], on: str, remedy: Remedy | None = None) -> Verdict | None:
    """Nothing for a graph without outputs in numbers."""
    if not figures:
        return None
    return Verdict(word_for(min(f.sqnr for f in figures)), tuple(figures), on, remedy)


def joined_parts(graph: Graph) -> list[Part]:
    """The parts of outputs that are put together last, such as boxes and scores."""
    return [part for value in graph.outputs for part in _parts(value)]


def _parts(output: Value) -> Iterable[Part]:
    node, turns = output.producer, list[Sequence[int]]()
    while node is not None and (turn := permutation_of(node)) is not None:
        turns.append(turn)
        node = node.x(0).producer
    if node is None or len(carries(node)) < 2 or "axis" not in node.params:
        return
    joined = [v for v in node.inputs if v is not None]
    axis = node.int("axis") % node.out.rank
    place = axis
    for turn in reversed(turns):
        place = list(turn).index(place)
    start = 0
    for value in joined if len(joined) <= MOST_PARTS else ():
        size = value.shape[axis]
        yield Part(output.name, value.name, place, start, start + size)
        start += size
