"""openqnn completion: a script that lets a shell complete commands, tools, flags and choices."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.completions import SHELLS
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.cli.shared.completions import Completed


@dataclass(frozen=True)
class CompletionOptions:
    """For which shell."""

    shell: str = option("", "shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run_completion(arguments: Namespace) -> Report:
    from openqnn.cli.shared.completions import completion_script

    shell = read_options(arguments, CompletionOptions).shell
    script = completion_script(shell, _known())
    return Report({"shell": shell, "script": script}, lambda: print(script, end=""))


def _known() -> list[Completed]:
    """Every command, in the order of `openqnn --help`, and every tool."""
    from openqnn.cli.command import tool_parser
    from openqnn.cli.main import command_parsers
    from openqnn.cli.registry import tool_named, tool_names
    from openqnn.cli.shared.completions import completed

    commands = [completed("openqnn", name, doc, made) for name, (doc, made) in command_parsers().items()]
    tools = [tool_named(name) for name in tool_names()]
    return [*commands, *(completed(tool.name, "", tool.doc, tool_parser(tool)) for tool in tools)]


COMMAND = Command(
    "completion",
    "Print a script that completes commands, tools and flags in a shell.",
    (CompletionOptions,),
    run_completion,
    examples=("openqnn completion bash > ~/.local/share/bash-completion/completions/openqnn",),
)
