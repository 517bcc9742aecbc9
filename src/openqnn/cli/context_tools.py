"""Tools about context binaries: making, describing, checking and unpacking them."""

from __future__ import annotations

import tarfile
from argparse import Namespace
from pathlib import Path

from openqnn.cli.tool import Tool
from openqnn.cli.vendor_tools import (
    GRAPH_FILES,
    opened_binary,
    print_version,
    profiling,
    remark,
    required,
    say,
    setup,
    show_log,
    source,
)
from openqnn.errors import OutputError, UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.context_tools import (
    NO_MEMHANDLE,
    CompileOptions,
    ExtractOptions,
    GeneratorModel,
    GeneratorOutput,
    UtilityOptions,
)
from openqnn.options.field import read_options
from openqnn.options.net_run import Tooling
from openqnn.options.source import SourceOptions
from openqnn.qnn.model_library import PREFIX
from openqnn.vendor.compiled_context import check_binary_name
from openqnn.vendor.extra_outputs import Wanted
from openqnn.vendor.jobs import Compiled
from openqnn.vendor.model import read_binary
from openqnn.vendor.remote import compile_source, describe_context
from openqnn.vendor.source import Source


def run_generator(arguments: Namespace) -> int:
    tooling = read_options(arguments, Tooling)
    if tooling.version:
        return print_version("qnn-context-binary-generator")
    model, output = read_options(arguments, GeneratorModel), read_options(arguments, GeneratorOutput)
    required(model.backend, "--backend")
    if not (model.model or model.dlc_path):
        raise UsageError("one of --model and --dlc_path is required")
    if output.input_output_tensor_mem_type != "raw":
        raise UsageError(f"--input_output_tensor_mem_type: {NO_MEMHANDLE}")
    if output.verbose and tooling.log_level:
        raise UsageError("--verbose and --log_level exclude each other")
    level = "verbose" if output.verbose else tooling.log_level
    made = setup(
        model.backend, model.config_file, model.soc, model.htp_arch, level, level=output.profiling_level
    )
    measured = profiling(output.profiling_level, output.profiling_option, made.target.library)
    folder = Path(output.output_dir)
    name = output.binary_file
    file = folder / (name if name.endswith(".bin") else f"{name}.bin") if name else None
    check_place(file or folder / "any")
    found = source(model.model, model.dlc_path, model.model_prefix)
    wanted = Wanted(dict(output.set_output_tensors), output.enable_intermediate_outputs)
    compiled = compile_source(
        found, made.target, wanted, measured,
        file=str(file or ""), folder=str(folder), log=show_log if level else None, note=remark,
    )  # fmt: skip
    _tell(compiled, file)
    return 0


def _tell(compiled: Compiled, file: Path | None) -> None:
    graphs = ", ".join(compiled.graphs)
    if file is None:
        say("note: no --binary_file: the graphs were compiled, and nothing was written")
        print(f"compiled {graphs}")
    else:
        print(f"{file}: {graphs}, {compiled.size:,} bytes")


def run_compile(arguments: Namespace) -> int:
    """openqnn compile."""
    given, options = read_options(arguments, SourceOptions), read_options(arguments, CompileOptions)
    target = Path(options.output or _default(given.model))
    check_binary_name(target)
    if options.external and target.suffix != ".onnx":
        raise UsageError("--external goes with an EPContext model", hint=f"-o {target.with_suffix('.onnx')}")
    _check_target(target, given.model)
    made = setup(options.backend, options.config_file, options.soc, options.htp_arch)
    found = _compiled_source(given)
    binary = target if target.suffix != ".onnx" else target.with_name(f".{target.stem}.bin")
    try:
        compiled = compile_source(found, made.target, file=str(binary), note=remark)
        if target.suffix == ".onnx":
            _wrap(binary, target, embed=not options.external)
    finally:
        if binary != target:
            binary.unlink(missing_ok=True)
    _tell(compiled, target)
    return 0


def _compiled_source(given: SourceOptions) -> Source:
    from openqnn.api.files import check_static, open_graph

    settings = {"input_shapes": dict(given.input_shapes), "dims": dict(given.dims), "batch": given.batch}
    if Path(given.model).suffix not in GRAPH_FILES:
        return Source((open_graph(given.model, **settings),))
    check_static(given.model, settings)
    return source([given.model], [], PREFIX)


def _default(given: str) -> Path:
    """A binary in the working folder, unless that is where a converter has put the model's weights."""
    target = Path(Path(given).with_suffix(".bin").name)
    if target.is_file() and tarfile.is_tarfile(target):
        hint = f"-o {target.stem}.context.bin, or any other name"
        raise OutputError(f"{target} holds the weights of a model: it would be lost", hint=hint)
    return target


def _check_target(target: Path, given: str) -> None:
    """Before the work is done: that the result has a place, and not that of what it is made of."""
    check_place(target)
    if target.exists() and Path(given).exists() and target.samefile(given):
        raise OutputError(f"{target} is the source itself", hint="give another file for the result")


def _wrap(binary: Path, target: Path, *, embed: bool) -> None:
    from openqnn.emit.epcontext import write_epcontext

    write_epcontext(target, read_binary(binary), describe_context(binary), embed=embed)


def run_utility(arguments: Namespace) -> int:
    from openqnn.emit.context_json import context_json

    options = read_options(arguments, UtilityOptions)
    if options.version:
        return print_version("qnn-context-binary-utility")
    required(options.context_binary, "--context_binary")
    target = Path(options.json_file) if options.json_file else None
    if target is not None and not target.absolute().parent.is_dir():
        raise OutputError(f"{target}: there is no folder {target.parent}")
    if target is not None:
        _check_target(target, options.context_binary)
    with opened_binary(options.context_binary) as binary:
        info = describe_context(binary)
    if target is None:
        print(f"{options.context_binary}: {len(info.graphs)} graph(s), build {info.build_id}")
        return 0
    with replacing(target) as file:
        file.write(context_json(info).encode())
    print(f"{target}: {len(info.graphs)} graph(s), build {info.build_id}")
    return 0


def run_extract(arguments: Namespace) -> int:
    """openqnn extract."""
    from openqnn.emit.epcontext import read_epcontext

    options = read_options(arguments, ExtractOptions)
    found = read_epcontext(options.file)
    target = Path(options.output or _default(options.file))
    _check_target(target, options.file)
    data = found.binary()
    with replacing(target) as file:
        file.write(data)
    print(f"{target}: {', '.join(found.partitions)}, {len(data):,} bytes")
    return 0


TOOLS = (
    Tool(
        "qnn-context-binary-generator",
        "Compile graphs for a backend into one context binary.",
        "(--model FILES | --dlc_path FILES) --backend LIBRARY --binary_file NAME [options]",
        (GeneratorModel, GeneratorOutput, Tooling),
        lambda arguments, _: run_generator(arguments),
    ),
    Tool(
        "qnn-context-binary-utility",
        "Validate a context binary and write its description as JSON.",
        "--context_binary FILE [--json_file FILE]",
        (UtilityOptions,),
        lambda arguments, _: run_utility(arguments),
    ),
)  # fmt: skip
