"""Which files may be run in order to be read: a model library and a Saver bundle are programs.

The graph of a library (.so) is had by loading it, that of a bundle (saver_output.c) by compiling and running
it, with all rights of the user. Whoever only looks at a file does not expect that, and has to say so.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from openqnn.errors import UsageError

CODE = (".so", ".c")
_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=False)


@contextmanager
def trusting(allowed: bool = True) -> Generator[None]:
    """Inside, files that are programs are run where their graphs are asked for, if that is allowed."""
    token = _TRUSTED.set(allowed or _TRUSTED.get())
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def check_trusted(path: str | os.PathLike[str]) -> None:
    """UsageError for a program that nobody allowed to run."""
    if Path(path).suffix in CODE and not _TRUSTED.get():
        raise UsageError(
            f"{path} is code: to read its graph is to run it, with all your rights",
            hint="if you trust where it comes from: --run_code, or trust=True in Python;"
            " a .dlc or an .oqnn of the same model is read without",
        )
