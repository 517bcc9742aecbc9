"""qnn-context-binary-generator: graphs compiled for a backend, in one context binary."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.cli.shared.binaries import print_compiled
from openqnn.cli.shared.vendor_setup import (
    print_version,
    profiling,
    remark,
    required,
    say,
    setup,
    show_log,
    source,
)
from openqnn.errors import UsageError
from openqnn.formats.atomic import check_place, replacing_path
from openqnn.options.context_tools import NO_MEMHANDLE, GeneratorModel, GeneratorOutput
from openqnn.options.field import read_options
from openqnn.options.later import LaterGenerator
from openqnn.options.net_run import Tooling
from openqnn.options.packages import OwnDeclarations
from openqnn.vendor.extra_outputs import Wanted
from openqnn.vendor.remote import compile_source


def _check_options(model: GeneratorModel, output: GeneratorOutput, tooling: Tooling) -> None:
    required(model.backend, "--backend")
    if not (model.model or model.dlc_path):
        raise UsageError("one of --model and --dlc_path is required")
    if output.input_output_tensor_mem_type != "raw":
        say(f"note: --input_output_tensor_mem_type: {NO_MEMHANDLE}")
    if output.verbose and tooling.log_level:
        raise UsageError("--verbose and --log_level exclude each other")


def run_generator(arguments: Namespace) -> int:
    tooling = read_options(arguments, Tooling)
    if tooling.version:
        return print_version("qnn-context-binary-generator")
    model, output = read_options(arguments, GeneratorModel), read_options(arguments, GeneratorOutput)
    read_options(arguments, LaterGenerator)
    _check_options(model, output, tooling)
    level = "verbose" if output.verbose else tooling.log_level
    made = setup(
        model.backend, model.config_file, model.soc, model.htp_arch, level, level=output.profiling_level,
        op_packages=model.op_packages,
    )  # fmt: skip
    measured = profiling(output.profiling_level, output.profiling_option, made.target.library)
    folder = Path(output.output_dir)
    name = output.binary_file
    file = folder / f"{name.removesuffix('.bin')}.bin" if name else None
    check_place(file or folder / "any")
    found = source(model.model, model.dlc_path, model.model_prefix)
    wanted = Wanted(dict(output.set_output_tensors), output.enable_intermediate_outputs)
    compiled = compile_source(
        found, made.target, wanted, measured,
        file=str(file or ""), folder=str(folder), log=show_log if level else None, note=remark,
    )  # fmt: skip
    print_compiled(compiled, file)
    if file is not None and name.endswith(".bin"):
        _link(file)
    return 0


def _link(file: Path) -> None:
    """The original adds .bin to every name: its scripts look for model.bin.bin, others for what they gave."""
    again = file.with_name(f"{file.name}.bin")
    with replacing_path(again) as temporary:
        temporary.unlink()
        try:
            os.link(file, temporary)
        except OSError:  # a file system without links
            shutil.copyfile(file, temporary)
    print(f"{again}: the same, as the original names it")


TOOL = Tool(
    "qnn-context-binary-generator",
    "Compile graphs for a backend into one context binary.",
    "(--model FILES | --dlc_path FILES) --backend LIBRARY --binary_file NAME [options]",
    (GeneratorModel, GeneratorOutput, LaterGenerator, Tooling, OwnDeclarations),
    lambda arguments, _: run_generator(arguments),
    examples=(
        "qnn-context-binary-generator --model libmodel.so --backend libQnnHtp.so --binary_file model",
        "qnn-context-binary-generator --dlc_path model.dlc --backend libQnnHtp.so"
        " --binary_file model --config_file htp.json",
    ),
)
