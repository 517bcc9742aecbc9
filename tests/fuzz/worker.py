"""A child process that converts damaged models: seeds come in, one line of outcome goes out.

python -m tests.fuzz.worker SEED...        # some seeds, with the traceback of what is wrong
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np

import openqnn
from openqnn.errors import OpenQnnError
from openqnn.runtime.boundary import random_inputs
from tests.fuzz.mutate import mutated
from tests.fuzz.mutate_caffe import mutated_caffe
from tests.fuzz.mutate_tflite import mutated_tflite

FIRST_TFLITE = 3_000_000  # seeds from here on damage TFLite models
FIRST_CAFFE = 4_000_000  # and from here on Caffe networks
MEMORY = 6 << 30  # bytes of address space; the libraries alone take a good part of it
RUN_BELOW = 1 << 27  # bytes of results; larger graphs are only converted


def outcome(seed: int, folder: Path) -> dict[str, str]:
    """`good` or `refused`; anything else is `wrong`, with the traceback."""
    what = "making the damage"
    try:
        what, path = _damaged(seed, folder)
        graph = openqnn.convert(path)
        if seed % 2 == 0 and sum(v.nbytes for v in graph.values()) < RUN_BELOW:
            with openqnn.Session(graph, threads=1) as session:
                session.run(random_inputs(graph))
        return {"outcome": "good", "what": what}
    except OpenQnnError as e:
        return {"outcome": "refused", "what": what, "detail": f"{type(e).__name__}: {e}"}
    except BaseException:
        return {"outcome": "wrong", "what": what, "detail": traceback.format_exc()}


def _damaged(seed: int, folder: Path) -> tuple[str, Path]:
    """What was done to which file."""
    if seed >= FIRST_CAFFE:
        what, text, weights = mutated_caffe(seed)
        path = folder / "model.prototxt"
        path.with_suffix(".caffemodel").unlink(missing_ok=True)
        if weights:
            path.with_suffix(".caffemodel").write_bytes(weights)
        path.write_bytes(text)
        return what, path
    what, content = mutated_tflite(seed) if seed >= FIRST_TFLITE else mutated(seed)
    path = folder / ("model.tflite" if seed >= FIRST_TFLITE else "model.onnx")
    path.write_bytes(content)
    return what, path


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        for seed in map(int, sys.argv[1:] or sys.stdin):
            answer = outcome(seed, Path(folder))
            print(
                json.dumps(answer) if len(sys.argv) == 1 else "\n".join([str(seed), *answer.values()]),
                flush=True,
            )


if __name__ == "__main__":
    main()
