"""qnn-model-lib-generator: libraries out of what a converter wrote."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Tool
from openqnn.cli.shared.vendor_setup import say
from openqnn.errors import InputError, LibraryError
from openqnn.options.field import read_options
from openqnn.options.later import LaterLibrary
from openqnn.options.model_lib import ModelLib

if TYPE_CHECKING:
    from openqnn.emit.model_lib import LibraryJob

HOST = "x86_64-linux-clang"
LIBRARY = ".so"


def run_model_lib_generator(arguments: Namespace, command: str) -> int:
    from openqnn.emit.model_lib import DEFAULT_TARGETS, LibraryJob

    options = read_options(arguments, ModelLib)
    read_options(arguments, LaterLibrary)
    if options.bin and not Path(options.bin).is_file():
        raise InputError(f"{options.bin}: no such file")
    targets = [t for words in options.lib_targets or () for t in words.replace(",", " ").split()]
    job = LibraryJob(Path(options.cpp), Path(options.bin) if options.bin else None, _name(options))
    output = Path(options.output_dir)
    wanted = targets or list(DEFAULT_TARGETS)
    if output.suffix == LIBRARY and len(wanted) == 1 and not output.is_dir():
        _build_file(job, output, wanted[0])
    else:
        _build_all(job, output, wanted)
    return 0


def _name(options: ModelLib) -> str:
    """The library's name: the one given, or that of the weights; "" leaves it to the source."""
    from openqnn.qnn.net import qnn_name

    name = options.lib_name.removeprefix("lib").removesuffix(LIBRARY)
    return qnn_name(Path(options.bin).stem) if options.bin and not name else name


def _build_all(job: LibraryJob, output: Path, targets: Sequence[str]) -> None:
    """A library for each target that there is a compiler for; LibraryError where there is none for any."""
    from openqnn.emit.model_lib import build_model_library
    from openqnn.emit.toolchain import find_compiler

    possible: list[str] = []
    missing: list[LibraryError] = []
    for target in targets:
        try:
            find_compiler(target)
        except LibraryError as error:
            missing.append(error)
        else:
            possible.append(target)
    if not possible and missing:
        hint = missing[0].hint if HOST in targets else f"{missing[0].hint}; -t {HOST} is built without"
        raise LibraryError(missing[0].message, hint=hint)
    for error in missing:
        say(f"warning: not built: {error.message}\n  hint: {error.hint}")
    build_model_library(job, output, possible, print)


def _build_file(job: LibraryJob, file: Path, target: str) -> None:
    """The library under the very name that was given, as tutorials have it.

    Without a compiler for the target it is built for this machine, where the next tools read it.
    """
    from openqnn.emit.model_lib import build_model_library
    from openqnn.emit.toolchain import find_compiler
    from openqnn.formats.atomic import partial_folder, replacing_path

    try:
        find_compiler(target)
    except LibraryError as error:
        if target == HOST:
            raise
        say(f"warning: {error.message}: {file} is built for this machine ({HOST}), and runs on no device")
        say(f"  hint: {error.hint}")
        target = HOST
    with partial_folder(file) as folder, replacing_path(file) as temporary:
        built = build_model_library(job, folder, [target])
        os.replace(shutil.move(built[target], folder / "built"), temporary)
    print(f"{file}: {target}")


TOOL = Tool(
    "qnn-model-lib-generator",
    "Compile what qnn-onnx-converter wrote into libraries that applications load.",
    "-c MODEL.cpp [-b MODEL.bin] [options]",
    (ModelLib, LaterLibrary),
    run_model_lib_generator,
    examples=("qnn-model-lib-generator -c model.cpp -b model.bin -t x86_64-linux-clang -o libs/",),
)
