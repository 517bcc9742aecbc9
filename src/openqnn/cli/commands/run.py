"""openqnn run: a model on arrays from files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.options.field import read_options
from openqnn.options.output import RunIo
from openqnn.options.source import SourceOptions


def run_run(arguments: Namespace) -> Report:
    from openqnn.api.files import open_graph
    from openqnn.api.session import Session
    from openqnn.cli.report import print_results
    from openqnn.cli.shared.array_files import output_paths, read_inputs, write_array

    source, io = read_options(arguments, SourceOptions), read_options(arguments, RunIo)
    graph = open_graph(source.model, **source.settings())
    inputs = read_inputs(graph, dict(io.inputs), fill=io.random)
    with Session(graph, io.backend, threads=io.threads) as session:
        results = session.run(inputs, io.outputs or None)
    paths = output_paths(Path(io.output_dir), results)
    for name, array in results.items():
        write_array(paths[name], array)
    record = {
        name: {"file": str(paths[name]), "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in results.items()
    }
    return Report({"outputs": record}, lambda: print_results(results, paths))


COMMAND = Command("run", "Run a model on arrays from files.", (SourceOptions, RunIo), run_run)
