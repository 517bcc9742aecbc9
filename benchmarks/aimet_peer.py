"""Simulates quantization with aimet-onnx; runs in a Python that has it, apart from the rest of the benchmark.

    python benchmarks/aimet_peer.py DIR [CONFIG]

DIR holds model.onnx, calibration.npz and evaluation.npz (arrays named <sample>/<input>); outputs-8.npz and
outputs-16.npz are written there (<sample>/<output>), by the bits of the activations, and what AIMET exports:
8.onnx with 8.encodings, and the same for 16. Batch norms are folded first, as AIMET's guide says.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

VERSION = "1.0.0"  # of the encodings file


def samples(path: Path) -> list[dict[str, np.ndarray]]:
    found: dict[int, dict[str, np.ndarray]] = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            number, name = key.split("/", 1)
            found.setdefault(int(number), {})[name] = arrays[key]
    return [found[i] for i in sorted(found)]


def main(folder: Path, config: str | None) -> None:
    for bits in (8, 16):
        np.savez(folder / f"outputs-{bits}.npz", **simulated(folder, bits, config))
    os._exit(0)  # some of its libraries crash on the way out


def simulated(folder: Path, bits: int, config: str | None) -> dict[str, Any]:
    import aimet_onnx
    from aimet_onnx.batch_norm_fold import fold_all_batch_norms_to_weight
    from aimet_onnx.quantsim import QuantizationSimModel

    model = onnx.load(folder / "model.onnx")
    names = [o.name for o in model.graph.output]  # the simulation renames some, and keeps their order
    fold_all_batch_norms_to_weight(model)
    activation = aimet_onnx.int16 if bits == 16 else aimet_onnx.int8
    sim = QuantizationSimModel(
        model, param_type=aimet_onnx.int8, activation_type=activation, config_file=config
    )
    sim.compute_encodings(samples(folder / "calibration.npz"))
    found: dict[str, Any] = {}
    for number, inputs in enumerate(samples(folder / "evaluation.npz")):
        for name, array in zip(names, sim.session.run(None, inputs), strict=True):
            found[f"{number}/{name}"] = array
    sim.export(str(folder), str(bits), encoding_version=VERSION)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
