"""openqnn <command>."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from openqnn.cli import commands
from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import execute
from openqnn.options.field import add_options


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="openqnn",
        description="Qualcomm QNN toolchain: convert, check, inspect and run models.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"openqnn {commands.version()}")
    sub = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in commands.COMMANDS:
        p = sub.add_parser(command.name, help=command.doc, description=command.doc, allow_abbrev=False)
        for group in command.groups:
            add_options(p, group)
        p.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    return execute(lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> int:
    declare_ops(arguments)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
