"""openqnn fuse: subgraphs of a model as nodes of a custom op, and back."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.graph_files import check_graph_file, write_graph_file
from openqnn.errors import UsageError
from openqnn.options.field import read_options
from openqnn.options.output import FuseOptions
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions


def run_fuse(arguments: Namespace) -> Report:
    from openqnn.api.files import open_graph
    from openqnn.api.fuse import expand, fuse
    from openqnn.formats.atomic import replacing_any_kind

    source, options = read_options(arguments, SourceOptions), read_options(arguments, FuseOptions)
    _check(options)
    target = Path(options.output or Path(source.model).with_suffix(".oqnn").name)
    check_graph_file(target, Path(source.model), options.overwrite)
    graph = open_graph(source.model, **source.settings())
    if options.expand:
        made = expand(graph, options.op)
    else:
        made = fuse(
            graph, options.op, options.inputs, options.outputs, dict(options.params),
            everywhere=not options.once,
        )  # fmt: skip
    with replacing_any_kind(options.overwrite):
        write_graph_file(made.graph, target)
    record = {
        "output": str(target), "nodes": len(made.graph.nodes), "places": list(made.places),
        "error": made.error, "samples": made.samples,
    }  # fmt: skip

    def show() -> None:
        for place in made.places:
            print(f"{options.op} at {place}")
        print(f"equal on {made.samples} random samples: {made.error:.1e} of the largest result at most")
        print(f"{target}: {len(made.graph.nodes)} nodes")

    return Report(record, show)


def _check(options: FuseOptions) -> None:
    if not options.op:
        raise UsageError("--op is missing", hint="--op PACKAGE::NAME, declared in a file for --custom_ops")
    if options.expand and (options.inputs or options.outputs or options.params or options.once):
        raise UsageError("--expand goes with --op alone", hint="it replaces every node of the op")
    if not options.expand and not options.outputs:
        raise UsageError("--to is missing", hint="--from and --to name the tensors that bound the subgraph")


COMMAND = Command(
    "fuse",
    "Replace subgraphs of a model by nodes of a custom op, or the reverse, proved on random data.",
    (SourceOptions, OwnOps, FuseOptions),
    run_fuse,
    examples=("openqnn fuse model.onnx --custom_ops ops.py --op my_package::Swish -o fused.oqnn",),
)
