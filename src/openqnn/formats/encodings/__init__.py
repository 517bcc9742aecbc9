"""AIMET's encodings files, versions 0.4, 0.6.1, 1.0.0, 2.0.0 and 2.1.0, in one neutral form and back."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from typing import Any

from openqnn.errors import InputError, OpenQnnWarning, UsageError
from openqnn.formats.atomic import replacing
from openqnn.formats.encodings import v0, v1, v2
from openqnn.formats.encodings.fields import Json, Place, load_json
from openqnn.formats.encodings.record import (
    OUTPUT_CHANNEL,
    Axis,
    Blocks,
    EncodingsFile,
    Kind,
    TensorEncoding,
    by_name,
)
from openqnn.formats.encodings.settle import Parameter, settled

__all__ = [
    "OUTPUT_CHANNEL", "VERSIONS", "Axis", "Blocks", "EncodingsFile", "Kind", "Parameter", "TensorEncoding",
    "left_out", "looks_like_encodings", "may_replace", "read_encodings", "settled", "write_encodings",
]  # fmt: skip

VERSIONS = ("0.4", "0.6.1", "1.0.0", "2.0.0", "2.1.0")
_LEGACY = ("0.4", "0.4.0", "0.5.0", "0.6.0", "0.6.1")
_WITHOUT_FLOATS = "0.4"
_PRODUCER = "openqnn"
_WIDTHS = {"activation_bitwidth": "--act_bw", "param_bitwidth": "--weight_bw", "bias_bitwidth": "--bias_bw"}
_SECTIONS = {"activation_encodings", "param_encodings", "encodings"}


def read_encodings(path: str | os.PathLike[str]) -> EncodingsFile:
    """The tensors of a file; InputError with file, tensor and field where it makes no sense."""
    given: Any = path
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"a {type(given).__name__} is no path of an encodings file", hint="overrides.json")
    content, place = load_json(path), Place(path)
    idle = [key for key in content if key in _WIDTHS]
    if idle:
        said = f"{path}: {', '.join(idle)}: no effect in an encodings file"
        warnings.warn(
            f"{said}; {', '.join(_WIDTHS[key] for key in idle)} say it", OpenQnnWarning, stacklevel=2
        )
    version = content.get("version", _WITHOUT_FLOATS)
    if version in _LEGACY:
        found = v0.read(place, content)
    elif version == "1.0.0":
        found = v1.read(place, content)
    elif version in ("2.0.0", "2.1.0"):
        found = v2.read(place, content, nested=version == "2.1.0")
    else:
        place.fail(f"{json.dumps(version)} is not known", "version", hint=f"known: {', '.join(VERSIONS)}")
    tensors = by_name(found)
    if len(tensors) < len(found):
        names = [entry.name for entry in found]
        place.at(next(n for n in names if names.count(n) > 1)).fail("has two entries")
    return EncodingsFile(version, tensors)


def looks_like_encodings(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts as JSON objects do: models and graphs do not."""
    try:
        with open(path, "rb") as file:
            return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    except OSError:
        return False


def may_replace(path: str | os.PathLike[str]) -> bool:
    """Whether nothing is there, or an encodings file: JSON of another kind is somebody's own."""
    if not os.path.lexists(path):
        return True
    try:
        return not _SECTIONS.isdisjoint(load_json(path))
    except InputError:
        return False


def left_out(tensors: Iterable[TensorEncoding], version: str) -> list[str]:
    """Tensors that a version says something of by leaving them out: floats, from 2.0.0 on."""
    return [entry.name for entry in tensors if entry.is_float] if version >= "2" else []


def write_encodings(
    path: str | os.PathLike[str], tensors: Iterable[TensorEncoding], version: str = "1.0.0"
) -> None:
    """A file of that version; InputError names the tensor and the reason where the version cannot say it."""
    place, entries = Place(path), list(tensors)
    if version not in VERSIONS:
        place.fail(f"{json.dumps(version)} is not known", "version", hint=f"known: {', '.join(VERSIONS)}")
    written = version if version != _WITHOUT_FLOATS else f"{_WITHOUT_FLOATS}.0"
    content: dict[str, Json] = {"version": written, "producer": {"package": _PRODUCER}}
    if version >= "2":
        named = [e for e in entries if not e.is_float]
        nested = version == "2.1.0"
        content["encodings"] = [v2.write(e, place.at(e.name), nested=nested) for e in named]
    else:
        content |= _sections(place, entries, version)
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _sections(place: Place, entries: list[TensorEncoding], version: str) -> dict[str, Json]:
    """Versions below 2 have activations and parameters apart."""
    unknown = next((e for e in entries if e.kind is Kind.UNKNOWN), None)
    if unknown is not None:
        place.at(unknown.name).fail(
            f"version {version} has activations and parameters apart, and nothing says which one this is",
            hint="give the model, which tells: --source on the command line",
        )
    made: dict[str, Json] = {}
    for kind, section in v0.SECTIONS.items():
        mine = [e for e in entries if e.kind is kind]
        if version == "1.0.0":
            made[section] = [v1.write(e, place.at(e.name)) for e in mine]
        else:
            floats = version != _WITHOUT_FLOATS
            made[section] = {e.name: v0.write(e, place.at(e.name), with_floats=floats) for e in mine}
    return made
