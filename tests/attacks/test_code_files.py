"""Looking at a file runs no code in it, unless the user says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import openqnn
from openqnn.errors import OpenQnnError, UsageError
from tests.cli.tool import assert_refused
from tests.cli.tool import openqnn as command
from tests.libraries import need

TRAP = '#include <stdio.h>\n__attribute__((constructor)) void f(void) { fclose(fopen("%s", "w")); }\n'

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A library that leaves a file when it is loaded, and that file."""
    source, library, sign = tmp_path / "saver_output.c", tmp_path / "x.so", tmp_path / "RAN"
    source.write_text(TRAP % sign)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    return library, sign


@pytest.mark.parametrize("name", ["x.so", "saver_output.c"])
@pytest.mark.parametrize("verb", ["inspect", "encodings", "run", "compile", "view", "quantize", "reduce"])
def test_commands_that_look_at_a_file(verb: str, name: str, trap: tuple[Path, Path]) -> None:
    file, sign = trap[0].with_name(name), trap[1]
    extra = {
        "run": ["--random"], "quantize": ["--float_fallback"], "view": ["--html", file.with_name("v.html")],
        "reduce": ["--backend", "cpu"],
    }  # fmt: skip
    result = command(verb, file, *extra.get(verb, []))
    assert result.code != 0, result.out
    assert not sign.exists()


def test_the_refusal_says_what_to_do(trap: tuple[Path, Path]) -> None:
    assert_refused(command("inspect", trap[0]), "is code", "--run_code", code=2)
    assert_refused(command("diff", trap[0], trap[0]), "is code", code=2)
    assert not trap[1].exists()


def test_python_takes_a_word(trap: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="trust=True"):
        openqnn.load(trap[0])
    assert not trap[1].exists()
    need("ir")
    with pytest.raises(OpenQnnError):  # it is no model library, but it was loaded
        openqnn.load(trap[0], trust=True)
    assert trap[1].exists()


def test_the_flag_runs_it(trap: tuple[Path, Path]) -> None:
    need("ir")
    command("inspect", trap[0], "--run_code")
    assert trap[1].exists()
