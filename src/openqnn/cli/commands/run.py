"""openqnn run: a model on arrays from files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.options.field import read_options
from openqnn.options.output import RunIo
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions


def run_run(arguments: Namespace) -> Report:
    from openqnn.api.files import CONTEXT, holds_graph, open_graph
    from openqnn.api.session import Session
    from openqnn.cli.report import print_results
    from openqnn.cli.shared.array_files import output_paths, read_inputs, write_array
    from openqnn.targets.registry import HTP, target_of_backend

    source, io = read_options(arguments, SourceOptions), read_options(arguments, RunIo)
    is_binary = Path(source.model).suffix == CONTEXT and not holds_graph(source.model)
    given = source.model if is_binary else open_graph(source.model, **source.settings())
    backend = HTP if is_binary and target_of_backend(io.backend).is_built_in else io.backend
    with Session(given, backend, threads=io.threads, timeout=io.timeout, soc=io.soc or None) as session:
        inputs = read_inputs(session.graph, dict(io.inputs), fill=io.random)
        results = session.run(inputs, io.outputs or None)
    paths = output_paths(Path(io.output_dir), results)
    for name, array in results.items():
        write_array(paths[name], array)
    record = {
        name: {"file": str(paths[name]), "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in results.items()
    }
    return Report({"outputs": record}, lambda: print_results(results, paths))


COMMAND = Command(
    "run",
    "Run a model on arrays from files.",
    (SourceOptions, OwnOps, RunIo),
    run_run,
    examples=(
        "openqnn run model.onnx --input x=x.npy",
        "openqnn run model.oqnn --backend htp --random",
    ),
)
