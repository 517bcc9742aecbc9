"""Confirmation on libQnnHtp: the worst layers alone, and what tapping tensors does to the outputs there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from openqnn.analysis.accuracy.layer_errors import decoded
from openqnn.analysis.accuracy.layerwise import Layerwise
from openqnn.errors import OpenQnnError
from openqnn.ir import Array, Graph
from openqnn.runtime.boundary import accepted
from openqnn.runtime.metrics import sqnr
from openqnn.vendor.executables import GraphExecutable

SECONDS = 600.0
LIBRARY = "htp"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """By the name of a layer its isolated error on the library in dB, or why there is none; and how far the
    outputs with taps are from those without, in dB: infinite where tapping changes nothing."""

    isolated: Mapping[str, float]
    refused: Mapping[str, str]
    tapping: float | None


def confirm_on_htp(
    real: Graph, fixed: Graph, sample: Mapping[str, Array], names: Sequence[str], soc: str | None = None
) -> Confirmed:
    """Runs the named layers on libQnnHtp in one context, fed with the reference's numbers of one sample."""
    work = Layerwise(real, fixed, sample)
    layers = [y for y in work.pairing.layers if y.name in names and not y.is_input]
    isolated: dict[str, float] = {}
    refused: dict[str, str] = {}
    for result in work.run(layers, lambda graph: GraphExecutable(graph, LIBRARY, soc, SECONDS)):
        if result.found:
            name = result.layer.name
            isolated[name] = sqnr(work.reference[name], result.found[name])
        else:
            refused[result.layer.name] = result.why
    return Confirmed(isolated, refused, tapping_effect(fixed, sample, names, soc))


def tapping_effect(
    fixed: Graph, sample: Mapping[str, Array], names: Sequence[str], soc: str | None = None
) -> float | None:
    """How far the worst output is from itself, in dB, when some tensors become outputs too.

    HTP joins nodes whose results nobody sees, so looking at a tensor may change what is computed. None where
    the library does not run the graph.
    """
    given = accepted(fixed, sample)
    runner = GraphExecutable(fixed, LIBRARY, soc, SECONDS)
    own = [v.name for v in fixed.outputs]
    tapped = [n for n in names if n in runner.tensor_names and n not in own]
    try:
        plain = runner.run(given)
        seen = runner.run(given, [*own, *tapped]) if tapped else plain
    except OpenQnnError:
        return None
    finally:
        runner.close()
    pairs = [(decoded(v, plain[v.name]), decoded(v, seen[v.name])) for v in fixed.outputs]
    return min((sqnr(first, second) for first, second in pairs), default=inf)
