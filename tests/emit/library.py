"""Model libraries on the real CPU backend: built from a graph, run by a small host program."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from openqnn.emit.model_lib import INCLUDE, LibraryJob, build_model_library
from openqnn.emit.model_source import ModelSource, SourceOptions, write_model_source
from openqnn.qnn import abi
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array, Net

HOST = Path(__file__).with_name("host.cpp")
X86 = "x86_64-linux-clang"

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no g++")


def compile_host(folder: Path) -> Path:
    """The host program, compiled with the package's headers."""
    program = folder / "host"
    command = ["g++", "-std=c++11", "-I", str(INCLUDE), str(HOST), "-o", str(program), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return program


@dataclass
class Built:
    """A library with the files that it came from."""

    source: ModelSource
    library: Path
    nets: Sequence[Net]
    prefix: str = "QnnModel"
    printed: list[str] = field(default_factory=list)

    def run(
        self, host: Path, inputs: Mapping[str, Mapping[str, Array]], folder: Path, debug: bool = False
    ) -> dict[str, dict[str, Array]]:
        """Outputs of every graph."""
        for graph, arrays in inputs.items():
            (folder / graph).mkdir(parents=True, exist_ok=True)
            for name, array in arrays.items():
                (folder / graph / f"{name}.raw").write_bytes(array.tobytes())
        command = [host, find_library("cpu"), self.library, self.prefix, folder, str(int(debug))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        self.printed = done.stdout.splitlines()
        return {net.name: {name: _read(folder, net, name) for name in net.outputs} for net in self.nets}


def build(nets: Sequence[Net], folder: Path, options: SourceOptions | None = None, stem: str = "") -> Built:
    """Source and library for this machine."""
    stem = stem or nets[0].name
    source = write_model_source(nets, folder / stem, options)
    built = build_model_library(LibraryJob(source.cpp, source.bin), folder / "lib", [X86])
    prefix = stem if options and options.own_prefix else "QnnModel"
    return Built(source, built[X86], nets, prefix)


def symbols(library: Path) -> dict[str, str]:
    """Exported symbols and their kinds."""
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split()[-1]: line.split()[-2] for line in lines}


def needed(library: Path) -> set[str]:
    """The libraries that the loader will look for."""
    text = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].split("]")[0] for line in text.splitlines() if "(NEEDED)" in line}


def _read(folder: Path, net: Net, name: str) -> Array:
    tensor = net.tensors[name]
    data = np.fromfile(folder / net.name / f"{name}.out", abi.numpy_dtype(tensor.dtype))
    return data.reshape(tensor.dims)
