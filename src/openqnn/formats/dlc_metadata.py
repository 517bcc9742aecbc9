"""The text record of a DLC: who made it, from what, and whose it is."""

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
    try:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
            # A fixed date: the same model gives the same file.
            archive.writestr(zipfile.ZipInfo(RECORD), "".join(f"{line}\n" for line in lines))
    except zipfile.BadZipFile as e:
        raise ModelError(f"{path} is not a DLC file: {e}") from e


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The entries; none when the file has no such record."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(RECORD).decode("utf-8", "replace") if RECORD in archive.namelist() else ""
    except (OSError, zipfile.BadZipFile) as e:
        raise ModelError(f"{path} is not a DLC file: {e}") from e
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
