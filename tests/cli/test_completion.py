"""Scripts for shells complete commands, tools, flags and choices, and files elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from openqnn.cli.registry import command_names, tool_names
from openqnn.cli.shared.completions import SHELLS
from tests.cli.tool import openqnn


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        made = openqnn("completion", shell)
        assert made.code == 0, made.err
        (folder / shell).write_text(made.out)
    return folder


def answers(script: Path, line: str) -> list[str]:
    """What bash offers behind a line, by the function that was registered for its first word."""
    words = line.split(" ")
    given = " ".join(f"'{word}'" for word in words)
    ask = f"""source {script}
[[ $(complete -p {words[0]}) == *-F\\ _openqnn\\ * ]] || exit 3
COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}
_openqnn; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-uc", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("openqnn co", {"convert", "compile", "context", "compare", "completion"}),
        ("openqnn --v", {"--version"}),
        ("openqnn models f", {"fetch"}),
        ("openqnn convert --input_sh", {"--input_shape"}),
        ("qnn-net-run --perf_p", {"--perf_profile"}),
        ("qnn-net-run --profiling_level d", {"detailed"}),
        ("qnn-onnx-converter --input_n", {"--input_network"}),
        ("openqnn completion z", {"zsh"}),
        ("openqnn convert model.on", set()),
    ],
)
def test_bash(line: str, wanted: set[str], scripts: Path) -> None:
    assert set(answers(scripts / "bash", line)) == wanted


def test_every_command_and_tool_is_known(scripts: Path) -> None:
    assert set(answers(scripts / "bash", "openqnn ")) == {*command_names(), "--help", "--version"}
    for name in tool_names():
        assert "--help" in answers(scripts / "bash", f"{name} --")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell: str, scripts: Path) -> None:
    text = (scripts / shell).read_text()
    assert "qnn-net-run" in text and "convert" in text
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", scripts / shell], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
