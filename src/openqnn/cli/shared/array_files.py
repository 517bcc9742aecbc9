"""Arrays from and to files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.formats.atomic import replacing
from openqnn.ir import Array, Graph
from openqnn.runtime.boundary import outside_dtype, random_inputs

LONGEST_STEM = 60  # characters: file systems allow 255 bytes, and letters may take four


def read_inputs(graph: Graph, files: Mapping[str, str], fill: bool) -> dict[str, Array]:
    """The graph's inputs from files; those not given are random when `fill` says so."""
    unknown = [n for n in files if n not in graph.ports or n not in {v.name for v in graph.inputs}]
    names = ", ".join(repr(v.name) for v in graph.inputs)
    if unknown:
        raise InputError(f"the graph has no input '{unknown[0]}'", hint=f"its inputs: {names}")
    missing = [v.name for v in graph.inputs if v.name not in files]
    if missing and not fill:
        raise InputError(
            f"no file for input '{missing[0]}'", hint=f"--input {missing[0]}=FILE.npy, or --random"
        )
    made = random_inputs(graph) if missing else {}
    return {
        v.name: _read(graph, v.name, Path(files[v.name])) if v.name in files else made[v.name]
        for v in graph.inputs
    }


def _read(graph: Graph, name: str, path: Path) -> Array:
    port = graph.ports[name]
    dtype = outside_dtype(port)
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
            if not isinstance(found, np.ndarray):
                raise ValueError("it is no array of its own, but an archive")
            return found
        data = np.fromfile(path, dtype.numpy)
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, MemoryError, OverflowError) as e:
        raise InputError(f"input '{name}': {path} cannot be read: {e}") from e
    wanted = int(np.prod(port.shape, dtype=np.int64))
    if data.size != wanted or path.stat().st_size % dtype.numpy.itemsize:
        raise InputError(
            f"input '{name}': {path} has {path.stat().st_size} bytes, "
            f"{dtype.label}{list(port.shape)} needs {wanted * dtype.numpy.itemsize}"
        )
    return data.reshape(port.shape)


def output_paths(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """NAME.npy for each, with what a file name cannot hold replaced; two that become alike are numbered."""
    paths: dict[str, Path] = {}
    taken: set[str] = set()
    for name in names:
        stem = candidate = re.sub(r"[^\w.@+-]", "_", name)[:LONGEST_STEM]
        count = 1
        while candidate.lower() in taken:  # some file systems do not tell cases apart
            count += 1
            candidate = f"{stem}_{count}"
        taken.add(candidate.lower())
        paths[name] = folder / f"{candidate}.npy"
    return paths


def write_array(path: Path, array: Array) -> None:
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)
