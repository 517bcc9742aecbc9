"""Tools that open a vendor's library: it is opened, and the model read, while the rest is imported.

The process that does so starts before most of that, and imports what it needs itself.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

from openqnn.errors import LibraryError, OpenQnnWarning
from openqnn.qnn.library import find_library
from openqnn.targets.registry import target_of_library
from openqnn.vendor.standby import get_ready
from openqnn.worker.serve import Reporter

BACKEND, DLC = "--backend", "--dlc_path"


def run_prewarmed(name: str) -> int:
    """A tool of `openqnn.cli.registry` on the options that the process was given."""
    library = _library(sys.argv[1:])
    if target_of_library(library).compiles:
        files = [path for path in _value(DLC, sys.argv[1:]).split(",") if path]
        weights = sum(os.path.getsize(path) for path in files if os.path.isfile(path))
        get_ready(library, partial(_read, files, library), weights)
    from openqnn.cli.registry import run_tool

    return run_tool(name)


def _read(files: Sequence[str], library: str, reporter: Reporter) -> None:
    """In the child, beside the library that is opened."""
    import openqnn.ir  # noqa: F401  also where there is no file to read
    from openqnn.vendor.source import read_ahead

    read_ahead(files, library, reporter)


def _library(arguments: Sequence[str]) -> str:
    """What the options will say, as far as it can be told without reading them; "" where it cannot."""
    with suppress(LibraryError), warnings.catch_warnings(action="ignore", category=OpenQnnWarning):
        return str(find_library(_value(BACKEND, arguments)))
    return ""


def _value(flag: str, arguments: Sequence[str]) -> str:
    """What is given for a flag; "" where it is given more than once, or not at all."""
    named = [b for a, b in pairwise(arguments) if a == flag]
    named += [a.partition("=")[2] for a in arguments if a.startswith(f"{flag}=")]
    return named[0] if len(named) == 1 else ""
