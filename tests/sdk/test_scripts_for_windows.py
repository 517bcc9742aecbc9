"""What `openqnn sdk-tree` has for PowerShell and cmd: parsed, since no package brings PowerShell itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openqnn.sdk.sdk_tree import WINDOWS, write_sdk_tree
from openqnn.sdk.setup_scripts import SCRIPTS

POWERSHELL = sorted(name for name in SCRIPTS if name.endswith(".ps1"))
BROKEN = "foreach ($x in 1, 2 { Write-Host $x }\n"


def faults(text: str) -> Iterator[str]:
    """What the grammar of PowerShell cannot place, with its line."""
    tree_sitter = pytest.importorskip("tree_sitter")
    grammar = pytest.importorskip("tree_sitter_powershell")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    pending = [parser.parse(text.encode()).root_node]
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            yield f"line {node.start_point[0] + 1}: {node.text!r}"
        pending += node.children


def test_the_grammar_finds_what_is_wrong() -> None:
    assert list(faults(BROKEN))


@pytest.mark.parametrize("name", POWERSHELL)
def test_every_powershell_script_parses(name: str) -> None:
    assert not list(faults(SCRIPTS[name]))
    # "$name:" would be a drive to PowerShell, wherever the name is not that of one
    assert not re.findall(r"\$(?!env:)\w+:", SCRIPTS[name])


def test_powershell_sets_what_the_shell_sets() -> None:
    shell = set(re.findall(r"^export (\w+)", SCRIPTS["envsetup.sh"], re.M))
    powershell = set(re.findall(r"^\s*\$env:(\w+) = ", SCRIPTS["envsetup.ps1"], re.M))
    assert shell == powershell
    assert len(shell) == 6


def test_the_path_of_python_is_quoted_for_powershell(tmp_path: Path) -> None:
    """A quote in it is doubled, and a backslash stays one."""
    script = (
        'import sys; sys.executable = r"C:\\Users\\O\'Neil\\python.exe"\n'
        "from openqnn.sdk.setup_scripts import SCRIPTS; print(SCRIPTS['envcheck.ps1'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "& 'C:\\Users\\O''Neil\\python.exe' -P -m openqnn doctor" in done.stdout


def test_the_tree_on_windows(tmp_path: Path) -> None:
    """Its programs are what cmd and PowerShell start, under the SDK's name for that system."""
    tree = write_sdk_tree(tmp_path / "sdk", ["qnn-net-run"], host=WINDOWS)
    (program,) = (tree.root / "bin" / WINDOWS).iterdir()
    assert program.name == "qnn-net-run.cmd"
    line = program.read_bytes().decode()
    assert line.startswith("@") and line.endswith(" %*\r\n")
    words = shlex.split(line.removeprefix("@").removesuffix(" %*\r\n"))
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "qnn-net-run" in done.stdout
    headers = (tree.root / "share" / "QNN" / "converter" / "jni").iterdir()
    assert not [header for header in headers if header.is_symlink()]
