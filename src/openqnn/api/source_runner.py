"""Source models in their own frameworks: ONNX Runtime, LiteRT, torch and TensorFlow as runners."""

from __future__ import annotations

import os
from pathlib import Path

from openqnn.errors import UnsupportedError
from openqnn.frontends.frontend import FRONTENDS, get_frontend
from openqnn.runtime.runner import Runner


def source_kind(path: str | os.PathLike[str]) -> str:
    """The frontend that a file or folder is a model for, by its content; empty where it is none."""
    if not Path(path).exists():
        return ""
    return next((name for name in FRONTENDS if get_frontend(name).recognizes(path)), "")


def source_runner(path: str | os.PathLike[str]) -> Runner:
    """A model as it is, with its own names, layout and types, in the framework that it is of."""
    kind = source_kind(path)
    if kind == "onnx":
        from openqnn.runtime.onnx_runner import OnnxRuntimeRunner

        return OnnxRuntimeRunner(path)
    if kind == "tflite":
        from openqnn.runtime.tflite_runner import TfliteRunner

        return TfliteRunner(path)
    if kind == "torch":
        from openqnn.frontends.torch.torch_runner import TorchRunner

        return TorchRunner(path)
    if kind == "tensorflow":
        from openqnn.frontends.tensorflow.tensorflow_runner import TensorflowRunner

        return TensorflowRunner(path)
    raise UnsupportedError(
        f"{path}: no framework here runs such a model",
        hint="convert it, and compare with the graph: openqnn convert MODEL -o float.oqnn",
    )
