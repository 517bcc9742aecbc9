"""Writes the console session of README.md from real runs: python -m tests.docs.readme_session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
COMMANDS = {
    "openqnn demo": None,
    "openqnn estimate openqnn-demo/face.quantized.oqnn": 6,
}
"""What is run in one folder, and how many lines of output are shown; all where it is None."""
_SESSION = re.compile(r"(?<=<!-- session -->\n\n```console\n).*?(?=^```)", re.M | re.S)
_PRINTED = re.compile(r"(?<=<!-- printed -->\n\n\*Printed on )\d{4}-\d\d-\d\d")


def session() -> str:
    """The commands with what they print, results and progress in the order in which they appear."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for command, most in COMMANDS.items():
            done = subprocess.run(
                command.split(), cwd=folder, env=environment(), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=True,
            )  # fmt: skip
            printed = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
            lines += [f"$ {command}", *printed[:most], *(["..."] if most and len(printed) > most else [])]
    return "\n".join(lines) + "\n"


def environment() -> dict[str, str]:
    """Tools of this environment come first, and lines are as wide as the page."""
    paths = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return os.environ | paths | {"COLUMNS": "110", "NO_COLOR": "1"}


def shown_session() -> str:
    """The session that README.md shows."""
    text = README.read_text(encoding="utf-8")
    found = _SESSION.search(text)
    assert found, "README.md has no session"
    assert _PRINTED.search(text), "README.md does not say when its session was printed"
    return found[0]


def write_session() -> None:
    made = session()
    text = _SESSION.sub(lambda _: made, README.read_text(encoding="utf-8"), count=1)
    README.write_text(_PRINTED.sub(f"{datetime.now(UTC):%Y-%m-%d}", text), encoding="utf-8")


if __name__ == "__main__":
    write_session()
