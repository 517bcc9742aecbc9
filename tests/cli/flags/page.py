"""Writes docs/flags.md, the table of every flag of the tools with QNN's names, from their declarations.

python -m tests.cli.flags.page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.cli.registry import tool_named, tool_names
from openqnn.options.field import Option, options_of

TOOLS = [tool_named(name) for name in tool_names()]
FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[2] / "docs" / "flags.md"
HEAD = """\
# Flags of the tools with QNN's names

Every flag that the documentation of the original tools names, and those of later SDKs and of guides that
people follow. One that cannot take effect is an error that says why; one that changes nothing here, such as
what only a device has, is taken with a note. None is ignored in silence, and an unknown one gets the nearest
as a hint. This page is generated: `python -m tests.cli.flags.page`.
"""


def documented(tool: Tool) -> list[tuple[str, ...]]:
    """The flags that the original has, each with its other names."""
    text = (FOLDER / f"{tool.name}.txt").read_text(encoding="utf-8")
    return [tuple(line.split()) for line in text.splitlines() if line]


def declared(tool: Tool) -> list[Option]:
    return [option for group in tool.groups for _, option in options_of(group)]


def page() -> str:
    return "\n".join([HEAD, *(line for tool in TOOLS for line in _section(tool))])


def _section(tool: Tool) -> Iterator[str]:
    options = declared(tool)
    refused = sum(bool(o.refusal) for o in options)
    yield f"## {tool.name}\n"
    yield f"{tool.doc}\n"
    noted = sum(bool(o.note) for o in options)
    effective = len(options) - refused - noted
    yield f"{len(options)} flags, {effective} in effect, {noted} taken with a note, {refused} refused.\n"
    yield "| flag | what it does |"
    yield "| --- | --- |"
    for option in options:
        names = ", ".join(f"`{name}`" for name in option.names)
        text = str(option.settings["help"]).replace("|", "\\|")
        yield f"| {names} | {text} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
