"""Confirmation on libQnnHtp: the worst layers alone, and what tapping tensors does to the outputs there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from openqnn.analysis.accuracy.layer_errors import decoded
from openqnn.analysis.accuracy.layerwise import Layerwise
from openqnn.errors import OpenQnnError
from openqnn.ir import Array, Graph
from openqnn.ir.clone import clone_graph
from openqnn.passes.explain import Explain
from openqnn.passes.merge_repeated import remove_dead_code
from openqnn.runtime.boundary import accepted
from openqnn.runtime.metrics import sqnr
from openqnn.vendor.executables import GraphExecutable

SECONDS = 600.0
LIBRARY = "htp"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """By the name of a layer its isolated error on the library in dB, or why there is none; and how far the
    outputs with taps are from those without, in dB: infinite where tapping changes nothing. `prefix` has the
    entire error of layers in the graph up to there, where nothing is tapped."""

    isolated: Mapping[str, float]
    refused: Mapping[str, str]
    tapping: float | None
    prefix: Mapping[str, float] = field(default_factory=dict[str, float])


def confirm_on_htp(
    real: Graph, fixed: Graph, sample: Mapping[str, Array], names: Sequence[str], soc: str | None = None,
    *, prefixes: bool = False,
) -> Confirmed:  # fmt: skip
    """Runs the named layers on libQnnHtp in one context, fed with the reference's numbers of one sample.

    With `prefixes` the graph also runs up to each of them, which compiles it as many times.
    """
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
    prefix: dict[str, float] = {}
    for name in (y.name for y in layers if prefixes):
        try:
            prefix[name] = sqnr(work.reference[name], _run_prefix(fixed, name, sample, soc))
        except OpenQnnError as error:
            refused[name] = str(error)
    return Confirmed(isolated, refused, tapping_effect(fixed, sample, names, soc), prefix)


def prefix_graph(graph: Graph, name: str) -> Graph:
    """The graph up to a tensor, which is its only output."""
    made = clone_graph(graph)
    (end,) = (v for v in made.values() if v.name == name and not v.is_constant)
    made.outputs = [end]
    remove_dead_code(made, Explain())
    made.inputs = [v for v in made.inputs if v.users or v is end]
    kept = {v.name for v in (*made.inputs, *made.outputs)}
    made.ports = {n: port for n, port in made.ports.items() if n in kept}
    return made


def _run_prefix(fixed: Graph, name: str, sample: Mapping[str, Array], soc: str | None) -> Array:
    graph = prefix_graph(fixed, name)
    given = accepted(graph, {v.name: sample[v.name] for v in graph.inputs})
    runner = GraphExecutable(graph, LIBRARY, soc, SECONDS)
    try:
        return decoded(graph.outputs[0], runner.run(given)[name])
    finally:
        runner.close()


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
