"""What a file seems to be by its first bytes, for those who gave it as something else."""

from __future__ import annotations

import os
import re
from pathlib import Path

_CONTEXT = "a QNN context binary: `openqnn inspect` tells what is in it; qnn-net-run has --retrieve_context"
_SIGNATURES = [
    (b"OQNN", 0, "an OpenQNN graph, converted already: `openqnn run` and `inspect` take it as it is"),
    (b"\x89HDF", 0, "an HDF5 (Keras) file"),
    (b"PK\x03\x04", 0, "a ZIP archive (a PyTorch or DLC file?)"),
    (b"\0\0\0\x02\0\0\0", 0, _CONTEXT),
    (b"TFL3", 4, "a TFLite model"),
    (b"ORTM", 4, "an ONNX Runtime .ort file"),
    (b"\x1f\x8b", 0, "a gzip archive"),
    (b"\x7fELF", 0, "a library: qnn-net-run --model runs it if it is a model's"),
    (b"ustar", 257, "weights that belong to a model.cpp: qnn-model-lib-generator makes a library of both"),
    (b"/*", 0, "C++ source: qnn-model-lib-generator makes a library of it"),
    (b"//", 0, "C++ source: qnn-model-lib-generator makes a library of it"),
    (b"\x89PNG", 0, "an image (PNG): a model's inputs are given as arrays, .npy or .raw"),
    (b"\xff\xd8\xff", 0, "an image (JPEG): a model's inputs are given as arrays, .npy or .raw"),
    (b"%PDF", 0, "a PDF document"),
    (b"\x93NUMPY", 0, "a NumPy array: data, not a model"),
    (b"\x80\x02", 0, "a Python pickle (an older PyTorch file?): export the model to ONNX"),
    (b"<!DOCTYPE", 0, "a web page, not the model itself: look at the address of the download"),
    (b"<html", 0, "a web page, not the model itself: look at the address of the download"),
    (b"version https://git-lfs", 0, "a Git LFS pointer, not the model itself: run 'git lfs pull'"),
]
_LONGEST = 512
_MODEL_SOURCE, _HEAD = b"QnnModel", 1 << 20  # a word of every model.cpp, behind a licence perhaps


def look_of(first: bytes) -> str:
    """A hint by the first bytes of a file; "" where they say nothing."""
    for signature, at, what in _SIGNATURES:
        if first[at : at + len(signature)] == signature:
            return f"it looks like {what}"
    return ""


def other_than_context(path: str | os.PathLike[str]) -> str:
    """The hint for a file that was given as a context binary; "" where it seems to be one."""
    try:
        with Path(path).open("rb") as file:
            found = look_of(file.read(_LONGEST))
    except OSError:
        return ""
    return "" if found.endswith(_CONTEXT) else found


def is_converted(path: Path) -> bool:
    """Whether a file is what QNN's converters write: a DLC, or the source of a model."""
    import zipfile  # takes long

    if zipfile.is_zipfile(path):
        return True
    with path.open("rb") as file:
        return _MODEL_SOURCE in file.read(_HEAD)


CONTEXT, EPCONTEXT = "a context binary", "a compiled model (EPContext)"
_BINARY, JSON = "binary data", "JSON"
_KINDS = [
    (b"OQNN", 0, "an OpenQNN graph"),
    (b"PK\x03\x04", 0, "a ZIP archive, such as a DLC"),
    (b"\x7fELF", 0, "a library or a program"),
    (b"\x93NUMPY", 0, "a NumPy array"),
    (b"\0\0\0\x02\0\0\0", 0, CONTEXT),
    (b"ustar", 257, "an archive, such as the weights of a model.cpp"),
]
# The version of the format, then a field with a length.
_ONNX = re.compile(rb"\x08[\x01-\x1f][\x12\x1a\x22\x2a\x32\x3a\x42]")
_COMPILED = b"EPContext"
_SIGHT = 1 << 16


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a file is, in words, so far as it matters for what may take its place; "" for an empty file."""
    with Path(path).open("rb") as file:
        first = file.read(_SIGHT)
    if not first:
        return ""
    for signature, at, kind in _KINDS:
        if first[at : at + len(signature)] == signature:
            return kind
    if _ONNX.match(first):
        return EPCONTEXT if _COMPILED in first else "an ONNX model"
    return _text_kind(first)


def _text_kind(first: bytes) -> str:
    try:
        text = first.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(first) - 4:  # a letter that the limit cuts through is no reason
            return _BINARY
        text = first[: error.start].decode("utf-8")
    if "\0" in text:
        return _BINARY
    start = text.lstrip()[:1]
    return {"{": JSON, "[": JSON, "<": "a page of HTML or XML"}.get(start, "text")
