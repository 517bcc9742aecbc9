"""Calls the command line: in this process for speed, in another one where signals or limits matter."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import openqnn as package
from openqnn.cli.main import main
from openqnn.cli.registry import run_tool


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def openqnn(*argv: object) -> Result:
    """`openqnn ARGV` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(a) for a in argv])
        except SystemExit as e:  # argparse ends the program by itself
            code = int(e.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def tool(name: str, *argv: object) -> Result:
    """A tool with one of QNN's names, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_tool(name, [str(a) for a in argv])
        except SystemExit as e:
            code = int(e.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def environment() -> dict[str, str]:
    """For child processes: they find this very package, whether it is installed or not."""
    home = str(Path(package.__path__[0]).parent)
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def openqnn_process(*argv: object, before: str = "") -> subprocess.Popen[str]:
    """The same in a child process; `before` is Python that runs in it first."""
    script = f"{before}\nimport sys\nfrom openqnn.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def assert_refused(result: Result, *words: str, code: int = 1) -> None:
    """One message with the words on stderr, the exit code, no traceback, and nothing on stdout."""
    assert "Traceback" not in result.err, result.err
    assert result.code == code, result
    assert result.err.count("error: ") == 1, result.err
    for word in words:
        assert word in result.err, result.err
    assert not result.out
