"""Framework diagnosis: the model in its own framework, every tensor as a raw file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder
from openqnn.errors import InputError, UsageError
from openqnn.ir import Array
from openqnn.runtime.runner import Outputs, chosen

if TYPE_CHECKING:
    from openqnn.runtime.runner import Runner

MODE = "framework_diagnosis"
FRAMEWORKS = ("onnx", "tflite", "tensorflow", "pytorch")
SUFFIXES = {".onnx": "onnx", ".tflite": "tflite", ".pb": "tensorflow", ".pt": "pytorch", ".pt2": "pytorch"}


def framework_of(request: DebuggerRequest) -> str:
    """The framework's name: as it was given, or by the suffix of the model."""
    given = request.model.framework[0].lower() if request.model.framework else ""
    name = given or SUFFIXES.get(Path(request.model.model_path).suffix, "")
    if name not in FRAMEWORKS:
        raise UsageError(
            f"there is no framework '{given or request.model.model_path}'", hint=", ".join(FRAMEWORKS)
        )
    return name


def read_inputs(rows: Sequence[Sequence[str]]) -> dict[str, Array]:
    """Inputs from `name dims file [dtype]`."""
    found: dict[str, Array] = {}
    for row in rows:
        if len(row) not in (3, 4):
            hint = '--input_tensor "data" 1,224,224,3 data.raw float32'
            raise UsageError(f"an input is a name, dimensions and a file, not {' '.join(row)!r}", hint=hint)
        found[row[0]] = _read_input(*row)
    return found


def _read_input(name: str, dims: str, path: str, dtype: str = "float32") -> Array:
    try:
        shape = tuple(int(d) for d in dims.split(",") if d.strip())
        kind = np.dtype(dtype)
    except (ValueError, TypeError):
        raise UsageError(f"input '{name}': {dims!r} {dtype!r} are no dimensions and type") from None
    try:
        array = np.fromfile(path, kind)
    except OSError as error:
        raise InputError(f"input '{name}': {path} cannot be read ({error.strerror})") from error
    if array.size != int(np.prod(shape)):
        raise InputError(
            f"input '{name}': {path} has {array.size:,} numbers of {kind.name}, and {dims} are"
            f" {int(np.prod(shape)):,}",
            hint="give the type of the file behind its name: data.raw uint8",
        )
    return array.reshape(shape)


def _has_own_ops(path: str) -> bool:
    from openqnn.frontends.onnx.open_onnx import has_declared_ops

    return has_declared_ops(path)


class ConvertedRunner:
    """The converted model in floats on the built-in backend, which knows operations of the user's.

    A runner in the sense of `Runner`.
    """

    def __init__(self, path: str) -> None:
        from openqnn.api.convert import convert
        from openqnn.api.session import Session

        print(f"{path}: it has operations of your own, which ONNX Runtime does not know: run as converted")
        self._session = Session(convert(path))

    @property
    def tensor_names(self) -> list[str]:
        made = [v.name for node in self._session.graph.nodes for v in node.outputs]
        return list(dict.fromkeys([*self._session.output_names, *made]))

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        return self._session.run(inputs, chosen(outputs, self._session.output_names, self.tensor_names))

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        self._session.close()


def framework_runner(request: DebuggerRequest) -> Runner:
    """What runs the source model and shows its tensors."""
    name, path = framework_of(request), request.model.model_path
    if name == "onnx" and not request.diagnosis.onnx_custom_op_lib and _has_own_ops(path):
        return ConvertedRunner(path)
    if name == "onnx":
        from openqnn.runtime.onnx_runner import OnnxRuntimeRunner

        return OnnxRuntimeRunner(
            path,
            optimize=not request.diagnosis.disable_graph_optimization,
            custom_ops=request.diagnosis.onnx_custom_op_lib,
        )
    if name == "tflite":
        from openqnn.runtime.tflite_runner import TfliteRunner

        return TfliteRunner(path)
    if name == "tensorflow":
        from openqnn.frontends.tensorflow.tensorflow_runner import TensorflowRunner

        return TensorflowRunner(path, request.model.output_tensor)
    from openqnn.frontends.torch.torch_runner import TorchRunner

    return TorchRunner(path)


def run_framework_diagnosis(request: DebuggerRequest, name: str = "") -> Path:
    """Runs the model once and writes all its tensors; the folder that they are in."""
    from openqnn.analysis.accuracy.tensor_folder import write_tensors

    request.need(model_path=request.model.model_path, input_tensor=request.model.input_tensor)
    framework_of(request)
    folder = RunFolder(request.folders.working_dir, MODE, name)
    folder.write_options(request.options)
    with folder.logged():
        runner = framework_runner(request)
        inputs = read_inputs(request.model.input_tensor)
        found = runner.run({_plain(n, runner): a for n, a in inputs.items()}, "all")
        missing = [o for o in request.model.output_tensor if _plain(o, runner) not in found]
        if missing:
            near = get_close_matches(missing[0], list(found), 3) or list(found)[:3]
            raise InputError(f"the model has no tensor '{missing[0]}'", hint=f"it has {', '.join(near)}, ...")
        runner.close()
        write_tensors(folder.path, found)
        print(f"{folder.path}: {len(found)} tensors of {request.model.model_path}")
    return folder.path


def _plain(name: str, runner: Runner) -> str:
    """The name as the framework has it: with or without the index of an output."""
    short = name.removesuffix(":0")
    return short if name not in runner.tensor_names and short in runner.tensor_names else name
