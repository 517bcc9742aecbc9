"""openqnn inspect: what is in a model, a graph file, a DLC, a model library or a context binary."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.field import read_options
from openqnn.options.output import InspectOutput
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.analysis.summary import Summary
    from openqnn.ir import Graph

CONTEXT = ".bin"


def run_inspect(arguments: Namespace) -> Report:
    source, output = read_options(arguments, SourceOptions), read_options(arguments, InspectOutput)
    if output.text and output.json:
        raise UsageError("--text and --json cannot be given together: the text of a graph is no JSON")
    return _inspect(source.model, source.settings(), output)


def _inspect(path: str, settings: Mapping[str, Any], output: InspectOutput) -> Report:
    if Path(path).suffix == CONTEXT:
        return _inspect_context(path, output)
    from openqnn.analysis.summary import summarise

    graphs = _graphs(path, settings)
    if output.text:
        return Report(None, lambda: print("\n".join(str(graph) for graph in graphs), end=""))
    summaries = [summarise(graph) for graph in graphs]
    rows = [dataclasses.asdict(summary) for summary in summaries]
    return Report(rows[0] if len(rows) == 1 else {"graphs": rows}, lambda: _print(summaries))


def _print(summaries: Sequence[Summary]) -> None:
    from openqnn.cli.report import print_summary

    for index, summary in enumerate(summaries):
        if index:
            print()
        print_summary(summary)


def _graphs(path: str, settings: Mapping[str, Any]) -> list[Graph]:
    """Every graph of a file: DLC files and model libraries may hold several."""
    from openqnn.analysis.sources import HOLDS_SEVERAL, read_nets
    from openqnn.api.files import open_graph
    from openqnn.emit.graph_from_net import graph_of

    if Path(path).suffix not in HOLDS_SEVERAL or any(settings.values()):
        return [open_graph(path, **settings)]
    return [graph_of(net) for net in read_nets(path)]


def _inspect_context(path: str, output: InspectOutput) -> Report:
    from openqnn.analysis.context_summary import read_context, summarise_context
    from openqnn.cli.report_diagnosis import print_context

    if output.text:
        raise UsageError("--text: a context binary holds compiled code, which has no text form")
    summary = summarise_context(read_context(path))
    return Report(dataclasses.asdict(summary), lambda: print_context(summary))


COMMAND = Command(
    "inspect",
    "Summarise a model: ops, parameters, MACs, memory.",
    (SourceOptions, OwnOps, InspectOutput),
    run_inspect,
    examples=(
        "openqnn inspect model.onnx --batch 1",
        "openqnn inspect model.dlc",
    ),
)
