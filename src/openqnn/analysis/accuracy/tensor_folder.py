"""Folders of raw tensors: what a framework or an engine wrote, found by the names of tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.formats.atomic import replacing
from openqnn.ir import Array
from openqnn.qnn.net import qnn_name

SUFFIX = ".raw"


class TensorFolder:
    """Raw files below a folder. Names of tensors are paths without the suffix, or QNN's names."""

    def __init__(self, folder: str | os.PathLike[str], dtype: str = "float32") -> None:
        self.folder, self.dtype = Path(folder), np.dtype(dtype)
        if not self.folder.is_dir():
            raise InputError(f"{folder}: no such folder", hint="give the folder that holds the .raw files")
        files = sorted(self.folder.rglob(f"*{SUFFIX}"))
        self.files = {str(f.relative_to(self.folder).with_suffix("")): f for f in files}
        if not self.files:
            raise InputError(f"{folder} holds no {SUFFIX} files")
        self._short = {qnn_name(name): name for name in self.files}

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def found(self, name: str) -> str | None:
        """The name that a tensor has here, if it is here: as it is, with an index, or as QNN spells it."""
        for spelling in (name, safe_path(name), name.removesuffix(":0"), f"{name}:0"):
            if spelling in self.files:
                return spelling
        short = qnn_name(name)
        spellings = (short, qnn_name(name.removesuffix(":0")), short.removeprefix("_"))  # of /name
        return next((self._short[s] for s in spellings if s in self._short), None)

    def read(self, name: str) -> Array:
        """The numbers of a tensor, in one row, as real ones or in the type of the files."""
        path = self.files[name]
        size = path.stat().st_size
        if size % self.dtype.itemsize:
            raise InputError(
                f"{path}: {size:,} bytes are no whole number of {self.dtype.name}",
                hint="say which type the files have: --data_type",
            )
        return np.fromfile(path, self.dtype)


def safe_path(name: str) -> str:
    """A tensor's name as a path below a folder: slashes make folders, and nothing leads out of it."""
    parts = [p for p in name.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    return "/".join(parts) or "tensor"


def write_tensors(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Each tensor as a raw file: real numbers in float32, others in their own type."""
    for name, array in arrays.items():
        path = folder / f"{safe_path(name)}{SUFFIX}"
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = array.astype(np.float32) if array.dtype.kind == "f" else array
        with replacing(path) as file:
            file.write(np.ascontiguousarray(kept).tobytes())


def map_tensors(found: TensorFolder, golden: TensorFolder) -> dict[str, str]:
    """Which golden tensor each of an engine's tensors is: by name, in the spelling of QNN."""
    known = {qnn_name(name): name for name in golden}
    pairs = {name: golden.found(name) or _first_of_joined(name, known) for name in found}
    return {name: other for name, other in pairs.items() if other is not None}


def _first_of_joined(name: str, known: Mapping[str, str]) -> str | None:
    """TensorFlow names a tensor by all the nodes that became one of TFLite, the last of them first."""
    starts = sorted((k for k in known if name.startswith(f"{k}_")), key=len, reverse=True)
    for start in starts:
        rest = name[len(start) + 1 :]
        if rest in known or _first_of_joined(rest, known) is not None:
            return known[start]
    return None
