"""From argv to dataclasses, and the help that derives from the same declarations."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import pytest

from openqnn import __version__ as version
from openqnn.cli.main import parser
from openqnn.cli.registry import command_names
from openqnn.options.field import read_options
from openqnn.options.output import CheckOutput, ConvertOutput, InspectOutput, RunIo
from openqnn.options.source import SourceOptions
from tests.cli.tool import assert_refused, openqnn

GOLDEN = Path(__file__).with_name("help")


def parsed(*argv: str) -> argparse.Namespace:
    return parser().parse_args(argv)


def test_defaults() -> None:
    arguments = parsed("convert", "m.onnx")
    assert read_options(arguments, SourceOptions) == SourceOptions("m.onnx")
    assert read_options(arguments, ConvertOutput) == ConvertOutput()
    assert read_options(parsed("check", "m"), CheckOutput) == CheckOutput()
    assert read_options(parsed("inspect", "m"), InspectOutput) == InspectOutput()
    assert read_options(parsed("run", "m"), RunIo) == RunIo()


def test_the_source_model() -> None:
    argv = ["--input_shape", "x=1,3,224,224", "--input_shape", "a=b=2", "--input_shape", "s=", "--dim", "n=4"]
    arguments = parsed("convert", *argv, "--batch", "8", "m.onnx")
    assert read_options(arguments, SourceOptions) == SourceOptions(
        "m.onnx", (("x", (1, 3, 224, 224)), ("a=b", (2,)), ("s", ())), (("n", 4),), 8
    )


def test_results_of_convert() -> None:
    arguments = parsed("convert", "m", "-o", "out.oqnn", "--overwrite", "--explain", "--quiet")
    assert read_options(arguments, ConvertOutput) == ConvertOutput("out.oqnn", "", True, True, True)


def test_inputs_and_results_of_run() -> None:
    argv = ["--input", "x=a.npy", "--input", "a=b=c.raw", "--random", "--output_dir", "d", "--output", "y"]
    arguments = parsed("run", "m", *argv, "--output", "z", "--backend", "htp", "--threads", "3")
    assert read_options(arguments, RunIo) == RunIo(
        (("x", "a.npy"), ("a=b", "c.raw")), True, "d", ("y", "z"), "htp", 3
    )


def test_no_command_at_all_gets_the_help() -> None:
    result = openqnn()
    assert result.code == 2
    assert "openqnn demo" in result.out and "Convert a model and look at it:" in result.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["convert"], "the following arguments are required: MODEL"),
        (["convert", "m", "--over"], "unrecognized arguments: --over"),
        (["convert", "m", "--input_shape", "x"], "'x': expected NAME=1,3,224,224"),
        (["convert", "m", "--input_shape", "=1"], "'=1': expected NAME=1,3,224,224"),
        (["convert", "m", "--input_shape", "x=1,a"], "'x=1,a': expected NAME=1,3,224,224"),
        (["convert", "m", "--input_shape", "x=-1,2"], "'x=-1,2': expected NAME=1,3,224,224"),
        (["convert", "m", "--dim", "n"], "'n': expected SYMBOL=8"),
        (["convert", "m", "--dim", "n=-4"], "'n=-4': expected SYMBOL=8"),
        (["convert", "m", "--batch", "0"], "'0': expected a number of at least 1"),
        (["run", "m", "--input", "x"], "'x': expected NAME=FILE"),
        (["run", "m", "--threads", "many"], "invalid int value: 'many'"),
    ],
)
def test_wrong_usage(argv: list[str], words: str) -> None:
    assert_refused(openqnn(*argv), words, code=2)


def words_of(text: str) -> str:
    """Without what Python 3.13 does otherwise: columns, and "-o, --out FILE" for "-o FILE, --out FILE"."""
    return re.sub(r"(?<!\S)(-\S+) [^\s,]+, (?=-)", r"\1, ", " ".join(text.split()))


@pytest.mark.parametrize("command", ["", *command_names()])
def test_help_is_as_recorded(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help/` is the record; delete a file and run the test to write it anew, then read the change."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    result = openqnn(*filter(None, [command]), "--help")
    assert result.code == 0 and not result.err
    golden = GOLDEN / f"{command or 'openqnn'}.txt"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(result.out, encoding="utf-8")
        pytest.fail(f"{golden.name} was written: read it and run again")
    recorded = golden.read_text(encoding="utf-8")
    if sys.version_info >= (3, 13):
        assert words_of(result.out) == words_of(recorded)
    else:
        assert result.out == recorded


def test_version() -> None:
    result = openqnn("--version")
    first, *builds = result.out.splitlines()
    assert (result.code, first) == (0, f"openqnn {version}")
    assert all(line.startswith("libQnn") for line in builds)
