"""Tools that open a vendor's library: it is opened while the rest of the tool is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from openqnn.compiler import is_htp, resolved
from openqnn.errors import LibraryError
from openqnn.passes import htp  # noqa: F401  so that the child process has what a task needs
from openqnn.runtime.standby import get_ready

BACKEND = "--backend"


def qnn_net_run() -> int:
    return _run("qnn-net-run")


def qnn_context_binary_generator() -> int:
    return _run("qnn-context-binary-generator")


def _run(name: str) -> int:
    library = _library(sys.argv[1:])
    if is_htp(library):
        get_ready(library)
    from openqnn.cli.legacy import run_tool

    return run_tool(name)


def _library(arguments: Sequence[str]) -> str:
    """What the options will say, as far as it can be told without reading them; "" where it cannot."""
    named = [b for a, b in pairwise(arguments) if a == BACKEND]
    named += [a.partition("=")[2] for a in arguments if a.startswith(f"{BACKEND}=")]
    if len(named) == 1:
        with suppress(LibraryError):
            return resolved(named[0])
    return ""
