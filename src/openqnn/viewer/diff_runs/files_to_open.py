"""Files to open: what of a folder the start page of `qnn-netron` offers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from openqnn.viewer.readers.debugger import is_debugger_result
from openqnn.viewer.readers.encodings import are_encodings
from openqnn.viewer.readers.profile import is_profile

MODELS: Final = (
    ".onnx", ".oqnn", ".dlc", ".so", ".tflite", ".pt2", ".pb", ".pbtxt", ".prototxt", ".caffemodel",
    ".encodings", "saver_output.c", "_net.json",
)  # fmt: skip
MOST: Final = 500
RESULTS: Final = ("inference_engine", "intermediate_files", "verification", "csv_outputs")
LARGEST: Final = 1 << 24  # bytes of a JSON file that is looked into
CONTEXT: Final = b"\0\0\0\x02"


def files_to_open(folder: Path) -> list[Path]:
    """Models and what tells of them, without the copies that comparisons keep; no link leads out."""
    found: list[Path] = []
    for path in _below(folder):
        if len(found) < MOST and _opens(path):
            found.append(path)
    return sorted(found)


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in RESULTS and not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and path.resolve().is_relative_to(folder):
                yield path


def _opens(path: Path) -> bool:
    try:
        if path.name.endswith(MODELS) or is_profile(path):
            return True
        if path.suffix == ".bin":
            with path.open("rb") as file:
                return file.read(4) == CONTEXT
        if path.suffix != ".json" or path.stat().st_size > LARGEST:
            return False
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return are_encodings(content) or is_debugger_result(content)
