"""Whether the QNN provider of the package onnxruntime-qnn starts in the ONNX Runtime that is installed.

    python -m openqnn.analysis.provider_start      # one addition through the provider; errors go to stderr

A version of the provider works with few versions of ONNX Runtime, and pip installs any two side by side.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from openqnn.worker.interpreter import interpreter_command, interpreter_environment

NAME = "QNNExecutionProvider"
_SECONDS = 60.0
_LONGEST = 200


def provider_error() -> str:
    """Why the provider does not start, in ONNX Runtime's words; "" where it does."""
    command = interpreter_command("-m", __name__)
    try:
        done = subprocess.run(
            command, env=interpreter_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{NAME} gives no answer: {error}"[:_LONGEST]
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return (lines[-1] if lines else f"exit code {done.returncode}").rpartition(" : ")[2][:_LONGEST]


def main() -> None:
    """One addition on libQnnCpu through the provider; an exception where it does not start."""
    import numpy as np
    import onnxruntime
    import onnxruntime_qnn  # pyright: ignore[reportMissingImports] -- comes with Qualcomm's libraries
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "tiny", ends[:2], ends[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnxruntime.register_execution_provider_library(NAME, onnxruntime_qnn.get_library_path())
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_provider_for_devices(devices[:1], {"backend_path": onnxruntime_qnn.get_qnn_cpu_path()})
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=0)
    ones = np.ones((1, 4), np.float32)
    found: Any = session.run(None, {"a": ones, "b": ones})[0]
    if NAME not in session.get_providers() or not np.array_equal(found, 2 * ones):
        sys.exit(f"{NAME} did not run the graph")


if __name__ == "__main__":
    main()
