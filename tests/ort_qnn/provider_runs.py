"""Run an ONNX model on many samples with ONNX Runtime's QNN provider, in a process of its own.

python provider_runs.py MODEL FOLDER    reads FOLDER/in_0.npz, in_1.npz, ... and writes FOLDER/out_0.npz, ...
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn as qnn

NAME = "QNNExecutionProvider"


def main() -> None:
    model, folder = sys.argv[1], Path(sys.argv[2])
    ort.register_execution_provider_library(NAME, qnn.get_library_path())
    devices = [device for device in ort.get_ep_devices() if device.ep_name == NAME]
    options = ort.SessionOptions()
    options.log_severity_level = 3
    told = {"backend_path": qnn.get_qnn_htp_path(), "soc_model": "57", "offload_graph_io_quantization": "1"}
    options.add_provider_for_devices(devices[:1], told)
    session = ort.InferenceSession(model, options)
    names = [output.name for output in session.get_outputs()]
    for number in count():
        if not (folder / f"in_{number}.npz").exists():
            return
        given = dict(np.load(folder / f"in_{number}.npz"))
        np.savez(folder / f"out_{number}.npz", **dict(zip(names, session.run(None, given), strict=True)))


if __name__ == "__main__":
    main()
