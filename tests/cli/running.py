"""A model with everything that qnn-net-run can take it as, and the results of a run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import openqnn
from openqnn.emit import lower
from tests.cli.tool import Result, tool
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs

Array = np.ndarray[Any, Any]


@cache
def converted(model: str) -> openqnn.Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", openqnn.OpenQnnWarning)
        return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


@dataclass(frozen=True)
class Prepared:
    """A model in a folder: model.oqnn, model.dlc, a raw file per input and list.txt with `lines` lines."""

    folder: Path
    graph: openqnn.Graph

    @property
    def dlc(self) -> Path:
        return self.folder / "model.dlc"

    @property
    def list(self) -> Path:
        return self.folder / "list.txt"

    def run(self, *flags: object, to: str = "out", backend: str = "cpu", lists: object = None) -> Result:
        given = ("--backend", backend, "--input_list", lists or self.list, "--output_dir", self.folder / to)
        return tool("qnn-net-run", *flags, *given)

    def results(self, folder: str = "out", number: int = 0) -> dict[str, bytes]:
        found = (self.folder / folder / f"Result_{number}").iterdir()
        return {path.name: path.read_bytes() for path in sorted(found)}


def prepare(model: str, folder: Path, lines: int = 2, dlc: bool = True) -> Prepared:
    graph = converted(model)
    net = lower(graph)
    graph.save(folder / "model.oqnn")
    if dlc:
        graph.save(folder / "model.dlc")
    inputs = sample_inputs(model)
    for value, name in zip(graph.inputs, net.inputs, strict=True):
        np.asarray(inputs[value.name]).astype(np.float32).tofile(folder / f"{name}.raw")
    line = " ".join(f"{name}:={name}.raw" for name in net.inputs)
    (folder / "list.txt").write_text(f"{line}\n" * lines)
    return Prepared(folder, graph)


def assert_done(result: Result) -> None:
    assert result.code == 0, result.err
