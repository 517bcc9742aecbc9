"""The Python API of the quantizer: `quantize` takes a model and data, and gives a graph in fixed point."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from openqnn.emit import lower
from openqnn.errors import LibraryError, OpenQnnWarning, UnsupportedError, UsageError
from openqnn.formats.encodings import read_encodings
from openqnn.ir import Given, Graph
from openqnn.passes.htp import legalise_htp
from openqnn.passes.htp.fixed import prepare_fixed
from openqnn.pipeline import open_graph
from openqnn.qnn.library import find_library
from openqnn.qnn.net import qnn_name
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import find_soc
from openqnn.qnn.validate import Verdict, validate_net
from openqnn.quant.algorithms.rounding import round_weights, sample_limit
from openqnn.quant.apply import Applied
from openqnn.quant.data import samples_of
from openqnn.quant.kept import keeping
from openqnn.quant.overrides import read_overrides
from openqnn.quant.quantizer import Calibrated, Progress, apply_recipe, float_where_unknown, measure
from openqnn.quant.recipe import FLOAT, Recipe

HTP = "htp"
ADAROUND = "adaround"
DEFAULT_ALGORITHMS = (ADAROUND,)
ROUNDS = 8  # each gives up fixed point in the nodes that HTP refuses; more were never needed


def quantize(
    model: Graph | str | os.PathLike[str],
    data: Any = None,
    *,
    recipe: Recipe | None = None,
    overrides: str | os.PathLike[str] | None = None,
    ignore_encodings: bool = False,
    given: Mapping[str, Given] | None = None,
    float_fallback: bool = False,
    algorithms: Sequence[str] = DEFAULT_ALGORITHMS,
    native: bool = False,
    backend: str = HTP,
    soc: str | int | None = None,
    progress: Progress | None = None,
    threads: int = 0,
    **choices: Any,
) -> Graph:
    """The graph of a model with 8-bit (or other) integers inside; floats go in and come out of a Session.

    `data` is an input list, a folder or file of arrays, an iterable of arrays or of dicts by input name, or
    an object with `get_next()`; `native` files hold the inputs' own types. The choices are the fields of
    `openqnn.quant.recipe.Recipe`: act_bw=16, weight_bw=4, per_channel=False...

    Encodings of the file `overrides` count more than those that came with the model, and these more than
    calibration; `ignore_encodings` leaves the model's out. With `float_fallback` nothing is calibrated: nodes
    whose tensors have no encoding stay in floating point. Nodes that the backend's library refuses in fixed
    point stay in floating point too, with a warning.

    `algorithms` change weights so that less is lost: "adaround", the default, rounds them with regard to the
    data and corrects biases.
    """
    if ignore_encodings and overrides is not None:
        raise UsageError("ignore_encodings and overrides contradict each other: give one")
    chosen = recipe_of(recipe, choices)
    if float_fallback and data is not None:
        raise UsageError("float_fallback takes no data: it is for encodings that come with the model")
    opened = model if isinstance(model, Graph) else open_graph(model)
    known = {} if ignore_encodings else dict(opened.given)
    if overrides is not None:
        known |= read_given(opened, overrides)
    known |= given or {}
    prepared = prepared_for(opened, chosen, backend)
    if float_fallback:
        chosen, known = float_where_unknown(prepared, chosen, known)
    samples = None if data is None else samples_of(prepared, data, native=native)
    kept = None if samples is None else keeping(prepared, samples, sample_limit(prepared))
    calibrated = measure(prepared, kept, chosen, known, threads=threads, progress=progress)
    applied = accepted(calibrated, chosen, known, backend, soc)
    if kept is not None and ADAROUND in algorithms:
        round_weights(prepared, applied.graph, kept.samples, leave=known, threads=threads)
    applied.graph.provenance = applied.provenance
    return applied.graph


def read_given(graph: Graph, path: str | os.PathLike[str]) -> dict[str, Given]:
    """What an encodings file of AIMET's says about the tensors of a graph."""
    return read_overrides(graph, read_encodings(path), os.fspath(path)).given


def recipe_of(recipe: Recipe | None, choices: Mapping[str, Any]) -> Recipe:
    """The recipe with some fields changed; a name that is none of them is an error."""
    try:
        return replace(recipe or Recipe(), **choices)
    except TypeError as error:
        known = ", ".join(Recipe.__dataclass_fields__)
        wrong = next((name for name in choices if name not in Recipe.__dataclass_fields__), str(error))
        raise UsageError(f"the quantizer has no choice '{wrong}'", hint=f"it has {known}") from error


def prepared_for(graph: Graph, recipe: Recipe, backend: str) -> Graph:
    """The float graph in the forms that the backend computes right in fixed point."""
    if backend != HTP:
        return graph
    return prepare_fixed(legalise_htp(graph), max([recipe.act_bw, *recipe.widths.values()]))


def accepted(
    calibrated: Calibrated, recipe: Recipe, given: Mapping[str, Given], backend: str, soc: str | int | None
) -> Applied:
    """The graph in fixed point as far as the library takes it: what it refuses is computed in floats."""
    library = _library(backend)
    for _ in range(ROUNDS):
        applied = apply_recipe(calibrated, recipe, given)
        refused = _refused(applied.graph, library, soc) if library else []
        if not refused:
            return applied
        names = {qnn_name(node.name): node.name for node in applied.graph.nodes}
        fallback = {names[verdict.node.name]: FLOAT for verdict in refused if verdict.node.name in names}
        _say(refused)
        recipe = replace(recipe, widths={**recipe.widths, **fallback})
    raise UnsupportedError("HTP refuses the graph in fixed point, whatever is left in floating point")


def _library(backend: str) -> str:
    """The library that is asked; none where it is not installed, and then nothing is checked."""
    if backend != HTP:
        return ""
    try:
        return os.fspath(find_library(backend))
    except LibraryError:
        return ""


def _refused(graph: Graph, library: str, soc: str | int | None) -> list[Verdict]:
    verdicts = validate_net(lower(graph), library, DeviceOptions(find_soc(soc).model))
    return [verdict for verdict in verdicts if not verdict.ok]


def _say(refused: Sequence[Verdict]) -> None:
    for verdict in refused:
        reason = verdict.reason.splitlines()[0]
        warnings.warn(
            f"{verdict.node.op} '{verdict.node.name}' stays in floating point, HTP refuses it otherwise:"
            f" {reason}",
            OpenQnnWarning,
            stacklevel=4,
        )
