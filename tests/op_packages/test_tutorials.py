"""The tutorials of docs/custom_ops.md, executed as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.op_packages.sample import needs_compiler

PAGE = Path(__file__).parents[2] / "docs" / "custom_ops.md"
TITLES = ["A shallow model with an op package", "A CNN with custom operations"]


def blocks(title: str) -> list[tuple[str, str]]:
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)


@needs_compiler
@pytest.mark.parametrize("title", TITLES)
def test_tutorial(tmp_path: Path, title: str) -> None:
    found = blocks(title)
    assert len(found) >= 5
    paths = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for kind, text in found:
        named = re.match(r"# file: (\S+)\n", text)
        if named or kind == "xml":
            (tmp_path / (named[1] if named else "cnn_package.xml")).write_text(text)
            continue
        words = [sys.executable, "-c", text] if kind == "python" else ["bash", "-ec", text]
        done = subprocess.run(
            words, cwd=tmp_path, env={**os.environ, **paths}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
