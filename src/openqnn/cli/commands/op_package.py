"""openqnn op-package: whether the library of an op package works; its declaration as XML or Python."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.options.field import option, read_options
from openqnn.options.packages import op_package_config
from openqnn.options.source import custom_ops, named_shape, positive

if TYPE_CHECKING:
    from openqnn.analysis.op_package_check import PackageReport


@dataclass(frozen=True)
class OpPackageCheck:
    """The package."""

    action: str = option(
        "", "action", metavar="check|write", choices=("check", "write"),
        help="check a library, or write a declaration as XML or as Python",
    )  # fmt: skip
    library: str = option(
        "", "library", metavar="LIBRARY[:PROVIDER]|FILE",
        help="the .so of an op package, and its provider; for write, the file that declares the package",
    )  # fmt: skip
    output: str = option("", "-o", "--output", metavar="FILE", help="for write: the new file, .xml or .py")
    custom_ops: tuple[str, ...] = custom_ops()
    custom_op_config_paths: tuple[str, ...] = op_package_config()
    backend: str = option(
        "cpu", "--backend", metavar="NAME", help="the library that it is registered with (default: cpu)"
    )
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "--input_shape", metavar="NAME=DIMS", parse=named_shape, repeat=True,
        help="shape of an input or a tensor parameter of an operation, for the run on random data",
    )  # fmt: skip
    timeout: int = option(
        30, "--timeout", metavar="SECONDS", parse=positive, help="time for each step (default: 30)"
    )
    json: bool = option(False, "--json", help="print the report as JSON")


def run_op_package(arguments: Namespace) -> Report:
    from openqnn.analysis.op_package_check import check_op_package

    options = read_options(arguments, OpPackageCheck)
    if options.action == "write":
        return _write(options)
    path, _, provider = options.library.partition(":")
    report = check_op_package(
        path, provider.partition(":")[0], backend=options.backend, shapes=dict(options.input_shapes),
        timeout=options.timeout,
    )  # fmt: skip
    record = {"ok": report.ok, **dataclasses.asdict(report)}
    return Report(record, lambda: _print(path, report), int(not report.ok))


def _print(path: str, report: PackageReport) -> None:
    marks = {True: "ok", False: "FAILED", None: "?"}
    for found in report.findings:
        print(f"{marks[found.ok]:7} {found.what}: {found.message}")
        if found.hint:
            print(f"          hint: {found.hint}")
    print(f"{Path(path).name}: " + ("works" if report.ok else "does not work"))


def _write(options: OpPackageCheck) -> Report:
    from openqnn.api.custom_ops import write_declaration
    from openqnn.errors import UsageError

    if not options.output:
        raise UsageError("-o is required: where the declaration goes", hint="-o package.xml, or -o my_ops.py")
    write_declaration(options.library, options.output)
    record = {"written": options.output, "source": options.library}
    return Report(record, lambda: print(f"{options.output}: what {options.library} declares"))


COMMAND = Command(
    "op-package",
    "Tell whether an op package library works and what is wrong with it, or write its declaration anew.",
    (OpPackageCheck,),
    run_op_package,
    examples=(
        "openqnn op-package check libMyPackage.so:MyPackageInterfaceProvider --custom_ops ops.py",
        "openqnn op-package write package.xml -o my_ops.py",
    ),
)
