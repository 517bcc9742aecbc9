"""From a graph in floating point to one in fixed point: one pass over the data, then any recipe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from openqnn.errors import OpenQnnWarning, UsageError
from openqnn.ir import MODEL, Array, Given, Graph, Node
from openqnn.ir.clone import clone_graph
from openqnn.ops.schema import Role
from openqnn.quant.apply import Applied, Apply
from openqnn.quant.calibration import calibrate
from openqnn.quant.encode import limits
from openqnn.quant.observe.observers import Statistics, Watch
from openqnn.quant.plan import Group, Plan, is_real, operands
from openqnn.quant.recipe import BIAS_WIDTHS, FLOAT, Method, Recipe
from openqnn.quant.samples import OTHER_SCALE
from openqnn.quant.softmax_masks import with_tops

Samples = Iterable[Mapping[str, Array]]
Progress = Callable[[int, "int | None"], None]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A graph in floating point and what was seen of its tensors."""

    graph: Graph
    statistics: Mapping[str, Statistics]


def measure(
    graph: Graph, samples: Samples | None, recipe: Recipe, given: Mapping[str, Given],
    *, threads: int = 0, progress: Progress | None = None,
) -> Calibrated:  # fmt: skip
    """One pass over the samples, for all that the recipe or a change of its widths will need."""
    wanted = watched(graph, recipe, given)
    _say_kept_widths(graph, recipe, given)
    if samples is None:
        unknown = [group for group in Plan(clone_graph(graph), recipe, given).groups if _is_unknown(group)]
        if unknown:
            raise UsageError(
                f"{len(unknown)} tensors have no encoding, and there is no data to find their ranges:"
                f" '{unknown[0].members[0].name}' for one",
                hint="give calibration data, or encodings for all tensors, or choose float_fallback",
            )
        return Calibrated(graph, {})
    probed, tops = with_tops(graph)
    coded = [v.name for v in graph.inputs if v.name in given and v.name not in wanted and is_real(v)]
    wanted |= dict.fromkeys([*tops, *coded], Watch.EXTREMES)
    seen = dict(calibrate(probed, samples, wanted, threads=threads, progress=progress))
    for name in coded:
        _say_other_scale(name, seen.pop(name), given[name])
    return Calibrated(graph, seen)


def _say_kept_widths(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> None:
    """Tensors that keep the width of the model's own encodings though another one was asked for."""
    usual, biases = Recipe(), max(BIAS_WIDTHS)
    for option, asked, unasked in (
        ("weight_bw", recipe.weight_bw, usual.weight_bw),
        ("act_bw", recipe.act_bw, usual.act_bw),
    ):
        known = [
            (v.name, given[v.name])
            for v in graph.values()
            if v.name in given and v.is_constant == (option == "weight_bw")
        ]
        kept = [
            (name, said.bitwidth)
            for name, said in known
            if said.source == MODEL and said.encoding is not None and said.bitwidth not in (asked, biases)
        ]
        if asked != unasked and kept:
            name, width = kept[0]
            warnings.warn(
                f"{option}={asked}: {len(kept)} tensors keep the width of the model's own encodings, '{name}'"
                f" {width} bits for one; with ignore_encodings they get others",
                OpenQnnWarning,
                stacklevel=4,
            )


def _say_other_scale(name: str, seen: Statistics, given: Given) -> None:
    """Data of a normalisation that cannot be the one that an input's encoding was found with."""
    size = max(-seen.low, seen.high)
    most = max(map(abs, limits(given.encoding, given.signed))) if given.encoding is not None else size
    if max(size, most) > OTHER_SCALE * min(size, most) and seen.count:
        warnings.warn(
            f"calibration data: input '{name}' reaches {size:.4g}, its encoding ({given.source}) {most:.4g}:"
            " are both for the same normalisation?",
            OpenQnnWarning,
            stacklevel=4,
        )


def watched(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> dict[str, Watch]:
    """The tensors to look at: those whose range decides for a group, and those that stay real."""
    plan = Plan(graph, recipe, given)
    how = Watch.EXTREMES if recipe.act.method is Method.MIN_MAX else Watch.EXTREMES | Watch.HISTOGRAM
    names = [v.name for g in plan.groups if g.given is None for v in g.origins]
    names += [v.name for v, width in plan.width.items() if width == FLOAT and is_real(v)]
    return dict.fromkeys(names, how)


def apply_recipe(calibrated: Calibrated, recipe: Recipe, given: Mapping[str, Given]) -> Applied:
    """The graph in fixed point; the one in floating point is left as it is."""
    return Apply(Plan(clone_graph(calibrated.graph), recipe, given), calibrated.statistics).run()


def float_where_unknown(
    graph: Graph, recipe: Recipe, given: Mapping[str, Given]
) -> tuple[Recipe, dict[str, Given]]:
    """Nodes whose data or results have no encoding stay in floating point, and so do such graph inputs."""
    known, widths = dict(given), dict(recipe.widths)
    while True:
        plan = Plan(clone_graph(graph), replace(recipe, widths=widths), known)
        unknown = [v for group in plan.groups if group.given is None for v in group.members]
        unread = [node.name for node in plan.graph.nodes if _reads_unknown(plan, node)]
        if not unknown and not unread:
            return replace(recipe, widths=widths), known
        widths.update(dict.fromkeys(unread, FLOAT))
        for value in unknown:
            if value.producer is None:
                known[value.name] = Given(MODEL, 32, floating=True)
            else:
                widths[value.producer.name] = FLOAT


def _reads_unknown(plan: Plan, node: Node) -> bool:
    """Whether a node of fixed point reads a tensor that stays real, of which nothing is known.

    Of constants, biases follow from other encodings, and a single number is exact in any, however often it
    stands there.
    """
    if plan.node_width[node] == FLOAT:
        return False
    for _, value, operand in operands(node):
        said = plan.given.get(value.name)
        if not is_real(value) or (said is not None and said.encoding is not None):
            continue
        if value.data is not None and said is None and operand.role is not Role.BIAS and np.ptp(value.data):
            return True
        if plan.width.get(value) == FLOAT:
            return True
    return False


def _is_unknown(group: Group) -> bool:
    return group.given is None and not group.has_fixed_range
