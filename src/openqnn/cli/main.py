"""openqnn <command>."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from openqnn import __version__
from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import execute
from openqnn.cli.registry import command_named, command_names
from openqnn.options.field import add_options


def parser(names: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of some commands; of all unless they are named."""
    top = argparse.ArgumentParser(
        prog="openqnn",
        description="Qualcomm QNN toolchain: convert, check, inspect and run models.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"openqnn {__version__}")
    sub = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names or command_names():
        command = command_named(name)
        p = sub.add_parser(command.name, help=command.doc, description=command.doc, allow_abbrev=False)
        for group in command.groups:
            add_options(p, group)
        p.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    asked = words[:1] if words and words[0] in command_names() else None  # only that one is imported
    arguments = parser(asked).parse_args(words)
    return execute(lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> int:
    declare_ops(arguments)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
