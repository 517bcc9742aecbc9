"""Variants of one model in fixed point: what they have in common, calibration above all, is done once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.api.quantize import accepted, keep_integers, prepared_for, read_given
from openqnn.ir import Array, Given, Graph
from openqnn.ir.oqnn import load_graph, save_graph
from openqnn.passes.set_float_width import set_float_width
from openqnn.quant.algorithms import change_fixed, change_real, check_names
from openqnn.quant.apply_recipe import Calibrated, measure
from openqnn.quant.observe.observers import Statistics
from openqnn.quant.overrides import along_channels
from openqnn.quant.recipe import Method, Recipe
from openqnn.targets.registry import QUANTIZED, find_target


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to quantize: a recipe, algorithms that change weights, and a file of encodings that count more
    than those of calibration."""

    recipe: Recipe
    algorithms: tuple[str, ...] = ()
    overrides: str = ""
    backend: str = QUANTIZED
    soc: str | int | None = None

    @property
    def group(self) -> tuple[object, ...]:
        """Variants with the same one share a calibration."""
        before = tuple(name for name in check_names(self.algorithms) if name in ("cle", "smoothquant"))
        return before, self.overrides, self.backend, self.recipe.act_bw


@dataclass(frozen=True, slots=True)
class SharedCalibration:
    """A graph in floating point, prepared and seen on all samples, from which variants follow fast.

    It can be sent to other processes: the graph is held as the bytes of its file.
    """

    stored: Array
    statistics: Mapping[str, Statistics]
    given: Mapping[str, Given]

    def make(self, variant: Variant, samples: Sequence[Mapping[str, Array]] = ()) -> Graph:
        """The graph in fixed point. `samples` are for algorithms that fit weights to data."""
        calibrated = Calibrated(graph_of_bytes(self.stored), self.statistics)
        whole = calibrated.graph
        made = accepted(calibrated, variant.recipe, self.given, variant.backend, variant.soc)
        if samples:
            change_fixed(whole, made.graph, variant.algorithms, samples, self.given)
        if 16 in (variant.recipe.float_bw, variant.recipe.float_bias_bw):
            set_float_width(made.graph, variant.recipe.float_bw, variant.recipe.float_bias_bw)
        made.graph.provenance = made.provenance
        find_target(variant.backend).finish_fixed(made.graph, clips=bool(self.given))
        keep_integers(made.graph, whole)
        return made.graph


def calibrate_variants(
    graph: Graph, samples: Sequence[Mapping[str, Any]], variants: Sequence[Variant]
) -> SharedCalibration:
    """One calibration for variants of the same group."""
    first = variants[0]
    searched = next((v for v in variants if v.recipe.act.method is not Method.MIN_MAX), first)
    recipe = replace(first.recipe, act=searched.recipe.act)
    known = dict(graph.given)
    if first.overrides:
        known |= read_given(graph, first.overrides)
    origin = prepared_for(graph, recipe, first.backend, given=known)
    given = along_channels(origin, known)
    names = check_names([name for v in variants for name in v.algorithms])
    real, _ = change_real(origin, [n for n in names if n in first.algorithms], list(samples), given)
    calibrated = measure(real, samples, recipe, given)
    return SharedCalibration(bytes_of_graph(calibrated.graph), calibrated.statistics, given)


def bytes_of_graph(graph: Graph) -> Array:
    """The file of a graph, as an array: pools of workers hand large arrays on without a copy."""
    with tempfile.TemporaryDirectory(prefix="openqnn-") as folder:
        path = Path(folder, "graph.oqnn")
        save_graph(graph, path)
        return np.frombuffer(path.read_bytes(), np.uint8)


def graph_of_bytes(stored: Array) -> Graph:
    """The graph whose file these bytes are."""
    handle, name = tempfile.mkstemp(suffix=".oqnn", prefix="openqnn-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(np.ascontiguousarray(stored).data)
        return load_graph(name)
    finally:
        os.unlink(name)  # what is mapped stays


def digest_of_graph(graph: Graph) -> str:
    """What tells graphs apart: structure, encodings and all constants."""
    found = hashlib.sha256(str(graph).encode())
    for value in graph.constants():
        if value.data is not None:
            found.update(np.ascontiguousarray(value.data).data)
    return found.hexdigest()


def digest_of_arrays(samples: Iterable[Mapping[str, Any]]) -> str:
    """The digest of samples: names, types, shapes and numbers."""
    found = hashlib.sha256()
    for sample in samples:
        for name, given in sample.items():
            array = np.ascontiguousarray(given)
            found.update(f"{name} {array.dtype.str} {array.shape};".encode())
            found.update(array.data)
    return found.hexdigest()
