"""openqnn estimate: how fast a model will be on HTP, with no device."""

from __future__ import annotations

import dataclasses
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.view_beside import check_beside, write_graph_beside
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.estimate import EstimateOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.estimate import Estimate, LayerCost
    from openqnn.ir import Graph


def run_estimate(arguments: Namespace) -> Report:
    from openqnn.analysis.estimate import estimate_graph, layer_costs
    from openqnn.api.files import open_graph

    source = read_options(arguments, SourceOptions)
    options = read_options(arguments, EstimateOptions)
    _check_places(options)
    graph, note = _in_fixed_point(open_graph(source.model, **source.settings()), options.act_bw)
    found = estimate_graph(graph)
    layers = [] if options.whole else layer_costs(graph, found)
    if options.html:
        _write_page(options.html, source.model, graph, found, layers, note)
    if options.trace:
        _write_trace(options.trace, graph)
    record = _record(found, layers[: options.layers], note)
    return Report(record, lambda: _print(found, layers[: options.layers], note))


def _record(found: Estimate, layers: Sequence[LayerCost], note: str) -> dict[str, Any]:
    from openqnn.analysis.chip_fits import fits_for

    fits = fits_for(found.width)
    return {
        "note": note,
        **dataclasses.asdict(found),
        "milliseconds": {fit.chip: round(found.milliseconds(fit), 4) for fit in fits},
        "median_error": {fit.chip: fit.median for fit in fits},
        "utilisation": round(found.utilisation, 4),
        "layers": [dataclasses.asdict(cost) for cost in layers],
    }


def _check_places(options: EstimateOptions) -> None:
    for place in filter(None, (options.html, options.trace)):
        check_place(place)
    if options.html:
        check_beside(options.html)


def _write_page(
    path: str, model: str, graph: Graph, found: Estimate, layers: Sequence[LayerCost], note: str
) -> None:
    """The report, and beside it the graph in the viewer, coloured by the cycles of its layers."""
    from openqnn.analysis.estimate_page import estimate_page
    from openqnn.viewer.read_overlays import record_overlays

    record = {"layers": [dataclasses.asdict(cost) for cost in layers]}
    overlays = record_overlays(record) if layers else []
    view = write_graph_beside(path, graph, Path(model).name, overlays)

    with replacing(path) as file:
        file.write(estimate_page(model, found, layers, note, view).encode("utf-8"))


def _write_trace(path: str, graph: Graph) -> None:
    from openqnn.analysis.estimate import expected_timeline
    from openqnn.analysis.optrace import TraceChoices, optrace_chrome

    timeline, schematic = expected_timeline(graph)
    trace = optrace_chrome([timeline], {timeline.graph: schematic}, TraceChoices(flows=True))
    with replacing(path) as file:
        file.write(json.dumps(trace).encode("utf-8"))


def _in_fixed_point(graph: Graph, width: int) -> tuple[Graph, str]:
    """A model in floats is quantized with random data: the cost depends on widths, not on ranges."""
    from openqnn.api.quantize import quantize
    from openqnn.runtime.boundary import random_inputs

    if width == 32 or any(value.dtype.is_fixed for node in graph.nodes for value in node.outputs):
        return graph, ""
    made = quantize(graph, [random_inputs(graph, seed) for seed in range(2)], algorithms=(), act_bw=width)
    return made, f"quantized with random data, {width}-bit activations, for the estimate alone"


def _print(found: Estimate, layers: Sequence[LayerCost], note: str) -> None:
    from openqnn.analysis.chip_fits import fits_for
    from openqnn.analysis.estimate import COSTED_SOC
    from openqnn.cli.report import console, table

    if note:
        print(f"note: {note}", file=sys.stderr)
    out = console()
    out.print(
        f"{found.cycles:,} cycles on {COSTED_SOC} by libQnnHtp's cost model"
        f" ({found.low:,} to {found.high:,});"
        f" {found.macs / 1e6:,.0f} million MACs, {found.use} of the multipliers in use"
    )
    out.print(
        f"memory: {found.read:,} bytes read, {found.written:,} written,"
        f" {found.spilled:,} spilled and {found.filled:,} filled in between;"
        f" {found.live:,} bytes of activations alive at once"
    )
    rows = table("chip", "milliseconds", "error on other networks")
    for fit in fits_for(found.width):
        error = f"median {fit.median:.0%}, largest {fit.largest:.0%} ({fit.outlier}; {fit.networks} networks)"
        rows.add_row(fit.chip, f"{found.milliseconds(fit):.2f}", error)
    out.print(rows)
    if found.rough:
        out.print(f"rough: {found.rough}")
    if layers:
        _print_layers(layers)


def _print_layers(layers: Sequence[LayerCost]) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    rows = table("layer", "ops", "cycles", "share", "source")
    for layer in layers:
        ops = ", ".join(layer.ops)
        rows.add_row(
            escape(layer.name), ops, f"{layer.cycles:,.0f}", f"{layer.share:.1%}", escape(layer.source)
        )
    console().print(rows)
    for layer in layers:
        for text in layer.advice:
            print(f"{layer.name}: {text}")


COMMAND = Command(
    "estimate",
    "Tell how fast a model will be on HTP, with no device: the vendor's cost model, and its error.",
    (SourceOptions, OwnOps, EstimateOptions),
    run_estimate,
    examples=("openqnn estimate model.oqnn",),
)
