"""A throughput run from start to end, in the process that holds the libraries."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.qnn.profile_log import Author, Measured, ProfileLog
from openqnn.vendor.model import system_beside
from openqnn.vendor.throughput.open_models import OpenModels
from openqnn.vendor.throughput.plan import ThroughputPlan
from openqnn.vendor.throughput.scenario import (
    OFFLINE,
    OFFLINE_SAMPLES,
    SERVER,
    Outcome,
    Scenario,
    arrivals,
    judge,
)
from openqnn.vendor.throughput.threads import BenchThread, Crew, ThreadResult, clock, describe_backend
from openqnn.worker.serve import Reporter


@dataclass(frozen=True, slots=True)
class Resources:
    """Memory in use in bytes, and open files."""

    memory: int
    handles: int


@dataclass(frozen=True, slots=True)
class ThroughputRun:
    """What came out. `seconds` is the time from the first execution to the last."""

    threads: list[ThreadResult]
    backends: dict[str, dict[str, Any]]
    iterations: int
    seconds: float
    stopped: bool
    before: Resources
    after: Resources
    outcomes: dict[str, Outcome]
    logs: list[str]


def run_plan(plan: ThroughputPlan, reporter: Reporter) -> ThroughputRun:
    """Open everything, run every iteration, and give what was measured."""
    stop = threading.Event()
    crew = Crew(stop, lambda: bool(plan.stop) and os.path.exists(plan.stop))
    with OpenModels(plan, reporter) as models:
        threads = [BenchThread(plan, entry, index, models) for index, entry in enumerate(plan.config.threads)]
        for thread in threads:
            thread.prepare()
        reporter.opened()
        packages = f" with op package {', '.join(models.packages)}" if models.packages else ""
        reporter.step(f"execute graphs in threads{packages}")
        began = clock()
        for thread in threads:
            thread.begin(began)
        before = resources()
        outcomes: dict[str, Outcome] = {}
        iterations = 1
        if plan.scenario is not None:
            outcomes = _run_scenario(plan.scenario, threads, crew, stop)
        else:
            iterations = _iterate(plan.config.iteration, threads, crew, stop)
        seconds = clock() - began
        after = resources()
        names = {thread.entry.backend for thread in threads}
        return ThroughputRun(
            [thread.result() for thread in threads],
            {name: describe_backend(models.backend(name)) for name in sorted(names)},
            iterations, seconds, stop.is_set(), before, after, outcomes,
            _write_logs(plan, models, threads),
        )  # fmt: skip


def resources() -> Resources:
    """What this process holds."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return Resources(pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")))


def _iterate(wanted: int, threads: Sequence[BenchThread], crew: Crew, stop: threading.Event) -> int:
    done = 0
    while (wanted < 0 or done < wanted) and not stop.is_set():
        for thread in threads:
            thread.prepare()
        crew.work([_iteration(thread, stop) for thread in threads])
        done += 1
    return done


def _iteration(thread: BenchThread, stop: threading.Event) -> Callable[[], None]:
    return lambda: thread.run(stop)


def _run_scenario(
    scenario: Scenario, threads: Sequence[BenchThread], crew: Crew, stop: threading.Event
) -> dict[str, Outcome]:
    """The threads of a model serve its queries together; models are under load at the same time."""
    by_model: dict[str, list[BenchThread]] = {}
    for thread in threads:
        by_model.setdefault(thread.entry.model, []).append(thread)
    loads = {model: _Load(scenario, stop) for model in by_model}
    crew.work([
        _serving(loads[model], thread) for model, serving in by_model.items() for thread in serving
    ])  # fmt: skip
    return {model: load.outcome() for model, load in loads.items()}


def _serving(load: _Load, thread: BenchThread) -> Callable[[], None]:
    return lambda: load.serve(thread)


class _Load:
    """The queries of one model: each thread that serves takes the next one when it is free."""

    def __init__(self, scenario: Scenario, stop: threading.Event) -> None:
        self._scenario, self._stop = scenario, stop
        self._lock = threading.Lock()
        self._arrivals = arrivals(scenario) if scenario.kind == SERVER else None
        self._taken = 0
        self._began = clock()
        self._last = self._began
        self._latencies: list[float] = []

    def serve(self, thread: BenchThread) -> None:
        start, slept = clock(), 0.0
        sets = thread.units[0][1].sets
        while not self._stop.is_set():
            due = self._next()
            if due is None:
                break
            early = due - clock()
            if early > 0:
                slept += early
                time.sleep(early)
            began = due if self._arrivals is not None else clock()
            done = began
            for number in range(self._scenario.samples):
                done = thread.execute(0, (self._taken + number) % sets, due if self._arrivals else None)
            with self._lock:
                self._latencies.append(done - began)
                self._last = max(self._last, done)
        seconds = clock() - start
        thread.spend(seconds, seconds - slept)

    def _next(self) -> float | None:
        """When the next query is due; None where there are enough."""
        with self._lock:
            scenario = self._scenario
            if self._arrivals is not None:
                due = next(self._arrivals)
                if due >= scenario.duration and self._taken >= (scenario.queries or 0):
                    return None
            elif scenario.kind == OFFLINE:
                if self._taken >= (scenario.queries or OFFLINE_SAMPLES):
                    return None
                due = 0.0
            else:
                due = clock() - self._began
                if due >= scenario.duration and self._taken >= (scenario.queries or 0):
                    return None
            self._taken += 1
            return self._began + due

    def outcome(self) -> Outcome:
        return judge(self._scenario, np.array(self._latencies), self._last - self._began)


def _write_logs(plan: ThroughputPlan, models: OpenModels, threads: Sequence[BenchThread]) -> list[str]:
    """A profiling log for each backend that measured something."""
    written: list[str] = []
    for name, backend in plan.backends.items():
        if backend.profiling.level is None or not plan.log:
            continue
        opened = models.backend(name)
        measured: list[Measured] = [*models.meter(name).found]
        for thread in threads:
            if thread.entry.backend == name:
                measured += thread.meter.found
        path = Path(plan.log) / f"qnn-profiling-data_{name}.log"
        author = Author("qnn-throughput-net-run", "", opened.api.build_id)
        with ProfileLog(system_beside(opened.api.library.path), path, author) as log:
            for each in measured:
                log.add(each)
        written.append(path.name)
    return written
