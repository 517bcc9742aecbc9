"""Finds encodings with aimet-onnx: a script for the Python that has it, which may have nothing of OpenQNN.

The folder that it is given holds `request.json`, `source.onnx` and a `.npz` for each sample, whose arrays are
in the order of the request's inputs. `model.encodings` in it is the answer.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import onnx


def run_aimet(folder: Path) -> None:
    quantsim = importlib.import_module("aimet_onnx.quantsim")
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    simulation = quantsim.QuantizationSimModel(
        onnx.load(folder / "source.onnx"), param_type=request["weights"],
        activation_type=request["activations"], quant_scheme=request["scheme"],
    )  # fmt: skip
    samples = []
    for number in range(request["samples"]):
        with np.load(folder / f"{number}.npz") as arrays:
            samples.append({name: arrays[f"arr_{index}"] for index, name in enumerate(request["inputs"])})
    simulation.compute_encodings(samples)
    simulation.export(str(folder), "model", encoding_version=request["version"])


if __name__ == "__main__":
    run_aimet(Path(sys.argv[1]))
