"""The text records of a DLC: who made it, from what, and whose it is; and what only these tools read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping

from openqnn.errors import ModelError

RECORD = "dlc.metadata"
MODEL_VERSION, COMMAND, COPYRIGHT = "model-version", "converter-command", "model-copyright"
CONVERTER_VERSION = "converter-version"
LONGEST_VERSION = 64


def add_metadata(path: str | os.PathLike[str], entries: Mapping[str, str]) -> None:
    """Adds the record to a file. Line breaks become spaces: the record has one line per entry."""
    lines = [f"{key}={' '.join(text.split())}" for key, text in entries.items()]
    add_record(path, RECORD, "".join(f"{line}\n" for line in lines))


def add_record(path: str | os.PathLike[str], name: str, text: str) -> None:
    """Adds a text under a name that the file does not have yet."""
    try:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
            # A fixed date: the same model gives the same file.
            archive.writestr(zipfile.ZipInfo(name), text)
    except (zipfile.BadZipFile, NotImplementedError) as e:
        raise ModelError(f"{path} is not a DLC file: {e}") from e


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The entries; none when the file has no such record."""
    text = read_record(path, RECORD)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def read_record(path: str | os.PathLike[str], name: str) -> str:
    """The text under a name; empty when there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name).decode("utf-8", "replace") if name in archive.namelist() else ""
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as e:
        raise ModelError(f"{path} is not a DLC file, or a damaged one: {e}") from e


def record_names(path: str | os.PathLike[str]) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as e:
        raise ModelError(f"{path} is not a DLC file: {e}") from e
