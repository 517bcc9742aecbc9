"""qnn-model-lib-generator: libraries out of what a converter wrote."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.errors import InputError, LibraryError
from openqnn.options.field import read_options
from openqnn.options.model_lib import ModelLib


def run_model_lib_generator(arguments: Namespace, command: str) -> int:
    from openqnn.emit.model_lib import DEFAULT_TARGETS, LibraryJob, build_model_library

    options = read_options(arguments, ModelLib)
    if options.bin and not Path(options.bin).is_file():
        raise InputError(f"{options.bin}: no such file")
    targets = [t for words in options.lib_targets or () for t in words.replace(",", " ").split()]
    name = options.lib_name.removeprefix("lib").removesuffix(".so")
    job = LibraryJob(Path(options.cpp), Path(options.bin) if options.bin else None, name)
    try:
        build_model_library(job, options.output_dir, targets or DEFAULT_TARGETS, print)
    except LibraryError as error:
        if targets:
            raise
        hint = f"{error.hint}; or say what to build for: -t x86_64-linux-clang"
        raise LibraryError(error.message, hint=hint) from error
    return 0


TOOL = Tool(
    "qnn-model-lib-generator",
    "Compile what qnn-onnx-converter wrote into libraries that applications load.",
    "-c MODEL.cpp [-b MODEL.bin] [options]",
    (ModelLib,),
    run_model_lib_generator,
)
