"""Which form a TensorFlow model is in, told without TensorFlow."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any, cast

from openqnn.frontends.frontend import Source, head_of

HDF5 = b"\x89HDF\r\n\x1a\n"
SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_KERAS_ENTRIES = {"config.json", "metadata.json"}
_NODE = b"\x0a"  # a GraphDef begins with a node
SUFFIXES = {".keras": "keras", ".h5": "keras", ".hdf5": "keras", ".pb": "frozen", ".meta": "checkpoint"}


def kind_of(source: Source) -> str:
    """saved_model, keras, frozen, checkpoint or object; "" for what is none of these."""
    if not isinstance(source, str | os.PathLike):
        return "object" if is_keras_model(source) else ""
    path = Path(cast("str | os.PathLike[str]", source))
    if path.is_dir():
        return "saved_model" if any((path / name).is_file() for name in SAVED_MODEL_FILES) else ""
    if path.name in SAVED_MODEL_FILES:
        return "saved_model"
    head = head_of(path, 8)
    if head == HDF5 or (head.startswith(b"PK") and _is_keras_zip(path)):
        return "keras"
    if path.suffix.lower() in (".pb", ".meta") and head.startswith(_NODE):
        return SUFFIXES[path.suffix.lower()]
    return _by_first_node(head_of(path, 1024))


def _by_first_node(head: bytes) -> str:
    """Whether a file of another suffix is a GraphDef: a node, which begins with its name and its op."""
    found = re.match(rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x0a", head)
    if found is None or len(head) < found.end() + 2:
        return ""
    at = found.end() + 1 + head[found.end()]  # names that are told by one byte: up to 127
    op = re.match(rb"\x12.[A-Z_]\w+[\x1a\x22\x2a]", head[at:], re.DOTALL)
    return "frozen" if op else ""


def _is_keras_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist()) >= _KERAS_ENTRIES
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return False


def is_keras_model(value: Any) -> bool:
    """Whether an object is a Keras model, of any of the packages that have them."""
    bases = {(base.__module__.split(".")[0], base.__name__) for base in type(value).__mro__}
    return any((package, "Model") in bases for package in ("keras", "tf_keras", "tensorflow"))
