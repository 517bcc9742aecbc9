"""ONNX Runtime on a source model as it is: what a converted graph is compared with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from openqnn.errors import BackendError, ModelError
from openqnn.ir import Array
from openqnn.runtime.cpu.executable import FAILURES, failed
from openqnn.runtime.runner import Outputs, chosen

_FOLDER = "session.model_external_initializers_file_folder_path"


class OnnxRuntimeRunner:
    """An ONNX model, with its own names, layout and types; a runner in the sense of `Runner`.

    Intermediate tensors become outputs of a second session, which is kept until others are asked for.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | onnx.ModelProto,
        *,
        threads: int = 0,
        optimize: bool = True,
        custom_ops: str = "",
        input_shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """`custom_ops` is a library of operations that ONNX Runtime loads, `input_shapes` count more than
        what the model declares."""
        self._threads, self._optimize, self._custom_ops = threads, optimize, custom_ops
        self._folder = "" if isinstance(model, onnx.ModelProto) else str(Path(model).absolute().parent)
        self._model = model if isinstance(model, onnx.ModelProto) else _read(Path(model))
        _set_shapes(self._model, input_shapes or {})
        self._own = [output.name for output in self._model.graph.output]
        self._sessions: dict[tuple[str, ...], ort.InferenceSession] = {(): self._open(())}

    @property
    def tensor_names(self) -> list[str]:
        return _tensors(self._model)

    @property
    def made_by(self) -> dict[str, str]:
        """The first result of each node that has a name."""
        return {n.name: n.output[0] for n in self._model.graph.node if n.name and n.output}

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        names = chosen(outputs, self._own, self.tensor_names)
        session = self._session(tuple(name for name in names if name not in self._own))
        try:
            results = session.run(names, dict(inputs))
        except FAILURES as error:
            raise failed(error) from error
        found: dict[str, Any] = dict(zip(names, results, strict=True))
        return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        self._sessions.clear()

    def _session(self, extra: tuple[str, ...]) -> ort.InferenceSession:
        if not self._sessions:
            raise BackendError("the runner is closed")
        if extra not in self._sessions:
            self._sessions = {(): self._sessions[()], extra: self._open(extra)}
        return self._sessions[extra]

    def _open(self, extra: tuple[str, ...]) -> ort.InferenceSession:
        """The model with `extra` tensors as outputs, whose types ONNX Runtime finds out itself."""
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = self._threads
        if not self._optimize:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if self._folder:
            options.add_session_config_entry(_FOLDER, self._folder)
        try:
            if self._custom_ops:
                options.register_custom_ops_library(self._custom_ops)
            return ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime raises a dozen unrelated classes here
            raise failed(error) from error


def tensors_of(path: str | os.PathLike[str]) -> list[str]:
    """What a model computes: its outputs first. ONNX Runtime need not know its operations."""
    return _tensors(_read(Path(path)))


def _tensors(model: onnx.ModelProto) -> list[str]:
    made = (name for node in model.graph.node for name in node.output if name)
    return list(dict.fromkeys([*(output.name for output in model.graph.output), *made]))


def _read(path: Path) -> onnx.ModelProto:
    """The model without its external weights, which ONNX Runtime reads itself."""
    try:
        return onnx.load(path, load_external_data=False)
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such file") from error
    except Exception as error:  # whatever protobuf raises on other bytes
        raise ModelError(f"{path}: not an ONNX model") from error


def _set_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Declares inputs anew; what the model says of tensors behind them is left to be inferred."""
    if not shapes:
        return
    for value in model.graph.input:
        if value.name in shapes:
            declared = value.type.tensor_type.shape
            del declared.dim[:]
            for size in shapes[value.name]:
                declared.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
