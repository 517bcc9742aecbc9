"""docs/reference is what the declarations say, and nothing is missing there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from openqnn.cli.command import tool_parser
from openqnn.cli.main import parser
from openqnn.cli.registry import command_names, tool_named, tool_names
from tests.docs.configuration_page import introduction_mark, sections, words
from tests.docs.reference_pages import FOLDER, pages


def test_pages_are_up_to_date() -> None:
    made = pages()
    assert {path.name for path in FOLDER.glob("*.md")} == set(made)
    stale = [name for name, text in made.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert not stale, "python -m tests.docs.reference_pages"


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every parser that a user meets, with the name of its page."""
    for name in command_names():
        (chosen,) = (a for a in parser([name])._actions if isinstance(a, argparse._SubParsersAction))
        yield f"openqnn-{name}", chosen.choices[name]
    for name in tool_names():
        tool = tool_named(name)
        yield name, tool_parser(tool)
        for mode in tool.modes:
            yield name, tool_parser(tool.in_mode([mode, "--help"]))


PARSERS = list(parsers())


@pytest.mark.parametrize(("page", "made"), PARSERS, ids=[page for page, _ in PARSERS])
def test_every_flag_of_help_is_on_the_page(page: str, made: argparse.ArgumentParser) -> None:
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    flags = {flag for action in made._actions for flag in action.option_strings} - {"-h", "--help"}
    assert not {flag for flag in flags if f"`{flag}`" not in text}
    assert len(flags) > 1


def test_every_key_of_every_configuration_file_has_words() -> None:
    declared = {
        f"{introduction_mark(title)} {key}" for title, (_, keys) in sections().items() for key in keys
    }
    assert {key for key in words() if " " in key} == declared
    assert len(declared) > 80
