"""How long a model takes on this machine: the built-in backend, ONNX Runtime and Qualcomm's libraries.

Contenders take turns in rounds, so that a machine that is busy for a while is so for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from openqnn.errors import UsageError
from openqnn.formats.input_list import InputList
from openqnn.formats.throughput_config import (
    BackendEntry,
    ContextEntry,
    ModelEntry,
    ThreadEntry,
    ThroughputConfig,
)
from openqnn.ir import Graph
from openqnn.targets.registry import target_of_library

if TYPE_CHECKING:
    from openqnn.vendor.source import Source
    from openqnn.vendor.throughput.run import ThroughputRun

BUILT_IN, ORT = "openqnn", "ort"
WARM_UP = 2
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class BenchTime:
    """One contender: milliseconds of an inference. `rounds` are the medians of the rounds."""

    contender: str
    runs: int
    median: float
    mean: float
    least: float
    p90: float
    rounds: tuple[float, ...]
    remark: str = ""


def bench_model(model: str, graph: Graph, contenders: Sequence[str], runs: int) -> list[BenchTime]:
    """Measure a model on each contender, with random inputs."""
    from openqnn.runtime.boundary import random_inputs

    inputs = random_inputs(graph)
    each = max(1, -(-runs // ROUNDS))
    times: dict[str, list[list[float]]] = {name: [] for name in contenders}
    functions = {name: _LOCAL[name](model, graph, inputs) for name in contenders if name in _LOCAL}
    for function in functions.values():
        for _ in range(WARM_UP):
            function()
    for _ in range(ROUNDS):
        for name in contenders:
            found = _clocked(functions[name], each) if name in functions else vendor_times(name, graph, each)
            times[name].append(found)
    return [_time(name, rounds) for name, rounds in times.items()]


def vendor_times(library: str, graph: Graph, runs: int) -> list[float]:
    """Milliseconds in graphExecute of one of Qualcomm's libraries, with random inputs."""
    from openqnn.vendor.source import Source

    return milliseconds_of(run_vendor(library, Source((graph,)), runs, ()))


def run_vendor(library: str, source: Source, runs: int, lists: tuple[InputList | None, ...]) -> ThroughputRun:
    """Runs a source on a library: `runs` times over the lists, or on random inputs where there are none."""
    from openqnn.vendor.remote import run_throughput
    from openqnn.vendor.target_setup import target_of
    from openqnn.vendor.throughput.plan import BackendPlan, ModelPlan, ThroughputPlan

    thread = ThreadEntry("t", "b", "c", "m", random=not lists, loop=runs)
    config = ThroughputConfig(
        "bench", {"b": BackendEntry("b", library)}, {"m": ModelEntry("m", "", input_type="FLOAT")},
        {"c": ContextEntry("c")}, (thread,), 1,
    )  # fmt: skip
    plan = ThroughputPlan(config, {"b": BackendPlan(target_of(library))}, {"m": ModelPlan(source, lists)})
    return run_throughput(plan)


def milliseconds_of(run: ThroughputRun) -> list[float]:
    """How long each execution took, by the points of its distribution."""
    spread = run.threads[0].spreads["execute"]
    shares = [(i + 0.5) / spread.count for i in range(spread.count)]
    return [_at(spread.curve, share) * 1e3 for share in shares]


def summed_up(contender: str, library: str, milliseconds: Sequence[float]) -> BenchTime:
    """The figures of a library by the name that the contender has in the table."""
    return replace(_time(library, [list(milliseconds)]), contender=contender)


def _built_in(model: str, graph: Graph, inputs: Mapping[str, Any]) -> Callable[[], object]:
    from openqnn.api.session import Session

    session = Session(graph)
    return lambda: session.run(inputs)


def _onnx_runtime(model: str, graph: Graph, inputs: Mapping[str, Any]) -> Callable[[], object]:
    if Path(model).suffix != ".onnx":
        raise UsageError(f"{model}: ONNX Runtime runs .onnx files", hint="leave ort out of --against")
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    source = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    given = {each.name: inputs[each.name] for each in source.get_inputs()}
    return lambda: source.run(None, given)


_LOCAL = {BUILT_IN: _built_in, ORT: _onnx_runtime}


def _clocked(function: Callable[[], object], runs: int) -> list[float]:
    found: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        found.append((time.perf_counter() - start) * 1e3)
    return found


def _at(curve: Sequence[tuple[float, float]], share: float) -> float:
    """The time within which such a share was done."""
    return next(seconds for seconds, reached in curve if reached >= share)


def remark_on(name: str) -> str:
    """What has to be known of times on this machine."""
    if name not in _LOCAL and target_of_library(name).compiles:
        return "the simulator: time of this machine, not of a chip"
    return ""


def _time(name: str, rounds: Sequence[Sequence[float]]) -> BenchTime:
    every = sorted(value for values in rounds for value in values)
    medians = tuple(median(values) for values in rounds)
    p90 = every[min(len(every) - 1, int(0.9 * len(every)))]
    return BenchTime(name, len(every), median(every), fmean(every), every[0], p90, medians, remark_on(name))
