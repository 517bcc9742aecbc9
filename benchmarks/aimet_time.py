"""Times calibration with aimet-onnx; runs in a Python that has it, apart from the rest of the benchmark.

    python benchmarks/aimet_time.py DIR ROUNDS

DIR holds model.onnx and calibration.npz (arrays named <sample>/<input>). Writes the least seconds of all
rounds to seconds.txt: those from the model in memory to all encodings, as its guide says, and those of the
pass over the samples among them.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import onnx
from aimet_peer import samples


def main(folder: Path, rounds: int) -> None:
    import aimet_onnx
    from aimet_onnx.batch_norm_fold import fold_all_batch_norms_to_weight
    from aimet_onnx.quantsim import QuantizationSimModel

    data, times = samples(folder / "calibration.npz"), list[tuple[float, float]]()
    for _ in range(rounds):
        model = onnx.load(folder / "model.onnx")
        start = time.perf_counter()
        fold_all_batch_norms_to_weight(model)
        sim = QuantizationSimModel(model, param_type=aimet_onnx.int8, activation_type=aimet_onnx.int8)
        ready = time.perf_counter()
        sim.compute_encodings(data)
        end = time.perf_counter()
        times.append((end - start, end - ready))
    (folder / "seconds.txt").write_text(f"{min(t[0] for t in times)} {min(t[1] for t in times)}")
    os._exit(0)  # some of its libraries crash on the way out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), int(sys.argv[2]))
