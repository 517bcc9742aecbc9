"""How commands start: as modules, and with Ctrl-C while they are still being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import openqnn
from openqnn.cli.elsewhere import ELSEWHERE
from tests.cli.tool import environment

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]

# What pip writes as a command, in a terminal. Where `waits` is looked for, it says so and stays there.
COMMAND = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Waits:
    def find_spec(self, name, path, target=None):
        if name == {waits!r}:
            print("ready", flush=True)
            time.sleep(600)
sys.meta_path.insert(0, Waits())
sys.argv[0] = {script!r}
from {module} import {function}
sys.exit({function}())
"""


def interrupted(script: str, waits: str, *words: str) -> tuple[int, str]:
    """The exit code and what is said, of a command that is interrupted when it imports a module."""
    module, _, function = SCRIPTS[script].partition(":")
    program = COMMAND.format(script=script, waits=waits, module=module, function=function)
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    return child.returncode, said


@pytest.mark.parametrize("script", sorted(SCRIPTS.keys() - ELSEWHERE.keys()))
def test_while_it_is_imported_it_ends_without_a_word(script: str) -> None:
    assert interrupted(script, "argparse") == (-signal.SIGINT, "")


@pytest.mark.parametrize("script", sorted(ELSEWHERE))
def test_a_name_of_the_original_answers_with_what_to_use(script: str) -> None:
    program = f"import sys; sys.argv[0] = {script!r}; from openqnn.cli.start import tool; sys.exit(tool())"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert script in SCRIPTS
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {script} is not part of openqnn [OQ140]\n  hint: ")


def test_once_it_runs_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    code, said = interrupted("openqnn", "openqnn.frontends.onnx", "check", str(tmp_path / "model.onnx"))
    assert (code, said) == (130, "error: interrupted [OQ151]\n")


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "openqnn", "--version"],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, *builds = done.stdout.splitlines()
    assert (done.returncode, first) == (0, f"openqnn {openqnn.__version__}")
    assert all(line.startswith("libQnn") for line in builds)
