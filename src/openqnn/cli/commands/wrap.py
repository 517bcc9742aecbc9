"""openqnn wrap: a context binary as an EPContext model, which ONNX Runtime's QNN provider loads."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.errors import OutputError, UsageError
from openqnn.options.field import read_options
from openqnn.options.wrap import WrapOptions


def run_wrap(arguments: Namespace) -> Report:
    from openqnn.emit.epcontext import write_epcontext
    from openqnn.formats.atomic import check_place
    from openqnn.vendor.model import read_binary
    from openqnn.vendor.remote import describe_context

    options = read_options(arguments, WrapOptions)
    source = Path(options.file)
    target = Path(options.output or source.with_name(f"{source.stem}_ctx.onnx").name)
    if target.suffix == ".dlc":
        raise UsageError(
            f"{target}: libQnnSystem writes graphs into a DLC, and no context binaries",
            hint="an EPContext model (.onnx) holds one; a graph is saved as .dlc by `openqnn convert`",
        )
    if target.suffix != ".onnx":
        raise UsageError(f"{target}: an EPContext model is an .onnx file")
    if target.exists() and not options.overwrite:
        raise OutputError(f"{target} exists", hint="--overwrite replaces it")
    check_place(target)
    info = describe_context(source)
    files = write_epcontext(target, read_binary(source), info, embed=not options.external)
    graphs = [graph.name for graph in info.graphs]
    record = {"output": [str(file) for file in files], "graphs": graphs}
    return Report(record, lambda: print(f"{', '.join(map(str, files))}: {', '.join(graphs)}"))


COMMAND = Command(
    "wrap",
    "Make an EPContext model for ONNX Runtime of a context binary.",
    (WrapOptions,),
    run_wrap,
    examples=("openqnn wrap model.bin -o model_ctx.onnx",),
)
