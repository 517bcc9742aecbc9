"""openqnn inspect: what is in a model, a graph file, a DLC, a model library or a context binary."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import UsageError
from openqnn.options.output import InspectOutput

if TYPE_CHECKING:
    from openqnn.ir import Graph

CONTEXT = ".bin"


def inspect(path: str, settings: Mapping[str, Any], output: InspectOutput) -> int:
    if Path(path).suffix == CONTEXT:
        return _inspect_context(path, output)
    from openqnn.analysis.summary import summarise
    from openqnn.cli.report import print_summary

    graphs = _graphs(path, settings)
    if output.text:
        print("\n".join(str(graph) for graph in graphs), end="")
        return 0
    summaries = [summarise(graph) for graph in graphs]
    if output.json:
        rows = [dataclasses.asdict(summary) for summary in summaries]
        print(json.dumps(rows[0] if len(rows) == 1 else {"graphs": rows}, indent=2))
        return 0
    for index, summary in enumerate(summaries):
        if index:
            print()
        print_summary(summary)
    return 0


def _graphs(path: str, settings: Mapping[str, Any]) -> list[Graph]:
    """Every graph of a file: DLC files and model libraries may hold several."""
    from openqnn.analysis.sources import HOLDS_SEVERAL, read_nets
    from openqnn.api.files import open_graph
    from openqnn.emit.graph_from_net import graph_of

    if Path(path).suffix not in HOLDS_SEVERAL or any(settings.values()):
        return [open_graph(path, **settings)]
    return [graph_of(net) for net in read_nets(path)]


def _inspect_context(path: str, output: InspectOutput) -> int:
    from openqnn.analysis.context_summary import read_context, summarise_context
    from openqnn.cli.report_diagnosis import print_context

    if output.text:
        raise UsageError("--text: a context binary holds compiled code, which has no text form")
    summary = summarise_context(read_context(path))
    if output.json:
        print(json.dumps(dataclasses.asdict(summary), indent=2))
    else:
        print_context(summary)
    return 0
