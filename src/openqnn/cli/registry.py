"""Which commands and tools there are: every module of `commands` and `tools` has one.

A name is looked up without importing the others, since each command imports little of what they need.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from openqnn.cli.command import Command, Tool, recorded, tool_parser
from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import execute
from openqnn.errors import DynamicShapeError

# The order of `openqnn --help`: what comes first in a user's work; commands that are not named follow.
_FIRST = (
    "convert", "check", "inspect", "run", "quantize", "encodings", "doctor", "reduce", "diff", "context",
    "compile", "extract", "estimate", "lint", "view",
)  # fmt: skip


@cache
def _modules(folder: str) -> tuple[str, ...]:
    files = (Path(__file__).parent / folder).glob("*.py")
    return tuple(sorted(file.stem for file in files if not file.stem.startswith("_")))


def tool_names() -> list[str]:
    return [stem.replace("_", "-") for stem in _modules("tools")]


def tool_named(name: str) -> Tool:
    home = import_module(f"openqnn.cli.tools.{name.replace('-', '_')}")
    return cast(Tool, home.TOOL)


def command_names() -> list[str]:
    names = [stem.replace("_", "-") for stem in _modules("commands")]
    return [n for n in _FIRST if n in names] + [n for n in names if n not in _FIRST]


def command_named(name: str) -> Command:
    home = import_module(f"openqnn.cli.commands.{name.replace('-', '_')}")
    return cast(Command, home.COMMAND)


def run_tool(name: str, argv: Sequence[str] | None = None) -> int:
    """Exit codes as everywhere: 0 done, 1 the user's problem, 2 usage, 3 ours."""
    tool = tool_named(name)
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = tool_parser(tool.in_mode(words)).parse_args(words)
    return execute(lambda: _in_its_words(tool, arguments))


def _in_its_words(tool: Tool, arguments: Namespace) -> int:
    """The tool's exit code. What it says names options that it has."""
    try:
        declare_ops(arguments)
        return tool.run(arguments, recorded(tool, arguments))
    except DynamicShapeError as error:
        said = " ".join(f"-d {name} {shape}" for name, shape in error.shapes.items())
        if tool.takes_shapes:
            error.hint = f"say it: {said}"
        else:
            error.hint = f"convert it first: qairt-converter -i MODEL {said}"
        raise
