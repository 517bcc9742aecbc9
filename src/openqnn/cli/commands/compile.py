"""openqnn compile: a model for a SoC, as a context binary or an EPContext model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.context_tools import CompileOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.vendor.source import Source
    from openqnn.vendor.target_setup import Target


def run_compile(arguments: Namespace) -> Report:
    from openqnn.cli.shared.binaries import check_binary, default_binary, print_compiled
    from openqnn.cli.shared.vendor_setup import remark, setup
    from openqnn.formats.atomic import Parked
    from openqnn.vendor.compiled_context import check_binary_name
    from openqnn.vendor.remote import compile_source

    given, options = read_options(arguments, SourceOptions), read_options(arguments, CompileOptions)
    target = Path(options.output or default_binary(given.model))
    check_binary_name(target)
    if options.external and target.suffix != ".onnx":
        raise UsageError("--external goes with an EPContext model", hint=f"-o {target.with_suffix('.onnx')}")
    check_binary(target, given.model)
    made = setup(options.backend, options.config_file, options.soc, options.htp_arch)
    found = _compiled_source(given, options.shapes)
    device = _sharing(made.target, found, separate=options.separate_weights)
    if target.suffix != ".onnx":
        compiled = compile_source(found, device, file=str(target), note=remark)
    else:
        parked = Parked("context.bin")
        compiled = compile_source(found, device, file=str(parked.path), note=remark)
        _wrap(parked.path, target, embed=not options.external)
    record = {"output": str(target), "graphs": list(compiled.graphs), "bytes": compiled.size}
    return Report(record, lambda: print_compiled(compiled, target))


def _sharing(target: Target, source: Source, *, separate: bool) -> Target:
    """HTP keeps the weights that graphs have in common once, where nothing else is said."""
    from dataclasses import replace

    from openqnn.qnn.dlc import graph_names
    from openqnn.qnn.options import ContextOptions
    from openqnn.targets.registry import target_of_library

    count = len(source.graphs) + sum(len(graph_names(file)) for file in source.files)
    said = target.context is not None and target.context.weight_sharing is not None
    if count < 2 or separate or said or not target_of_library(target.library).compiles:
        return target
    return replace(target, context=replace(target.context or ContextOptions(), weight_sharing=True))


def _compiled_source(given: SourceOptions, shapes: str) -> Source:
    from openqnn.api.files import check_static, open_graph
    from openqnn.cli.shared.vendor_setup import GRAPH_FILES, source
    from openqnn.qnn.model_library import PREFIX
    from openqnn.vendor.source import Source
    from openqnn.vendor.trust import check_trusted

    settings = given.settings()
    if shapes:
        from openqnn.api.family import convert_family

        return Source(convert_family(given.model, shapes, **settings).graphs)
    if Path(given.model).suffix not in GRAPH_FILES:
        return Source((open_graph(given.model, **settings),))
    check_trusted(given.model)
    check_static(given.model, settings)
    return source([given.model], [], PREFIX)


def _wrap(binary: Path, target: Path, *, embed: bool) -> None:
    from openqnn.emit.epcontext import write_epcontext
    from openqnn.vendor.model import read_binary
    from openqnn.vendor.remote import describe_context

    write_epcontext(target, read_binary(binary), describe_context(binary), embed=embed)


COMMAND = Command(
    "compile",
    "Compile a model for a SoC into a context binary.",
    (SourceOptions, OwnOps, CompileOptions),
    run_compile,
    examples=("openqnn compile model.oqnn --soc SM8650 -o model.bin",),
)
