"""Which files are read: regular ones, and of those that a model names, the ones that lie beside it.

A link may lead to one, as in caches that keep all files by their hash in one folder; but only to where the
model itself is, or where the model's own link leads. ONNX and ONNX Runtime have the same rule.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from openqnn.errors import ModelError


def file_beside(model: Path, name: str) -> Path:
    """The file that a model means by a name; ValueError where it is not to be read, or FileNotFoundError."""
    if not name or "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError("the name leads out of the model's folder")
    try:
        file = (model.parent / name).resolve()
        found = file.is_file()
    except (OSError, RuntimeError):  # a name that the file system cannot have, or a link to itself
        found, file = False, model
    if not found:
        raise FileNotFoundError(name)
    folders = model.parent.resolve(), model.resolve().parent
    if not any(file.is_relative_to(folder) for folder in folders):
        raise ValueError("a link leads out of the model's folder")
    return file


def check_regular(path: str | os.PathLike[str]) -> None:
    """ModelError for what is there and no regular file: a pipe would be waited on for ever."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # whoever opens it tells why it cannot be
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ModelError(f"{path} is no regular file, but a pipe or a device", hint="copy it to a file first")
