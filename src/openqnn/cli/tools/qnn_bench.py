"""qnn-bench: a model on backends, by the JSON file of QNN's benchmark script."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from openqnn.cli.command import Tool
from openqnn.cli.commands.bench import run_bench_config
from openqnn.options.field import option, read_options
from openqnn.options.packages import OwnOps


@dataclass(frozen=True)
class QnnBenchOptions:
    """The run."""

    config: str = option(
        "", "-c", "--config", metavar="JSON", required=True,
        help="Name, Model, Backends, Runs, Measurements, HostRootPath, HostResultsDir",
    )  # fmt: skip


def run_qnn_bench(arguments: Namespace) -> int:
    report = run_bench_config(read_options(arguments, QnnBenchOptions).config)
    report.show()
    return report.code


TOOL = Tool(
    "qnn-bench",
    "Run a model on backends as often as a configuration says, and tell how long it takes.",
    "-c CONFIG.json",
    (QnnBenchOptions, OwnOps),
    lambda arguments, _: run_qnn_bench(arguments),
    examples=("qnn-bench -c bench.json",),
)
