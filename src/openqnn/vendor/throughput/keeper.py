"""What becomes of the outputs in a throughput run: files, and how far they are from what they should be."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.formats.input_list import InputList, named_files
from openqnn.formats.raw import read_raw
from openqnn.formats.throughput_config import ModelEntry
from openqnn.qnn import abi
from openqnn.qnn.graph import Graph
from openqnn.qnn.net import Array, NetTensor
from openqnn.vendor.net_run.results import as_float
from openqnn.vendor.net_run.run_graphs import file_stem

_WIDTHS = {"MSE_INT8": 1, "MSE_INT16": 2}


@dataclass(frozen=True, slots=True)
class OutputDistance:
    """The mean squared error of an output over a run."""

    graph: str
    output: str
    executions: int
    mean: float
    largest: float


class Keeper:
    """The outputs of one graph in one thread: `take` is called after each execution."""

    def __init__(
        self, graph: Graph, model: ModelEntry, golden: InputList | None, folder: str, sets: int
    ) -> None:
        self._graph, self._model = graph, model
        self._folder = Path(folder) if folder else None
        self._tensors = {tensor.name: tensor for tensor in graph.outputs}
        self._wanted: dict[tuple[int, str], Array] = {}
        self._sums = {name: [0, 0.0, 0.0] for name in self._tensors}
        self._saved = 0
        self._last: dict[str, Array] | None = None
        self._compares = model.post_processor != "NONE"
        self.idle = not self._compares and model.save == "NONE"
        if self._compares:
            self._check_widths()
        if golden is not None:
            self._read_golden(golden, sets)

    def take(self, turn: int, outputs: dict[str, Array]) -> None:
        if self._compares:
            self._compare(turn, outputs)
        if self._model.save == "NATIVE_ALL":
            self._save(outputs)
        elif self._model.save == "NATIVE_LAST":
            self._last = outputs

    def finish(self) -> list[OutputDistance]:
        """Write what is left to write; the errors of all outputs."""
        if self._last is not None:
            self._save(self._last)
        if not self._compares:
            return []
        found = [
            OutputDistance(self._graph.name, name, int(count), total / count, largest)
            for name, (count, total, largest) in self._sums.items()
            if count
        ]
        if self._folder is not None:
            lines = ["output,executions,mean_mse,largest_mse"]
            lines += [f"{e.output},{e.executions},{e.mean:.9g},{e.largest:.9g}" for e in found]
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{file_stem(self._graph.name)}_{self._model.post_processor.lower()}.csv"
            (self._folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return found

    def _check_widths(self) -> None:
        width = _WIDTHS.get(self._model.post_processor)
        for name, tensor in self._tensors.items():
            kind = abi.numpy_dtype(tensor.dtype)
            if width is not None and (kind.kind not in "iu" or kind.itemsize != width):
                raise InputError(
                    f"model '{self._model.name}': output '{name}' is {abi.dtype_name(tensor.dtype)}, and"
                    f" {self._model.post_processor} compares integers of {8 * width} bits",
                    hint="postProcessor MSE compares real numbers",
                )

    def _compare(self, turn: int, outputs: dict[str, Array]) -> None:
        for name, array in outputs.items():
            now = self._comparable(array, self._tensors[name])
            wanted = self._wanted.get((turn, name))
            if wanted is None:  # without golden files, the first execution on the same inputs is what counts
                self._wanted[turn, name] = now.copy()
                continue
            error = float(np.mean(np.square(now - wanted)))
            sums = self._sums[name]
            sums[0] += 1
            sums[1] += error
            sums[2] = max(sums[2], error)

    def _comparable(self, array: Array, tensor: NetTensor) -> Array:
        whole = self._model.post_processor in _WIDTHS
        return (array if whole else as_float(array, tensor)).astype(np.float64)

    def _read_golden(self, golden: InputList, sets: int) -> None:
        if len(golden.lines) != sets:
            raise InputError(f"{golden.path}: {len(golden.lines)} lines for {sets} sets of inputs")
        for turn, line in enumerate(golden.lines):
            files = named_files(golden, line, list(self._tensors), self._graph.name)
            for name, path in files.items():
                tensor = self._tensors[name]
                whole = self._model.post_processor in _WIDTHS
                dtype = abi.numpy_dtype(tensor.dtype) if whole else np.dtype(np.float32)
                subject = f"{golden.path}, line {line.number}, output '{name}'"
                raw = read_raw(path, dtype, [prod(tensor.dims)], subject, dtype)
                self._wanted[turn, name] = raw.reshape(tensor.dims).astype(np.float64)

    def _save(self, outputs: dict[str, Array]) -> None:
        assert self._folder is not None  # the configuration is refused without one
        folder = self._folder / f"Result_{self._saved}"
        folder.mkdir(parents=True, exist_ok=True)
        self._saved += 1
        kinds = {"NATIVE_ONLY": (True,), "FLOAT_ONLY": (False,)}.get(self._model.output_type, (False, True))
        for name, array in outputs.items():
            tensor = self._tensors[name]
            for native in kinds:
                plain = not native or tensor.dtype == abi.FLOAT_32
                file = folder / f"{file_stem(name)}{'' if plain else '_native'}.raw"
                (array if native else as_float(array, tensor)).tofile(file)
