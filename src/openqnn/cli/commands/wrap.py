"""openqnn wrap: a context binary as an EPContext model for ONNX Runtime, or in the DLC of its graphs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Command, Report
from openqnn.errors import ModelError, OutputError, UsageError
from openqnn.options.field import read_options
from openqnn.options.wrap import WrapOptions


def run_wrap(arguments: Namespace) -> Report:
    from openqnn.cli.shared.write_prepared import write_prepared
    from openqnn.emit.epcontext import write_epcontext
    from openqnn.vendor.model import read_binary
    from openqnn.vendor.remote import describe_context

    options = read_options(arguments, WrapOptions)
    source = Path(options.file)
    target = _target(options, source)
    info = describe_context(source)
    if options.dlc:
        write_prepared(Path(options.dlc), target, read_binary(source).tobytes(), info)
        files = [target]
    else:
        files = write_epcontext(target, read_binary(source), info, embed=not options.external)
    graphs = [graph.name for graph in info.graphs]
    record = {"output": [str(file) for file in files], "graphs": graphs}
    return Report(record, lambda: print(f"{', '.join(map(str, files))}: {', '.join(graphs)}"))


def _target(options: WrapOptions, source: Path) -> Path:
    """Where the result goes, if it can go there."""
    from openqnn.formats.atomic import check_place

    kind = ".dlc" if options.dlc else ".onnx"
    target = Path(options.output or source.with_name(f"{source.stem}_ctx{kind}").name)
    if target.suffix == ".dlc" and not options.dlc:
        raise UsageError(
            f"{target}: a DLC has graphs, and a context binary tells none",
            hint="--dlc MODEL.dlc, the one that the binary was compiled from",
        )
    if target.suffix != kind:
        raise UsageError(
            f"{target}: the result is {'a DLC' if options.dlc else 'an EPContext model'} ({kind})"
        )
    if options.dlc:
        _check_dlc(options)
    if target.exists() and not options.overwrite:
        raise OutputError(f"{target} exists", hint="--overwrite replaces it")
    check_place(target)
    return target


def _check_dlc(options: WrapOptions) -> None:
    if options.external:
        raise UsageError("--external goes with an EPContext model: a DLC has the binary in it")
    if not Path(options.dlc).is_file():
        raise ModelError(f"{options.dlc}: no such file")


COMMAND = Command(
    "wrap",
    "Make an EPContext model for ONNX Runtime of a context binary, or put it into its DLC.",
    (WrapOptions,),
    run_wrap,
    examples=("openqnn wrap model.bin -o model_ctx.onnx",),
)
