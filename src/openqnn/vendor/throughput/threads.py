"""The threads of a throughput run: each executes its model over and over, and notes down what it took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from openqnn.errors import BackendError, OpenQnnError
from openqnn.formats.throughput_config import ThreadEntry
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.binding import Binding
from openqnn.qnn.profile_log import Method
from openqnn.vendor.model import Meter
from openqnn.vendor.throughput.feeder import Feeder
from openqnn.vendor.throughput.keeper import Keeper, OutputDistance
from openqnn.vendor.throughput.latencies import Course, Latencies, Spread
from openqnn.vendor.throughput.open_models import OpenGraph, OpenModels
from openqnn.vendor.throughput.plan import ThroughputPlan

PROFILED = 200  # executions of a thread that a profiling log has: they stay in memory until it is written
clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class ThreadResult:
    """What a thread did. `busy` seconds have no pauses in them, and `overhead` is what of them was spent
    neither waiting for a lock, nor on inputs, nor in graphExecute, nor on outputs."""

    thread: str
    backend: str
    context: str
    model: str
    spreads: dict[str, Spread]
    course: Course
    seconds: float
    busy: float
    keeping: float
    inits: int
    init_seconds: float
    distances: list[OutputDistance]

    @property
    def count(self) -> int:
        return self.spreads["latency"].count

    @property
    def overhead(self) -> float:
        return max(0.0, self.busy - self.spreads["latency"].total - self.keeping)


class BenchThread:
    """One thread of the configuration. `prepare` gets its model ready, `run` is one iteration."""

    def __init__(self, plan: ThroughputPlan, entry: ThreadEntry, index: int, models: OpenModels) -> None:
        self.entry, self._plan, self._index, self._models = entry, plan, index, models
        self._model = plan.config.models[entry.model]
        self.units: list[tuple[OpenGraph, Feeder, Keeper]] = []
        self.meter = Meter(plan.backends[entry.backend].profiling)
        self._seconds = self._busy = self._keeping = self._init_seconds = 0.0
        self._inits = 0
        self._latencies: Latencies | None = None

    def prepare(self) -> None:
        """Get the model ready; again, where the thread asks for it in every iteration."""
        if self.units and not self.entry.init_in_loop:
            return
        began = clock()
        if self.entry.init_in_loop:
            self.units = []
            self._models.free(self.entry.context)
        opened = self._models.graphs(self.entry.backend, self.entry.context, self.entry.model)
        self.units = [self._unit(number, each) for number, each in enumerate(opened)]
        self._init_seconds += clock() - began
        self._inits += 1
        if self.entry.asynchronous:
            self._check_asynchronous()

    def begin(self, at: float) -> None:
        """The time from which the course of latencies counts."""
        if self._latencies is None:
            self._latencies = Latencies(at)

    def run(self, stop: threading.Event) -> None:
        """One iteration: loops over all sets of inputs, by count or by time."""
        start = clock()
        deadline = start + self.entry.loop if self.entry.by_time else float("inf")
        loops = None if self.entry.by_time else self.entry.loop
        pause = self.entry.interval / 1e6
        slept, done = 0.0, 0
        while (loops is None or done < loops) and not stop.is_set() and clock() < deadline:
            for number, turn in self._turns():
                self.execute(number, turn)
                if pause:
                    before = clock()
                    time.sleep(pause)
                    slept += clock() - before
                if stop.is_set() or clock() >= deadline:
                    break
            done += 1
        seconds = clock() - start
        self._seconds += seconds
        self._busy += seconds - slept

    def execute(self, number: int, turn: int, due: float | None = None) -> float:
        """One inference, which was due some time ago or is due now; gives when it was done."""
        opened, feeder, keeper = self.units[number]
        began = clock()
        binding = feeder.binding(turn)
        filled = clock()
        with opened.lock:
            entered = clock()
            self._call(binding, opened)
            done = clock()
        assert self._latencies is not None
        waited = 0.0 if due is None else began - due
        self._latencies.add(done, waited + entered - filled, filled - began, done - entered)
        if not keeper.idle:
            keeper.take(turn, binding.outputs)
            self._keeping += clock() - done
        return done

    def spend(self, seconds: float, busy: float) -> None:
        """Time that somebody else's loop over `execute` took."""
        self._seconds += seconds
        self._busy += busy

    def result(self) -> ThreadResult:
        assert self._latencies is not None
        entry = self.entry
        distances = [each for _, _, keeper in self.units for each in keeper.finish()]
        spreads = {part: self._latencies.spread(part) for part in ("latency", "queue", "copy", "execute")}
        return ThreadResult(
            entry.name, entry.backend, entry.context, entry.model, spreads, self._latencies.course(),
            self._seconds, self._busy, self._keeping, self._inits, self._init_seconds, distances,
        )  # fmt: skip

    def _turns(self) -> Iterator[tuple[int, int]]:
        for number, (_, feeder, _) in enumerate(self.units):
            for turn in range(feeder.sets):
                yield number, turn

    def _unit(self, number: int, opened: OpenGraph) -> tuple[OpenGraph, Feeder, Keeper]:
        plan, graph = self._plan.models[self.entry.model], opened.graph
        given = plan.inputs[number] if number < len(plan.inputs) else None
        golden = plan.golden[number] if number < len(plan.golden) else None
        if given is None and not self.entry.random:
            raise BackendError(
                f"model '{self.entry.model}': no input list for graph '{graph.name}'",
                hint="inputPath has a list for each graph, separated by commas",
            )
        feeder = Feeder(graph, given, self._model, self.entry, self._index)
        folder = f"{plan.folder}/{self.entry.name}" if plan.folder else ""
        if folder and len(plan.inputs) > 1:
            folder = f"{folder}/{graph.name}"
        return opened, feeder, Keeper(graph, self._model, golden, folder, feeder.sets)

    def _call(self, binding: Binding, opened: OpenGraph) -> Any:
        if self.entry.asynchronous:
            return binding.start().wait()
        if not self.meter.active or len(self.meter.found) >= PROFILED:
            return binding.run()
        backend = self._models.backend(self.entry.backend)
        return self.meter.call(backend, Method.EXECUTE, opened.graph.name, binding.run)

    def _check_asynchronous(self) -> None:
        backend = self._models.backend(self.entry.backend)
        where = f"{self._plan.config.file}: testCase.threads[{self._index}].executeAsynchronous"
        if backend.api.backend_id == abi.BACKEND_CPU:
            raise BackendError(
                f"{where}: {backend.api.library.name} takes asynchronous executions and never runs them",
                hint="leave it out: a thread for each inference that is to be under way does the same",
            )
        opened, feeder, _ = self.units[0]
        try:
            with opened.lock:
                feeder.binding(0).start().wait(60)
        except BackendError as error:
            raise BackendError(
                f"{where}: {error.message}",
                hint="the library does not execute asynchronously on this machine: leave it out",
            ) from error


class Crew:
    """Threads that work at the same time. What one of them fails with ends all, and is raised here."""

    def __init__(self, stop: threading.Event, watch: Callable[[], bool]) -> None:
        self._stop, self._watch = stop, watch
        self._failed: list[BaseException] = []

    def work(self, tasks: list[Callable[[], None]]) -> None:
        """Run every task in a thread of its own, until all are done."""
        threads = [threading.Thread(target=self._guarded, args=(task,), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.05)
                if self._watch():
                    self._stop.set()
        if self._failed:
            raise self._failed[0]

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except (OpenQnnError, OSError, MemoryError) as error:
            self._failed.append(error)
            self._stop.set()


def describe_backend(backend: Backend) -> dict[str, Any]:
    """Who did the work."""
    api = backend.api
    found: dict[str, Any] = {
        "library": api.library.name,
        "path": str(api.library.path),
        "build": api.build_id,
    }
    if backend.soc is not None:
        found["soc"] = str(backend.soc)
    return found
