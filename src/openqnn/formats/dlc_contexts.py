"""Context binaries in a DLC, beside the graphs that they were compiled from: a record for each chip.

The records are ours: QNN's libraries pass over records that they do not know, and read the graphs as ever.
The SDK keeps compiled graphs in a DLC in a form of its own, which is not public.
"""

from __future__ import annotations

import os
import re
import zipfile

from openqnn.errors import ModelError, UsageError

_RECORD = re.compile(r"openqnn\.context\.(?P<chip>[\w.-]+)\.bin")
_DAMAGED = (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError)


def add_context(path: str | os.PathLike[str], chip: str, binary: bytes) -> None:
    """Put a binary into a DLC, which has none for the chip yet."""
    name = f"openqnn.context.{chip}.bin"
    try:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
            if name in archive.namelist():
                raise UsageError(f"the DLC holds a context for {chip} already")
            archive.writestr(zipfile.ZipInfo(name), binary)  # a fixed date: the same files for the same input
    except _DAMAGED as error:
        raise ModelError(f"{path} is not a DLC file: {error}") from error


def dlc_contexts(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The binaries by chip; ModelError where one does not have its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {name: _RECORD.fullmatch(name) for name in archive.namelist()}
            return {match["chip"]: archive.read(name) for name, match in found.items() if match}
    except _DAMAGED as error:
        raise ModelError(f"{path} is not a DLC file, or a damaged one: {error}") from error


def the_context(path: str | os.PathLike[str]) -> bytes:
    """The only binary of a DLC."""
    found = dlc_contexts(path)
    if not found:
        hint = "qairt-dlc-prepare or `openqnn wrap` puts one in; --dlc_path compiles the graphs"
        raise ModelError(f"{path} holds no context binary", hint=hint)
    if len(found) > 1:
        hint = "`openqnn extract` writes each into a file"
        raise ModelError(f"{path} holds contexts for {', '.join(found)}: which is meant?", hint=hint)
    return next(iter(found.values()))
