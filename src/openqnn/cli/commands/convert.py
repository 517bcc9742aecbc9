"""openqnn convert: a model of any framework to a QNN graph."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.graph_files import check_graph_file, split_as_asked, write_graph_file
from openqnn.errors import UsageError
from openqnn.options.field import read_options
from openqnn.options.output import ConvertOutput, SplitOptions
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions


def run_convert(arguments: Namespace) -> Report:
    from openqnn.api.convert import convert
    from openqnn.api.files import check_static, holds_graph, load
    from openqnn.cli.progress import Stages
    from openqnn.formats.atomic import replacing_any_kind
    from openqnn.passes import Explain

    source, output = read_options(arguments, SourceOptions), read_options(arguments, ConvertOutput)
    suffix = ".dlc" if output.shapes else ".oqnn"
    target = Path(output.output or Path(source.model).with_suffix(suffix).name)
    check_graph_file(target, Path(source.model), output.overwrite)
    if output.shapes:
        return _convert_family(source, output, target)
    explain = Explain() if output.explain else None
    with Stages(quiet=output.quiet) as stages:
        settings = {**source.settings(), "explain": explain, "progress": stages.update}
        if holds_graph(source.model):  # another form of the same graph
            check_static(source.model, source.settings())
            graph = load(source.model)
        else:
            graph = convert(source.model, **settings)
        graph = split_as_asked(graph, read_options(arguments, SplitOptions), quiet=output.quiet)
        stages.update("write", 0, 1)
        with replacing_any_kind(output.overwrite):
            write_graph_file(graph, target)
    if explain is not None:
        from openqnn.cli.report import print_explanation

        print_explanation(explain, file=sys.stderr if arguments.json else sys.stdout)
    size = target.stat().st_size
    record = {"output": str(target), "nodes": len(graph.nodes), "bytes": size}
    return Report(record, lambda: print(f"{target}: {len(graph.nodes)} nodes, {size:,} bytes"))


def _convert_family(source: SourceOptions, output: ConvertOutput, target: Path) -> Report:
    """Several graphs of one model, in one DLC."""
    from openqnn.api.family import convert_family
    from openqnn.api.files import DLC, holds_graph
    from openqnn.formats.atomic import replacing_any_kind

    if holds_graph(source.model) or output.explain:
        what = "--explain tells of one graph" if output.explain else f"{source.model} has static shapes"
        raise UsageError(f"{what}: --shapes makes several of a dynamic model")
    if target.suffix != DLC:
        hint = f"-o {target.with_suffix(DLC).name}"
        raise UsageError(f"{target}: only a DLC holds several graphs with their weights once", hint=hint)
    family = convert_family(source.model, output.shapes, **source.settings())
    with replacing_any_kind(output.overwrite):
        family.save(target)
    names, size = [graph.name for graph in family.graphs], target.stat().st_size
    nodes = sum(len(graph.nodes) for graph in family.graphs)
    record = {"output": str(target), "nodes": nodes, "bytes": size, "graphs": names}
    return Report(record, lambda: print(f"{target}: {', '.join(names)}, {size:,} bytes"))


COMMAND = Command(
    "convert",
    "Convert a model to a QNN graph.",
    (SourceOptions, OwnOps, ConvertOutput, SplitOptions),
    run_convert,
    examples=(
        "openqnn convert model.onnx --input_shape images=1,3,640,640",
        "openqnn convert model.tflite -o model.dlc",
    ),
)
