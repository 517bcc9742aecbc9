"""What somebody sees who has a terminal of 80 columns and types a command for the first time."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from collections import Counter

import pytest
from rich.console import Console

from openqnn.cli.command import tool_parser
from openqnn.cli.main import parser
from openqnn.cli.registry import (
    COMMAND_GROUPS,
    command_doc,
    command_named,
    command_names,
    tool_named,
    tool_names,
)
from openqnn.cli.report import table
from tests.cli.tool import openqnn

WIDTH = 80
LONG = "/model/encoder/layers.11/attention/Softmax_output_0"


def test_every_command_is_in_one_group() -> None:
    listed = Counter(name for names in COMMAND_GROUPS.values() for name in names)
    assert listed == Counter(command_names())


@pytest.mark.parametrize("name", command_names())
def test_what_help_says_of_a_command_is_what_the_command_says(name: str) -> None:
    assert command_doc(name) == command_named(name).doc


def test_help_imports_no_command() -> None:
    """Where it does, `openqnn --help` takes twice as long."""
    code = "import sys; from openqnn.cli.start import openqnn; sys.argv[1:] = ['--help']\ntry: openqnn()\n"
    code += "except SystemExit: print(*sys.modules, file=sys.stderr)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert "openqnn.cli.registry" in names and "openqnn.cli.commands." not in names and "numpy" not in names


@pytest.mark.parametrize("name", command_names())
def test_examples_of_commands(name: str) -> None:
    examples = command_named(name).examples
    assert examples
    for line in examples:
        program, *words = shlex.split(line.partition(" > ")[0])
        assert program == "openqnn" and words[0] == name
        parser([name]).parse_args(words)  # exits where it does not take them
    assert all(line in openqnn(name, "--help").out for line in examples)


@pytest.mark.parametrize("name", tool_names())
def test_examples_of_tools(name: str) -> None:
    examples = tool_named(name).examples
    assert examples
    for line in examples:
        program, *words = shlex.split(line)
        assert program == name
        tool_parser(tool_named(name)).parse_args(words)


def test_the_first_page_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    lines = openqnn("--help").out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(f"  {title}:" in lines for title in COMMAND_GROUPS)


def test_an_unknown_command_is_one_short_message() -> None:
    said = openqnn("convrt").err
    assert "did you mean convert" in said and len(said) < 200


def test_options_between_the_names_of_a_list() -> None:
    listed = openqnn("models", "fetch", "--quiet", "mnist_digit", "mnist_conv")
    assert (listed.code, listed.out) == (0, "")
    assert "unrecognized arguments: --frob" in openqnn("models", "fetch", "--frob", "mnist_conv").err


def drawn(rows: list[tuple[str, ...]], *columns: str) -> str:
    made = table(*columns)
    for row in rows:
        made.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=WIDTH).print(made)
    return out.getvalue()


def test_tables_break_lines_and_no_words() -> None:
    what = "a sentence that is far too long for what is left of a line beside the name"
    said = drawn([(LONG, "Softmax", what)], "tensor", "op", "what")
    assert set(f"{LONG} Softmax {what}".split()) <= set(said.split())
    assert max(map(len, said.splitlines())) <= WIDTH


def test_tables_that_do_not_fit_show_row_by_row() -> None:
    said = drawn(
        [(LONG, "Softmax", "ufixed16", LONG), ("x", "Relu", "", "y")], "tensor", "op", "type", "from"
    )
    assert said.splitlines() == [
        LONG,
        "  op Softmax  type ufixed16",
        f"  from {LONG}",
        "x",
        "  op Relu  from y",
    ]
