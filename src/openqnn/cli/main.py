"""openqnn <command>."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from openqnn import __version__
from openqnn.cli.command import Help, Parser, ReportOptions, examples_below, print_json
from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import USAGE, execute
from openqnn.cli.registry import COMMAND_GROUPS, command_doc, command_named, command_names
from openqnn.options.field import add_options
from openqnn.options.trust import TrustOptions

HELP = (["-h"], ["--help"])
_COMMANDS: Mapping[str, Any] = {
    "title": "commands", "dest": "command", "metavar": "COMMAND", "required": True,
}  # fmt: skip
FIRST_STEPS = (
    "openqnn demo                                 # the whole job in two minutes",
    "openqnn check model.onnx                     # what converts, and what not",
    "openqnn quantize model.onnx --data samples/  # in fixed point, at what cost",
    "openqnn COMMAND --help                       # a command's options, examples",
)


class _TopHelp(Help):
    """Lists the commands in groups, in the order of a user's work."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18)

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        self._action_max_length += self._indent_increment  # of the groups
        named = {choice.dest: choice for choice in action._choices_actions}
        parts: list[str] = []
        for title, names in COMMAND_GROUPS.items():
            parts.append(f"  {title}:\n")
            self._indent()
            parts += [self._format_action(named[name]) for name in names if name in named]
            self._dedent()
        return self._join_parts(parts)


def _top() -> argparse.ArgumentParser:
    top = Parser(
        prog="openqnn",
        description="The Qualcomm QNN toolchain: convert, quantize, compile, run and inspect models.",
        epilog=examples_below(FIRST_STEPS),
        formatter_class=_TopHelp,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, help="print versions, of Qualcomm's libraries too")
    return top


def listing() -> argparse.ArgumentParser:
    """The parser that knows of commands what they are for, and none of their options."""
    top = _top()
    sub = top.add_subparsers(**_COMMANDS)
    for name in command_names():
        sub.add_parser(name, help=command_doc(name))
    return top


def parser(names: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of some commands; of all unless they are named."""
    top = _top()
    sub = top.add_subparsers(**_COMMANDS)
    for name in names or command_names():
        command = command_named(name)
        p = sub.add_parser(
            command.name,
            help=command.doc,
            description=command.doc,
            epilog=examples_below(command.examples),
            formatter_class=Help,
            allow_abbrev=False,
        )
        for group in command.groups:
            add_options(p, group)
        add_options(p, ReportOptions, command.missing_options())
        add_options(p, TrustOptions)
        p.set_defaults(run=command.run, parser=p)
    return top


def _parsed(top: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The arguments, and those that nobody knows. Options may stand between the names of a list."""
    arguments, unknown = top.parse_known_args(words)
    own: argparse.ArgumentParser = arguments.parser
    lists = [a for a in own._actions if not a.option_strings and a.nargs in ("*", "+")]
    if not unknown or not lists or unknown[0].startswith("-"):
        return arguments, unknown
    again, unknown = own.parse_known_intermixed_args(words[1:])
    return argparse.Namespace(**{**vars(arguments), **vars(again)}), unknown


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
    if not words:  # somebody's first try: the help is the answer, though for a script it is a failure
        listing().print_help()
        return USAGE
    asked = words[:1] if words and words[0] in command_names() else None  # only that one is imported
    arguments, unknown = _parsed(listing() if words in HELP else parser(asked), words)
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
