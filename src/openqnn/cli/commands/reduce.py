"""openqnn reduce: the smallest part of a graph on which a library still fails."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.diagnose import ReduceOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions


def run_reduce(arguments: Namespace) -> Report:
    from openqnn.analysis.bug_report import REPORT, write_bug_report
    from openqnn.analysis.reduce_net import reduce_net
    from openqnn.analysis.validation import suited_net
    from openqnn.api.files import open_graph
    from openqnn.cli import report_diagnosis as show
    from openqnn.cli.progress import Stages
    from openqnn.qnn.library import find_library
    from openqnn.qnn.options import DeviceOptions
    from openqnn.qnn.soc import find_soc
    from openqnn.targets.registry import target_of_library

    source, options = read_options(arguments, SourceOptions), read_options(arguments, ReduceOptions)
    library = find_library(options.backend)
    for_htp = target_of_library(library).compiles
    if options.soc and not for_htp:
        raise UsageError(f"--soc: a chip can be chosen for HTP only, not for {library.name}")
    chip = find_soc(options.soc or None) if for_htp else None
    graph = open_graph(source.model, **source.settings())
    net = suited_net(graph, for_htp and not options.as_is)
    with Stages() as stages:
        reduced = reduce_net(
            net,
            str(library),
            DeviceOptions(chip.model) if chip else None,
            seconds=options.seconds,
            trial_seconds=options.trial_seconds,
            progress=lambda _, left, total: stages.update("reduce", total - left, total),
        )
    about = {"model": source.model, "library": str(library), "target": str(chip or "")}
    bundle = write_bug_report(reduced, Path(options.output), about)
    record = json.loads((Path(options.output) / REPORT).read_text(encoding="utf-8"))
    return Report(record, lambda: show.print_reduced(reduced, bundle))


COMMAND = Command(
    "reduce",
    "Cut a graph that a library fails on down to the smallest part that still fails.",
    (SourceOptions, OwnOps, ReduceOptions),
    run_reduce,
    examples=("openqnn reduce model.oqnn --backend htp -o smallest/",),
)
