"""openqnn <command>."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

from openqnn import __version__
from openqnn.cli.command import Parser, ReportOptions, print_json
from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import execute
from openqnn.cli.registry import command_named, command_names
from openqnn.options.field import add_options
from openqnn.options.trust import TrustOptions


def parser(names: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of some commands; of all unless they are named."""
    top = Parser(
        prog="openqnn",
        description="Qualcomm QNN toolchain: convert, check, inspect and run models.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, help="print versions, of Qualcomm's libraries too")
    sub = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names or command_names():
        command = command_named(name)
        p = sub.add_parser(command.name, help=command.doc, description=command.doc, allow_abbrev=False)
        for group in command.groups:
            add_options(p, group)
        add_options(p, ReportOptions, command.missing_options())
        add_options(p, TrustOptions)
        p.set_defaults(run=command.run, parser=p)
    return top


class _Version(argparse.Action):
    """Asks the libraries for their builds only when the flag is given."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from openqnn.cli.shared.vendor_setup import print_builds

        print(f"openqnn {__version__}")
        print_builds()
        parser.exit()


def command_parsers() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The doc line and the parser of every command."""
    top = parser()
    found = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    docs = {choice.dest: choice.help or "" for choice in found._choices_actions}
    return {name: (docs[name], made) for name, made in found.choices.items()}


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    asked = words[:1] if words and words[0] in command_names() else None  # only that one is imported
    arguments, unknown = parser(asked).parse_known_args(words)
    if unknown:  # told by the command's own parser, which knows what is near
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return execute(lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> int:
    from openqnn.vendor.trust import trusting

    declare_ops(arguments)
    with ExitStack() as stack:
        if arguments.quiet and not arguments.json:
            nothing = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nothing))
        with trusting(arguments.run_code):
            result = arguments.run(arguments)
        if isinstance(result, int):
            return result
        if arguments.json:
            print_json(result.record)
        else:
            result.show()
        return result.code


if __name__ == "__main__":
    sys.exit(main())
