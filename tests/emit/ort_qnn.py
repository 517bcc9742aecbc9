"""Run an ONNX model on ONNX Runtime's QNN provider, in a process of its own.

python ort_qnn.py MODEL FOLDER              runs on the arrays of FOLDER/in.npz, writes FOLDER/out.npz
python ort_qnn.py MODEL FOLDER CONTEXT N    writes an EPContext model instead; N is 1 to embed the binary
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn as qnn

NAME = "QNNExecutionProvider"
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


def options(context: str, embed: str) -> ort.SessionOptions:
    ort.register_execution_provider_library(NAME, qnn.get_library_path())
    devices = [device for device in ort.get_ep_devices() if device.ep_name == NAME]
    made = ort.SessionOptions()
    made.log_severity_level = 3
    made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if context:
        made.add_session_config_entry("ep.context_enable", "1")
        made.add_session_config_entry("ep.context_file_path", context)
        made.add_session_config_entry("ep.context_embed_mode", embed)
    made.add_provider_for_devices(devices[:1], {"backend_path": qnn.get_qnn_htp_path(), "soc_model": "57"})
    return made


def main() -> None:
    model, folder, context, embed = (*sys.argv[1:], "", "")[:4]
    session = ort.InferenceSession(model, options(context, embed))
    if context:
        return
    given = np.load(Path(folder, "in.npz"))
    feeds = {
        # A context may take a model's input in half precision, and ONNX Runtime does not convert.
        i.name: given[i.name].reshape(i.shape).astype(FLOATS.get(i.type, given[i.name].dtype))
        for i in session.get_inputs()
    }
    names = [output.name for output in session.get_outputs()]
    np.savez(Path(folder, "out.npz"), **dict(zip(names, session.run(None, feeds), strict=True)))


if __name__ == "__main__":
    main()
