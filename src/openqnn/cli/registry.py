"""Which commands and tools there are: every module of `commands` and `tools` has one.

A name is looked up without importing the others, since each command imports little of what they need.
"""

from __future__ import annotations

import re
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

COMMAND_GROUPS: dict[str, tuple[str, ...]] = {
    "Convert a model and look at it": ("check", "convert", "inspect", "view", "diff", "fuse"),
    "Quantize it, and find what that costs": ("quantize", "encodings", "debug", "compare", "evaluate"),
    "Run it and tell how fast it is": ("run", "bench", "estimate", "lint", "profile", "partition"),
    "Bring it to a device": ("compile", "context", "deploy", "extract", "wrap", "op-package"),
    "Get started, and out of trouble": (
        "demo", "models", "doctor", "explain", "reduce", "sdk-tree", "completion",
    ),
}  # fmt: skip
"""The order of `openqnn --help`: that of a user's work."""

_DOC = re.compile(r'^COMMAND = Command\(\s+"[\w-]+",\s+"([^"\\]+)",', re.MULTILINE)


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
    order = [name for group in COMMAND_GROUPS.values() for name in group]
    return sorted(names, key=order.index)


def command_named(name: str) -> Command:
    home = import_module(f"openqnn.cli.commands.{name.replace('-', '_')}")
    return cast(Command, home.COMMAND)


def command_doc(name: str) -> str:
    """What a command is for: read out of its file where it stands there plainly, since importing all takes
    longer than the rest of `openqnn --help`."""
    file = Path(__file__).parent / "commands" / f"{name.replace('-', '_')}.py"
    try:
        found = _DOC.search(file.read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1] if found else command_named(name).doc


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
