"""Automatic mixed precision: which nodes need more than 8 bits so that the outputs are good enough.

Each unit (a node with the activation behind it) is put into fixed point alone; the noise that it then makes
at the outputs is its sensitivity. Noise of single units adds up, so the most sensitive ones are promoted
first, as many as it takes: to 16 bits, and where all of them are not enough, to floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from openqnn.errors import UsageError
from openqnn.ir import Array, DType, Given, Graph, Node
from openqnn.ir.clone import clone_graph
from openqnn.ops import schema_of
from openqnn.ops.schema import Moves
from openqnn.quant.apply_recipe import Calibrated, apply_recipe
from openqnn.quant.plan import Plan, carries
from openqnn.quant.recipe import FLOAT, Recipe
from openqnn.runtime.compare import Outputs

WIDE = 16
SENSED = 8  # samples that sensitivities are found with
Progress = Callable[[int, int], None]
Score = Callable[[Graph], float]  # of a graph in fixed point: more is better


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that get one width, by name; `cost` is what 16 bits add, in multiply-adds or elements."""

    names: tuple[str, ...]
    op: str
    cost: int


@dataclass(frozen=True, slots=True)
class Promotion:
    """A unit that got more bits (FLOAT for floating point). `share` is its part of the noise, 0 to 1."""

    unit: Unit
    width: int
    share: float


@dataclass(frozen=True, slots=True)
class Mixed:
    """The recipe that reaches the goal (or comes closest), what it took, and scores on the way.

    `total` is what all nodes cost, in the measure of the units.
    """

    recipe: Recipe
    promotions: tuple[Promotion, ...]
    before: float
    after: float
    reached: bool
    total: int = 0

    @property
    def cost(self) -> int:
        return sum(p.unit.cost for p in self.promotions)


def worst_sqnr(outputs: Outputs, fixed: Graph) -> float:
    """The ratio at the worst output, in dB."""
    return min((noise.sqnr for noise in outputs.noise_of(fixed)[0].values()), default=inf)


def find_widths(
    calibrated: Calibrated,
    recipe: Recipe,
    given: Mapping[str, Given],
    samples: Sequence[Mapping[str, Array]],
    goal: float,
    before: float,
    score: Score,
    build: Callable[[Recipe, Graph | None], Graph],
    progress: Progress | None = None,
) -> tuple[Mixed, Graph]:
    """The fewest promotions that bring the score from `before` to `goal`, and whose weights the graph has.

    `build` makes the graph of a recipe. What algorithms do to weights takes long: they do it once, with all
    activations in 16 bits, and the other graphs get those weights. Sensitivities are found without: they only
    have to be in the right order.
    """
    if not samples:
        raise UsageError("mixed precision needs samples to judge by")
    units = units_of(calibrated.graph, recipe, given)
    shares = _sensitivities(calibrated, recipe, given, samples[:SENSED], units, progress)
    ranked = sorted(units, key=lambda u: shares[u], reverse=True)
    wide = [(u, WIDE) for u in ranked] if recipe.act_bw < WIDE else []
    ladder = [*wide, *((u, FLOAT) for u in ranked)]
    climbed = lambda rungs: _with(recipe, _widths(ladder[:rungs]))
    finest = build(climbed(len(wide)), None)
    found, after = _fewest(ladder, lambda rungs: score(build(climbed(rungs), finest)), goal)
    noise = sum(shares.values()) or 1.0
    last = dict(ladder[:found])
    promotions = tuple(Promotion(u, width, shares[u] / noise) for u, width in last.items())
    total = sum(u.cost for u in units)
    mixed = Mixed(climbed(found), promotions, before, after, after >= goal, total)
    return mixed, finest


def units_of(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> list[Unit]:
    """What can be promoted: nodes that compute in fixed point, each with the activation that follows it.

    That is taken into the layer. One in 8 bits behind a layer in 16 is rounded twice, which may be worse
    than both in 8.
    """
    plan = Plan(clone_graph(graph), recipe, given)
    units: list[Unit] = []
    for node in plan.graph.nodes:
        schema = schema_of(node)
        if plan.node_width[node] == FLOAT or carries(node) or _follows(node):
            continue
        macs = schema.macs(node) if schema.macs is not None else sum(v.size for v in node.outputs)
        units.append(Unit((node.name, *_behind(node)), node.op, macs))
    return units


def _behind(node: Node) -> list[str]:
    """The nodes that belong to the one before them, by name."""
    found = [u for u in dict.fromkeys(node.out.users) if _follows(u)]
    return [name for u in found for name in (u.name, *_behind(u))]


def _follows(node: Node) -> bool:
    """Whether a node only clips what another one computes, or changes what a layer does number by number."""
    data = [v for v in node.inputs if v is not None and not v.is_constant]
    source = data[0].producer if len(data) == 1 else None
    if source is None or len(set(data[0].users)) != 1:
        return False
    schema = schema_of(node)
    return schema.clips or (schema.moves is Moves.ELEMENTWISE and schema_of(source).macs is not None)


def _sensitivities(
    calibrated: Calibrated,
    recipe: Recipe,
    given: Mapping[str, Given],
    samples: Sequence[Mapping[str, Array]],
    units: Sequence[Unit],
    progress: Progress | None,
) -> dict[Unit, float]:
    """For each unit the noise at the outputs, relative to the signal, with all others in floating point."""
    outputs = Outputs(calibrated.graph, samples)
    everything = {name: FLOAT for unit in units for name in unit.names}
    found: dict[Unit, float] = {}
    for index, unit in enumerate(units):
        widths = {name: width for name, width in everything.items() if name not in unit.names}
        fixed = apply_recipe(calibrated, _with(recipe, widths), given).graph
        noises = outputs.noise_of(fixed)[0].values()
        found[unit] = max((n.noise / n.signal for n in noises if n.signal > 0), default=0.0)
        if progress is not None:
            progress(index + 1, len(units))
    return found


def _fewest(
    ladder: Sequence[tuple[Unit, int]], judge: Callable[[int], float], goal: float
) -> tuple[int, float]:
    """How many rungs it takes to reach the goal, by halving; all of them where it cannot be reached."""
    low, high = 0, len(ladder)
    best = judge(high)
    if best < goal:
        return high, best
    while high - low > 1:
        middle = (low + high) // 2
        score = judge(middle)
        if score >= goal:
            high, best = middle, score
        else:
            low = middle
    return high, best


def take_weights(graph: Graph, rounded: Graph) -> None:
    """What an algorithm made of the weights and biases of another graph, where they have the same place."""
    known = {v.name: v for v in rounded.constants()}
    for value in graph.constants():
        other = known.get(value.name)
        if other is None or other.data is None or value.encoding is None or other.encoding is None:
            continue
        if (value.dtype, value.encoding) == (other.dtype, other.encoding):
            value.data = other.data
        elif value.dtype is DType.SFIXED_32 is other.dtype:  # biases go by the scale of the layer's input
            real = other.encoding.dequantize(other.data)
            value.data = value.encoding.quantize(real, signed=True).astype(value.dtype.numpy)


def _widths(rungs: Sequence[tuple[Unit, int]]) -> dict[str, int]:
    return {name: width for unit, width in rungs for name in unit.names}


def _with(recipe: Recipe, widths: Mapping[str, int]) -> Recipe:
    return replace(recipe, widths={**recipe.widths, **widths})


def described(mixed: Mixed) -> str:
    """One line: what it took."""
    wide = sum(p.width == WIDE for p in mixed.promotions)
    real = len(mixed.promotions) - wide
    return f"{mixed.before:.4g} -> {mixed.after:.4g} with {wide} in 16 bits and {real} in floating point"
