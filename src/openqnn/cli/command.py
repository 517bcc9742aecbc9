"""What a command is: its name, its option groups and what it runs; and the parser of a tool."""

from __future__ import annotations

import argparse
import json
import math
import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NoReturn, cast

from openqnn.errors import UsageError
from openqnn.options.field import add_options, option, options_of

HELP_WIDTH = 100
USAGE = 2  # exit code
EXAMPLES = "examples:"
MOST_CHOICES = 100  # characters: with more a message does not list them


@dataclass(frozen=True)
class Report:
    """What a command found or made: a record for `--json`, and a function that prints it for people."""

    record: Any
    show: Callable[[], None]
    code: int = 0


@dataclass(frozen=True)
class ReportOptions:
    """How much is printed."""

    json: bool = option(False, "--json", help="print the result as JSON")
    quiet: bool = option(False, "--quiet", help="print errors only")


@dataclass(frozen=True)
class Command:
    """A subcommand of `openqnn`; `--json` and `--quiet` are added where its groups do not declare them."""

    name: str
    doc: str
    groups: tuple[type[Any], ...]
    run: Callable[[Namespace], int | Report]
    examples: tuple[str, ...] = ()

    def missing_options(self) -> list[str]:
        """The options of `ReportOptions` that its groups do not declare."""
        own = {name for group in self.groups for name, _ in options_of(group)}
        return [name for name, _ in options_of(ReportOptions) if name not in own]


@dataclass(frozen=True)
class Tool:
    """A command line of its own, under a name that QNN users know.

    `run` gets the parsed arguments and the line that results record. `modes` are flags that choose a part of
    the tool, each with the groups that the part reads.
    """

    name: str
    doc: str
    usage: str
    groups: tuple[type[Any], ...]
    run: Callable[[Namespace, str], int]
    takes_shapes: bool = False
    examples: tuple[str, ...] = ()
    modes: Mapping[str, tuple[type[Any], ...]] = field(default_factory=dict[str, "tuple[type[Any], ...]"])

    def in_mode(self, words: Sequence[str]) -> Tool:
        """The tool as its help shows it: with the options of the mode that the words choose."""
        chosen = next((mode for mode in self.modes if mode in words), None)
        if chosen is None or not {"-h", "--help"} & set(words):
            return self
        return replace(self, usage=f"{chosen} [options]", groups=self.modes[chosen])


def examples_below(examples: Sequence[str]) -> str | None:
    """What stands below the options in the help: lines to copy."""
    return "\n".join([EXAMPLES, *(f"  {line}" for line in examples)]) if examples else None


class Help(argparse.HelpFormatter):
    """Leaves lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLES) else super()._fill_text(text, width, indent)


class _Help(Help):
    """Prints the same help on every Python: newer ones name the value of an option once, older ones each
    time."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_WIDTH, max_help_position=34)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}"


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one message, with the nearest flag that there is."""

    def error(self, message: str) -> NoReturn:
        hint = self._hint(message)
        if (choice := _CHOICE.search(message)) and len(choice[2]) > MOST_CHOICES:
            message = message.partition(" (choose from")[0]
        self.exit(USAGE, f"{self.prog}: error: {message} [{UsageError.id}]\n  hint: {hint}\n")

    def _hint(self, message: str) -> str:
        known = [name for action in self._actions for name in action.option_strings]
        help = f"{self.prog} --help lists all options"
        if choice := _CHOICE.search(message):
            near = get_close_matches(choice[1], re.findall(r"[\w-]+", choice[2]), n=2, cutoff=0.6)
            return f"did you mean {' or '.join(near)}? {help}" if near else help
        if not message.startswith("unrecognized arguments: "):
            return help
        said = next((w.partition("=")[0] for w in message.split()[2:] if w.startswith("-")), "")
        if said in RENAMED and RENAMED[said] in known:
            return f"{said} is {RENAMED[said]} here"
        near = get_close_matches(said, known, n=2, cutoff=0.6)
        return f"did you mean {' or '.join(near)}? {help}" if near else help


RENAMED = {
    "--out_name": "--out_tensor_node", "--out_node": "--out_tensor_node", "--batch": "--onnx_batch",
    "--define_symbol": "--onnx_define_symbol", "--input_dtype": "--source_model_input_datatype",
    "--input_layout": "--source_model_input_layout", "--saved_model_tag": "--tf_saved_model_tag",
    "--no_simplification": "--onnx_no_simplification", "--float_bw": "--float_bitwidth",
    "--input_encoding": "--desired_input_color_encoding", "--custom_io": "--io_config",
}  # fmt: skip
"""Flags of one tool that another has under a new name."""


def print_json(record: object) -> None:
    """The record as JSON. JSON has no infinity and no NaN: such a number is null."""
    print(json.dumps(_finite(record), indent=2))


def _finite(record: object) -> object:
    if isinstance(record, float):
        return record if math.isfinite(record) else None
    if isinstance(record, Mapping):
        return {key: _finite(value) for key, value in cast("Mapping[str, object]", record).items()}
    if isinstance(record, list | tuple):
        return [_finite(value) for value in cast("Sequence[object]", record)]
    return record


def tool_parser(tool: Tool) -> argparse.ArgumentParser:
    made = Parser(tool.name, f"{tool.name} {tool.usage}", tool.doc, formatter_class=_Help, allow_abbrev=False)
    made.epilog = examples_below(tool.examples)
    for group in tool.groups:
        add_options(made, group)
    return made


def recorded(tool: Tool, arguments: Namespace) -> str:
    """The command line as results keep it: every argument in alphabetical order, defaults too."""
    names = sorted(name for group in tool.groups for name, o in options_of(group) if not o.note)
    repeating = {name for group in tool.groups for name, o in options_of(group) if o.repeats}
    values = {name: getattr(arguments, name) for name in names}
    shown = {n: [] if v is None and n in repeating else v for n, v in values.items()}
    return "; ".join([tool.name, *(f"{n}={None if v == '' else v}" for n, v in shown.items())])
