"""qnn-netron: the models of a folder in the browser."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.cli.shared.serve_pages import serve_pages
from openqnn.errors import InputError
from openqnn.options.field import read_options
from openqnn.options.view import NetronOptions


def run_netron(arguments: Namespace, _: str) -> int:
    from openqnn.viewer.folder_pages import FolderPages

    options = read_options(arguments, NetronOptions)
    folder = Path(options.work_dir or ".")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", hint="-w names the folder in which models are")
    return serve_pages(FolderPages(folder.resolve()), options.port, not options.no_browser)


TOOL = Tool(
    "qnn-netron",
    "Look at the models of a folder in the browser, alone or side by side with what differs.",
    "[-w DIR]",
    (NetronOptions,),
    run_netron,
)
