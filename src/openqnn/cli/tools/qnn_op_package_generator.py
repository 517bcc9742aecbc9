"""qnn-op-package-generator: source of op packages from their XML, or from Python functions."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.options.field import option, read_options


@dataclass(frozen=True)
class GeneratorOptions:
    """The package."""

    config_path: tuple[str, ...] = option(
        (), "--config_path", "-p", metavar="FILE", repeat=True, required=True,
        help="the XML that declares an op package, or a Python file with @openqnn.custom_op; repeat for more",
    )  # fmt: skip
    output_path: str = option(
        "", "--output_path", "-o", metavar="FOLDER", help="where the package's folder goes (default: here)"
    )
    force_generation: bool = option(
        False, "--force-generation", "-f",
        help="delete what stands in the package's folder, and write it anew",
    )  # fmt: skip
    converter_op_package: bool = option(
        False, "--converter_op_package", "-cop",
        help="also write a converter op package: shapes of results, for --converter_op_package_lib",
    )  # fmt: skip
    debug: bool = option(False, "--debug", help="tell of every file that is written")


def run_op_package_generator(arguments: Namespace, _: str) -> int:
    from openqnn.api.custom_ops import load_custom_ops
    from openqnn.emit.op_package.package_files import write_package
    from openqnn.errors import InputError
    from openqnn.ops.custom import custom_ops, package_named

    options = read_options(arguments, GeneratorOptions)
    load_custom_ops(*options.config_path)
    names = list(dict.fromkeys(op.package for op in custom_ops() if not op.seen))
    if not names:
        hint = "declare one with @openqnn.custom_op; a composite needs no package"
        raise InputError(f"{options.config_path[0]}: it declares no custom op", hint=hint)
    for name in names:
        ops = [op for op in custom_ops() if op.package == name]
        made = write_package(
            package_named(name), ops, Path(options.output_path or "."), force=options.force_generation,
            converter=options.converter_op_package, sources=[Path(p) for p in options.config_path],
        )  # fmt: skip
        for each in made:
            _report(each, debug=options.debug)
    return 0


def _report(made: object, *, debug: bool) -> None:
    from openqnn.emit.op_package.package_files import GeneratedPackage

    assert isinstance(made, GeneratedPackage)
    print(f"{made.folder}: {made.backend}" + (f", needs {made.needs}" if made.needs else ""))
    for op, reason in made.open_kernels.items():
        print(f"  write the kernel of {op} in {made.folder / 'src' / 'ops' / f'{op}.cpp'}: {reason}")
    if made.provider and not made.needs:
        print(f"  build: make -C {made.folder}")
        print(f"  use:   --op_packages {made.folder}/libs/x86_64-linux-clang/{made.library}:{made.provider}")
    elif not made.provider:
        print(f"  build: make -C {made.folder}")
        print(f"  use:   --converter_op_package_lib {made.folder.absolute() / made.library}")
    if debug:
        for file in sorted(p for p in made.folder.rglob("*") if p.is_file()):
            print(f"  {file}")


TOOL = Tool(
    "qnn-op-package-generator",
    "Write the source of an op package: complete for CPU, skeletons for HTP, GPU and DSP.",
    "-p PACKAGE.xml [-o FOLDER] [options]",
    (GeneratorOptions,),
    run_op_package_generator,
    examples=("qnn-op-package-generator -p package.xml -o packages/",),
)
