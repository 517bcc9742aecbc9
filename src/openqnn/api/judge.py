"""Judging a graph in fixed point: on which samples, with what verdict, and what would have been better."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from openqnn.errors import AccuracyWarning, OpenQnnError, OpenQnnWarning
from openqnn.ir import Given, Graph
from openqnn.quant.algorithms.mixed_precision import take_weights
from openqnn.quant.apply_recipe import Calibrated, apply_recipe
from openqnn.quant.calibration import batches
from openqnn.quant.held_out import MOST, HeldOut, TestSet, counted_words
from openqnn.quant.recipe import Recipe
from openqnn.quant.sample_reservoir import SampleReservoir
from openqnn.quant.samples import is_whole, samples_of
from openqnn.quant.verdict import GOOD, LEAST_GOOD, Remedy, Verdict, coarse_joins, figures_of, judged
from openqnn.runtime.compare import Outputs

MOST_TESTED = 64  # samples of test data


def judge_set(
    origin: Graph, test_data: Any, native: bool, held: HeldOut | None, kept: SampleReservoir | None
) -> TestSet | None:
    """What a graph is judged on: the user's test data, what was held back, or else what it was made with."""
    if test_data is not None:
        given = samples_of(origin, test_data, native=native)
        parts = (part for sample in given for part in batches(origin, sample))
        samples = tuple(islice(filter(is_whole, parts), MOST_TESTED))
        return TestSet(samples, counted_words(len(samples), "test")) if samples else None
    if held is not None and held.samples:
        return TestSet(held.samples, counted_words(len(held.samples), "held-out"))
    samples = tuple(kept.samples[:MOST]) if kept is not None else ()
    return TestSet(samples, "on the calibration samples") if samples else None


def judge_graph(
    origin: Graph, made: Graph, tested: TestSet, calibrated: Calibrated, recipe: Recipe,
    given: Mapping[str, Given],
) -> Verdict | None:  # fmt: skip
    """The verdict; where it is not good, with the cheapest of some changes that makes it so, or the best."""
    outputs = Outputs(origin, tested.samples)
    found = judged(figures_of(origin, outputs, made), tested.words)
    if found is not None:
        found = replace(found, joins=coarse_joins(origin, outputs, made))
    if found is None or found.word == GOOD:
        return found
    best: Remedy | None = None
    for what, option, changed in _changes(recipe):
        with warnings.catch_warnings(), suppress(OpenQnnError):
            warnings.simplefilter("ignore", OpenQnnWarning)
            trial = apply_recipe(calibrated, changed, given).graph
            take_weights(trial, made)
            sqnr = min(f.sqnr for f in figures_of(origin, outputs, trial))
            if sqnr > max(found.worst.sqnr, best.sqnr if best is not None else found.worst.sqnr):
                best = Remedy(what, option, sqnr)
        if best is not None and best.sqnr >= LEAST_GOOD:
            break
    return replace(found, remedy=best)


def _changes(recipe: Recipe) -> Iterator[tuple[str, str, Recipe]]:
    """Changes of a recipe, the cheapest first."""
    if recipe.weight_bw < 8:
        yield "8-bit weights", "weight_bw=8", replace(recipe, weight_bw=8, block_size=None)
    if recipe.act_bw < 16:
        whole = replace(recipe, act_bw=16, weight_bw=max(recipe.weight_bw, 8), block_size=None)
        yield "16-bit activations", "act_bw=16", whole
    widest = replace(recipe, act_bw=16, weight_bw=16, block_size=None)
    if widest != recipe:
        yield "16-bit activations and weights", "act_bw=16, weight_bw=16", widest


def say_verdict(verdict: Verdict | None) -> None:
    """Warns, unless all is well."""
    for said in verdict.joins if verdict is not None else ():
        warnings.warn(said, AccuracyWarning, stacklevel=3)
    if verdict is not None and verdict.word != GOOD:
        warnings.warn(str(verdict), AccuracyWarning, stacklevel=3)
