"""The Python API of the quantizer: `quantize` takes a model and data, and gives a graph in fixed point."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from numbers import Real
from typing import Any, TypeAlias, Unpack

from openqnn.api.files import open_graph
from openqnn.api.judge import judge_graph, judge_set, say_verdict
from openqnn.api.session import Session
from openqnn.emit import lower
from openqnn.errors import InputError, LibraryError, OpenQnnWarning, UnsupportedError, UsageError
from openqnn.formats.encodings import read_encodings
from openqnn.ir import BUILTIN_PACKAGE, MODEL, Array, Given, Graph, Node
from openqnn.passes.set_float_width import set_float_width
from openqnn.qnn.library import find_library
from openqnn.qnn.net import qnn_name
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import find_soc
from openqnn.quant.algorithms import (
    ADAROUND,
    change_fixed,
    change_real,
    check_names,
    wants_samples_before,
)
from openqnn.quant.algorithms.gptq import sample_limit
from openqnn.quant.algorithms.mixed_precision import WIDE, Mixed, Score, find_widths, take_weights, worst_sqnr
from openqnn.quant.apply import Applied
from openqnn.quant.apply_recipe import Calibrated, Progress, apply_recipe, float_where_unknown, measure
from openqnn.quant.auto_widths import Wide, wide_nodes, with_wide
from openqnn.quant.held_out import HeldOut, TestSet, holding_back
from openqnn.quant.overrides import along_channels, read_overrides
from openqnn.quant.plan import is_weight, operands
from openqnn.quant.recipe import BIAS_WIDTHS, FLOAT, Choices, Recipe
from openqnn.quant.sample_reservoir import SampleReservoir, keeping, peeked
from openqnn.quant.samples import Samples, samples_of
from openqnn.quant.verdict import Verdict
from openqnn.runtime.compare import Outputs
from openqnn.targets.htp.boundary import keep_types
from openqnn.targets.htp.limits import is_from_zero
from openqnn.targets.registry import HTP, find_target, fixed_point_targets
from openqnn.vendor.validate import Verdict as Validity
from openqnn.vendor.validate import validate_net

WIDE_BIAS = max(BIAS_WIDTHS)
DEFAULT_ALGORITHMS = (ADAROUND,)
ROUNDS = 8  # each gives up fixed point in the nodes that HTP refuses; more were never needed

Run: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Array]]
Metric: TypeAlias = Callable[[Run], float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a graph in fixed point came about.

    It was made from `real`, which algorithms made from `origin`: both in floating point. `said` is what they
    did, and `mixed` what it took to reach a target. `tested` is what figures are measured on, and `verdict`
    what they say.
    """

    origin: Graph
    real: Graph
    said: tuple[str, ...]
    mixed: Mixed | None
    tested: TestSet | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """A score to reach: that of a metric, or without one the SQNR of the worst output in dB."""

    least: float
    metric: Metric | None = None


def quantize(
    model: Graph | str | os.PathLike[str],
    data: Any = None,
    *,
    recipe: Recipe | None = None,
    overrides: str | os.PathLike[str] | None = None,
    ignore_encodings: bool = False,
    given: Mapping[str, Given] | None = None,
    float_fallback: bool = False,
    algorithms: str | Sequence[str] = DEFAULT_ALGORITHMS,
    target_sqnr: float | None = None,
    target_metric: tuple[Metric, float] | None = None,
    native: bool = False,
    test_data: Any = None,
    hold_back: bool = True,
    judge: bool = True,
    backend: str = HTP,
    soc: str | int | None = None,
    progress: Progress | None = None,
    searching: Progress | None = None,
    outcome: Callable[[Outcome], None] | None = None,
    threads: int = 0,
    **choices: Unpack[Choices],
) -> Graph:
    """The graph of a model with 8-bit (or other) integers inside; floats go in and come out of a Session.

    `data` is an input list, a folder or file of arrays, an iterable of arrays or of dicts by input name, or
    an object with `get_next()`; `native` files hold the inputs' own types. The choices are the fields of
    `openqnn.quant.recipe.Recipe`: by default activations have 8 bits, and 16 where that costs little;
    `act_bw=8` means all of them. Encodings of the file `overrides` count more than the model's own, and these
    more than calibration; `ignore_encodings` leaves the model's out. With `float_fallback` nothing is
    calibrated: nodes whose tensors have no encoding stay in floats.
    `algorithms` change weights so that less is lost: "adaround" (the default), "bias_correction", "cle",
    "smoothquant". With `target_sqnr`, in dB at the worst output, or with `target_metric` (a function of `run`
    that gives a score, and the score to reach) the nodes that need it get 16 bits or floating point.
    Figures are measured on `test_data`, or on samples that are held back: of eight samples or more one in
    four, eight at most, unless `hold_back` is off. The verdict is in what `outcome` is called with, and a
    warning (AccuracyWarning) where it is not good; `judge` off spares the time for it. The graph is made for
    "htp", whose library is asked what it takes, or "cpu", the `backend` that takes all.
    """
    names = check_names(algorithms)
    _check_usage(backend, float_fallback, data)
    chosen, goal = recipe_of(recipe, choices), _goal(target_sqnr, target_metric, data)
    opened = _opened(model)
    known = _known(opened, overrides, ignore_encodings) | dict(given or {})
    origin = prepared_for(opened, chosen, backend, WIDE if goal else 0, known)
    chosen, known = _settled(origin, chosen, known, float_fallback)
    samples, held = _split(origin, data, native, hold_back and test_data is None)
    real, said, kept = _changed(origin, names, samples, known, threads)
    chosen, wide = (chosen, {}) if float_fallback else _widened(real, chosen, known)
    calibrated = measure(real, kept, chosen, known, threads=threads, progress=progress)
    tested = judge_set(origin, test_data, native, held, kept)
    job = _Job(calibrated, origin, known, kept, names, backend, soc, threads, wide, tested)
    made, mixed = job.done(chosen, goal, searching)
    verdict = judge_graph(origin, made, tested, calibrated, chosen, known) if judge and tested else None
    _finish(made, opened, known, float_fallback, choices.get("bias_bw", WIDE_BIAS))
    if outcome is not None:
        outcome(Outcome(origin, real, tuple(said), mixed, tested, verdict))
    say_verdict(verdict)
    return made


def _settled(
    origin: Graph, chosen: Recipe, known: Mapping[str, Given], float_fallback: bool
) -> tuple[Recipe, Mapping[str, Given]]:
    """Recipe and given encodings for the graph as it was prepared."""
    known = along_channels(origin, known)
    return float_where_unknown(origin, chosen, known) if float_fallback else (chosen, known)


def _split(
    origin: Graph, data: Any, native: bool, hold_back: bool
) -> tuple[Samples | HeldOut | None, HeldOut | None]:
    """The samples to work with, and what holds some of them back."""
    samples = None if data is None else samples_of(origin, data, native=native)
    held = holding_back(origin, samples) if samples is not None and hold_back else None
    return (samples if held is None else held), held


def _check_usage(backend: str, float_fallback: bool, data: Any) -> None:
    if backend not in (known := fixed_point_targets()):
        names = " or ".join(map(repr, known))
        raise UsageError(f"graphs in fixed point are made for {names}, not for {backend!r}")
    if float_fallback and data is not None:
        raise UsageError("float_fallback takes no data: it is for encodings that come with the model")


def _opened(model: Graph | str | os.PathLike[str]) -> Graph:
    """The graph, unless it is a result of this quantizer or of another: that has nothing left to round."""
    graph = model if isinstance(model, Graph) else open_graph(model)
    real = any(not _reads_fixed(n) and n.outputs[0].dtype.is_float for n in graph.nodes)
    layers = (is_weight(v, o) and v.dtype.is_fixed for n in graph.nodes for _, v, o in operands(n))
    if (_computes_fixed(graph) and not real) or any(layers):
        raise UsageError(
            f"graph '{graph.name}' is in fixed point already",
            hint="quantize the one in floating point that it was made from",
        )
    return graph


def _reads_fixed(node: Node) -> bool:
    return any(v is not None and v.dtype.is_fixed for v in node.inputs)


def _computes_fixed(graph: Graph) -> bool:
    """Whether a node does more in fixed point than bring it into or out of floats."""
    return any(_reads_fixed(n) and n.outputs[0].dtype.is_fixed for n in graph.nodes)


def _finish(
    made: Graph, opened: Graph, known: Mapping[str, Given], float_fallback: bool, bias_bw: int
) -> None:
    """Integers go in and come out in the types that they had, and what nobody asked for is told."""
    keep_integers(made, opened)
    say_wide_biases(made, bias_bw)
    _say_from_zero(made, known)
    if float_fallback and not _computes_fixed(made):
        warnings.warn(
            "no node has encodings for all that it reads and makes: the graph stays in floating point",
            OpenQnnWarning,
            stacklevel=3,
        )


def keep_integers(made: Graph, opened: Graph) -> None:
    """Gives a graph in fixed point the integer inputs and outputs that the one it was made from has."""
    keep_types(made, {v.name: v.dtype for v in (*opened.inputs, *opened.outputs) if v.dtype.is_integer})


def _say_from_zero(made: Graph, known: Mapping[str, Given]) -> None:
    """Given encodings that HTP would not heed: it stores the results of some ops from zero on."""
    moved = [
        node.out.name
        for node in made.nodes
        if is_from_zero(node) and (said := known.get(node.out.name)) is not None and said.encoding is not None
        if node.out.encoding not in (None, said.unsigned().encoding)
    ]
    if moved:
        warnings.warn(
            f"HTP stores the results of some ops from zero on: the range that is given for '{moved[0]}'"
            f"{f' and {len(moved) - 1} more' if len(moved) > 1 else ''} starts there, in finer steps",
            OpenQnnWarning,
            stacklevel=4,
        )


def say_wide_biases(made: Graph, width: int) -> None:
    """Biases that do not have the width that somebody asked for."""
    wide = [v for v in made.constants() if v.encoding is not None and v.encoding.bitwidth == WIDE_BIAS]
    if width != WIDE_BIAS and wide:
        warnings.warn(
            f"{len(wide)} biases have {WIDE_BIAS} bits, not {width}: HTP has no others beside weights with"
            f" a scale for each channel, '{wide[0].name}' for one",
            OpenQnnWarning,
            stacklevel=3,
        )


def _say_unused_steps(made: Graph, recipe: Recipe) -> None:
    """Steps are those of a width, which tensors may not have."""
    if recipe.steps is None or any(
        v.encoding and v.encoding.bitwidth == recipe.steps_width for v in made.values()
    ):
        return
    low, high = recipe.steps
    warnings.warn(
        f"steps have no effect: {low:#x} to {high:#x} are those of {recipe.steps_width} bits, as no tensor"
        " has",
        OpenQnnWarning,
        stacklevel=4,
    )


def _widened(graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> tuple[Recipe, Mapping[str, Wide]]:
    """The recipe with the widths of nodes that have others of their own accord, and why they have."""
    wide = wide_nodes(graph, recipe, given)
    return with_wide(recipe, wide), wide


def _changed(
    origin: Graph,
    names: Sequence[str],
    samples: Samples | HeldOut | None,
    given: Mapping[str, Given],
    threads: int,
) -> tuple[Graph, list[str], SampleReservoir | None]:
    """What algorithms make of the graph in floating point, what they did, and the samples to come."""
    if samples is None:
        return *change_real(origin, names, None, given, threads), None
    limit = sample_limit(origin)
    first, rest = peeked(samples, limit) if wants_samples_before(names) else ([], samples)
    return *change_real(origin, names, first, given, threads), keeping(origin, rest, limit)


@dataclass(frozen=True, slots=True)
class _Job:
    """A graph whose ranges are known, and all that it takes to put it into fixed point."""

    calibrated: Calibrated
    origin: Graph
    given: Mapping[str, Given]
    kept: SampleReservoir | None
    algorithms: Sequence[str]
    backend: str
    soc: str | int | None
    threads: int
    wide: Mapping[str, Wide]
    tested: TestSet | None = None

    @property
    def samples(self) -> list[Mapping[str, Array]]:
        return self.kept.samples if self.kept is not None else []

    def done(
        self, recipe: Recipe, goal: Goal | None, searching: Progress | None
    ) -> tuple[Graph, Mixed | None]:
        """The graph of a recipe, or where there is a goal the one that reaches it, and how."""
        self._say_float_widths(recipe)
        made, mixed = self.finish(recipe), None
        if goal is not None:
            made, mixed = self.reach(goal, made, recipe, searching)
        _say_unused_steps(made, recipe)
        return made, mixed

    def finish(self, recipe: Recipe, rounded: Graph | None = None) -> Graph:
        """The graph of a recipe, with the weights that algorithms make, or made of another recipe's."""
        applied = accepted(self.calibrated, recipe, self.given, self.backend, self.soc, self.wide)
        if rounded is not None:
            take_weights(applied.graph, rounded)
        elif self.samples:
            change_fixed(
                self.calibrated.graph, applied.graph, self.algorithms, self.samples, self.given, self.threads
            )
        width = self._float_width(recipe)
        if 16 in (width, recipe.float_bias_bw):
            set_float_width(applied.graph, width, recipe.float_bias_bw)
        applied.graph.provenance = applied.provenance | self._widened(applied)
        find_target(self.backend).finish_fixed(applied.graph, clips=bool(self.given))
        return applied.graph

    def _float_width(self, recipe: Recipe) -> int:
        """The recipe's width of floats, or a narrower one where all given floats have that."""
        said = set(self._given_floats().values())
        return min(recipe.float_bw, *said) if len(said) == 1 else recipe.float_bw

    def _given_floats(self) -> dict[str, int]:
        """Tensors that somebody wants in floats, and how wide: the model itself only has encodings."""
        return {n: said.bitwidth for n, said in self.given.items() if said.floating and said.source != MODEL}

    def _say_float_widths(self, recipe: Recipe) -> None:
        width = self._float_width(recipe)
        other = {name: said for name, said in self._given_floats().items() if said != width}
        if other:
            name, said = next(iter(other.items()))
            warnings.warn(
                f"all floats of a graph have the same width, here {width} bits: {len(other)} tensors do not"
                f" have the {said} bits that they are given, '{name}' for one",
                OpenQnnWarning,
                stacklevel=4,
            )

    def _widened(self, applied: Applied) -> dict[str, str]:
        """Where encodings of nodes came from that have 16 bits of their own accord."""
        return {
            v.name: f"{applied.provenance[v.name]}, {self.wide[node.name].reason}"
            for node in applied.graph.nodes
            for v in node.outputs
            if node.name in self.wide and v.encoding is not None and v.encoding.bitwidth == WIDE
        }

    def reach(
        self, goal: Goal, plain: Graph, recipe: Recipe, searching: Progress | None
    ) -> tuple[Graph, Mixed]:
        """The graph that reaches a goal with few exceptions, or comes closest."""
        rate = self._rate(goal)
        before = rate(plain)
        if before >= goal.least:
            return plain, Mixed(recipe, (), before, before, reached=True)
        with warnings.catch_warnings():  # what concerns the result is said when that is made
            warnings.simplefilter("ignore", OpenQnnWarning)
            found, rounded = find_widths(
                self.calibrated, recipe, self.given, self.samples, goal.least, before, rate, self.finish,
                searching,
            )  # fmt: skip
        return self.finish(found.recipe, rounded), found

    def _rate(self, goal: Goal) -> Score:
        if goal.metric is None:
            if self.tested is None:
                raise InputError("a target needs samples to measure by, and all of these have NaN")
            return partial(worst_sqnr, Outputs(self.origin, self.tested.samples))
        return partial(_measured, goal.metric)


def _goal(sqnr: float | None, metric: tuple[Metric, float] | None, data: Any) -> Goal | None:
    if sqnr is None and metric is None:
        return None
    if sqnr is not None and metric is not None:
        raise UsageError("target_sqnr and target_metric contradict each other: give one")
    if data is None:
        raise UsageError("a target needs data: the ranges of wider nodes are measured on it")
    if metric is None:
        return Goal(_number(sqnr, "target_sqnr"))
    if not isinstance(metric, tuple) or len(metric) != 2 or not callable(metric[0]):
        raise UsageError("target_metric is no pair of a function and the score that it has to reach")
    return Goal(_number(metric[1], "the score to reach"), metric[0])


def _number(given: object, what: str) -> float:
    if not isinstance(given, Real) or isinstance(given, bool) or isnan(given):
        raise UsageError(f"{what} is {given!r}, and must be a number")
    return float(given)


def _measured(metric: Metric, graph: Graph) -> float:
    with Session(graph) as session:
        return _number(metric(session.run), "what the metric gives")


def _known(
    graph: Graph, overrides: str | os.PathLike[str] | None, ignore_encodings: bool
) -> dict[str, Given]:
    """The encodings that came with a model, and those of a file, which count more."""
    if ignore_encodings and overrides is not None:
        raise UsageError("ignore_encodings and overrides contradict each other: give one")
    found = {} if ignore_encodings else dict(graph.given)
    return found if overrides is None else found | read_given(graph, overrides)


def read_given(graph: Graph, path: str | os.PathLike[str]) -> dict[str, Given]:
    """What an encodings file of AIMET's says about the tensors of a graph."""
    return read_overrides(graph, read_encodings(path), os.fspath(path)).given


def recipe_of(recipe: Recipe | None, choices: Mapping[str, Any]) -> Recipe:
    """The recipe with some fields changed; a name that is none of them is an error."""
    try:
        return (recipe or Recipe()).told(choices)
    except TypeError as error:
        known = ", ".join(Recipe.__dataclass_fields__)
        wrong = next((name for name in choices if name not in Recipe.__dataclass_fields__), str(error))
        raise UsageError(f"the quantizer has no choice '{wrong}'", hint=f"it has {known}") from error


def prepared_for(
    graph: Graph, recipe: Recipe, backend: str, width: int = 0, given: Mapping[str, Given] | None = None
) -> Graph:
    """The float graph in the forms that the backend computes right in fixed point, up to that width."""
    target = find_target(backend)
    if not target.asked_in_fixed_point:
        return graph
    legal = target.adapt_float(graph)
    wide = wide_nodes(legal, recipe, given or {})
    most = max([width, recipe.act_bw, *recipe.widths.values()])
    return target.prepare_fixed(legal, most, {name: w.width for name, w in wide.items()})


def accepted(
    calibrated: Calibrated,
    recipe: Recipe,
    given: Mapping[str, Given],
    backend: str,
    soc: str | int | None,
    wide: Mapping[str, Wide] | None = None,
) -> Applied:
    """The graph in fixed point as far as the library takes it: what it refuses is computed in floats.

    Nodes that are `wide` of their own accord get the width of the others first.
    """
    library = _library(backend)
    for _ in range(ROUNDS):
        applied = apply_recipe(calibrated, recipe, given)
        refused = _refused(applied.graph, library, soc) if library else []
        if not refused:
            return applied
        names = {qnn_name(node.name): node.name for node in applied.graph.nodes}
        found = {names[v.node.name] for v in refused if v.node.name in names}
        own = _narrowed(found, recipe, wide or {})
        if not own:
            _say(refused)
        recipe = replace(recipe, widths={**recipe.widths, **(own or dict.fromkeys(found, FLOAT))})
    raise UnsupportedError("HTP refuses the graph in fixed point, whatever is left in floating point")


def _narrowed(refused: Iterable[str], recipe: Recipe, wide: Mapping[str, Wide]) -> dict[str, int]:
    """The next width for those of some nodes that are wide of their own accord."""
    found = {n: wide[n].narrower(recipe.widths[n], recipe.act_bw) for n in refused if n in wide}
    return {name: width for name, width in found.items() if width is not None}


def _library(backend: str) -> str:
    """The library that is asked; none where it is not installed, and then nothing is checked."""
    if not find_target(backend).asked_in_fixed_point:
        return ""
    try:
        return os.fspath(find_library(backend))
    except LibraryError:
        return ""


def _refused(graph: Graph, library: str, soc: str | int | None) -> list[Validity]:
    verdicts = validate_net(lower(graph), library, DeviceOptions(find_soc(soc).model))
    # of other packages than QNN's own only whoever registers them can tell
    return [v for v in verdicts if not v.ok and v.node.package == BUILTIN_PACKAGE]


def _say(refused: Sequence[Validity]) -> None:
    for verdict in refused:
        reason = verdict.reason.splitlines()[0]
        warnings.warn(
            f"{verdict.node.op} '{verdict.node.name}' stays in floating point, HTP refuses it otherwise:"
            f" {reason}",
            OpenQnnWarning,
            stacklevel=4,
        )
