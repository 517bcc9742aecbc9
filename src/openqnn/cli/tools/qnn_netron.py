"""qnn-netron: the models of a folder in the browser, and two runs of one compared."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.cli.shared.serve_pages import serve_pages
from openqnn.errors import InputError
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.trust import TrustOptions
from openqnn.options.view import NetronOptions

_PROGRAM = (
    "import sys; from openqnn.cli.registry import run_tool; sys.exit(run_tool(sys.argv[1], sys.argv[2:]))"
)


def tool_command(name: str) -> list[str]:
    """The command that runs one of the tools as a program of its own, whose lines come at once."""
    from openqnn.worker.interpreter import interpreter_command

    return interpreter_command("-u", "-c", _PROGRAM, name)


def run_netron(arguments: Namespace, _: str) -> int:
    from openqnn.viewer.diff_runs.netron_pages import NetronPages

    options = read_options(arguments, NetronOptions)
    folder = Path(options.work_dir or ".")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", hint="-w names the folder in which models are")
    trusted = read_options(arguments, TrustOptions).run_code
    pages = NetronPages(folder.resolve(), tool_command, trusted)
    try:
        return serve_pages(pages, options.port, not options.no_browser, pages.take, pages.ends_with)
    finally:
        pages.close()


TOOL = Tool(
    "qnn-netron",
    "Look at the models of a folder in the browser, and compare two runs of one node by node.",
    "[-w DIR]",
    (NetronOptions, OwnOps, TrustOptions),
    run_netron,
    examples=("qnn-netron -w models/",),
)
