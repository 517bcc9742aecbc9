"""openqnn estimate: how fast a model will be on HTP, with no device."""

from __future__ import annotations

import dataclasses
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, print_json
from openqnn.options.estimate import EstimateOptions
from openqnn.options.field import read_options
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.estimate import Estimate, NodeCost
    from openqnn.ir import Graph


def run_estimate(arguments: Namespace) -> int:
    from openqnn.analysis.estimate import CHIPS, estimate_graph, node_costs
    from openqnn.api.files import open_graph

    source = read_options(arguments, SourceOptions)
    options = read_options(arguments, EstimateOptions)
    graph, note = _in_fixed_point(open_graph(source.model, **source.settings()), options.act_bw)
    found = estimate_graph(graph)
    layers = [] if options.whole else node_costs(graph)
    if options.json:
        chips = {fit.chip: round(fit.milliseconds(found.cycles), 4) for fit in CHIPS}
        record: dict[str, Any] = {"note": note, **dataclasses.asdict(found), "milliseconds": chips}
        record["layers"] = [dataclasses.asdict(cost) for cost in layers[: options.layers]]
        print_json(record)
        return 0
    if note:
        print(f"note: {note}", file=sys.stderr)
    _print(found, layers, options.layers)
    return 0


def _in_fixed_point(graph: Graph, width: int) -> tuple[Graph, str]:
    """A model in floats is quantized with random data: the cost depends on widths, not on ranges."""
    from openqnn.api.quantize import quantize
    from openqnn.runtime.boundary import random_inputs

    if any(value.dtype.is_fixed for node in graph.nodes for value in node.outputs):
        return graph, ""
    made = quantize(graph, [random_inputs(graph, seed) for seed in range(2)], algorithms=(), act_bw=width)
    return made, f"quantized with random data, {width}-bit activations, for the estimate alone"


def _print(found: Estimate, layers: Sequence[NodeCost], most: int) -> None:
    from openqnn.analysis.estimate import CHIPS, COSTED_SOC, NETWORKS
    from openqnn.cli.report import console, table

    out = console()
    out.print(
        f"{found.cycles:,} cycles on {COSTED_SOC} by libQnnHtp's cost model ({found.low:,} to {found.high:,})"
    )
    out.print(
        f"memory: {found.read:,} bytes read, {found.written:,} written,"
        f" {found.spilled:,} spilled and {found.filled:,} filled in between"
    )
    rows = table("chip", "milliseconds", "error on other networks")
    for fit in CHIPS:
        error = f"median {fit.median:.0%}, largest {fit.largest:.0%} ({NETWORKS} networks)"
        rows.add_row(fit.chip, f"{fit.milliseconds(found.cycles):.2f}", error)
    out.print(rows)
    if found.rough:
        out.print(f"rough: {found.rough}")
    if layers:
        _print_layers(layers, most)


def _print_layers(layers: Sequence[NodeCost], most: int) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    total = sum(cost.cycles for cost in layers)
    rows = table("node alone", "op", "cycles", "share", "source")
    for cost in layers[:most]:
        share = f"{cost.cycles / total:.1%}"
        rows.add_row(escape(cost.name), cost.op, f"{cost.cycles:,}", share, escape(cost.source))
    console().print(rows)


COMMAND = Command(
    "estimate",
    "Tell how fast a model will be on HTP, with no device: the vendor's cost model, and its error.",
    (SourceOptions, EstimateOptions),
    run_estimate,
)
