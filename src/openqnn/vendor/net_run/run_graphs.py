"""Inferences from files to files: the loop behind qnn-net-run, in the process that holds the library."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from openqnn.errors import UsageError
from openqnn.formats import execution_metadata
from openqnn.formats.input_list import InputList
from openqnn.formats.profiling_window import Window
from openqnn.qnn import abi
from openqnn.qnn.async_queue import ExecutionQueue
from openqnn.qnn.binding import Binding
from openqnn.qnn.graph import Graph
from openqnn.qnn.net import Array
from openqnn.qnn.profile_log import Author, Measured, Method, ProfileLog
from openqnn.vendor.model import VendorModel, multiplied, now, system_beside
from openqnn.vendor.net_run.feed import Feed, Ports, is_native
from openqnn.vendor.net_run.lists_by_shape import lists_by_shape
from openqnn.vendor.net_run.results import Results
from openqnn.worker.serve import Reporter

DEFAULT_DEPTH = 10
PROFILE_LOG, PROFILE_LINK = "qnn-profiling-data_0.log", "qnn-profiling-data.log"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How the inferences go. One list per graph, None for a graph that is left out."""

    lists: tuple[InputList | None, ...]
    native_inputs: bool = False
    native_names: tuple[str, ...] = ()
    native_outputs: bool = False
    both_outputs: bool = False  # real numbers, and beside them the types of the graph
    inferences: int | None = None
    duration: float | None = None
    keep: int | None = None
    batch_multiplier: int = 1
    synchronous: bool = False
    depth: int | None = None
    cache_sets: int | None = None
    cache_bytes: int | None = None
    window: Window = field(default_factory=Window)
    """Which executions are profiled; `windows` say it by graph, where this one does not."""
    windows: Mapping[str, Window] = field(default_factory=dict[str, Window])


@dataclass(frozen=True, slots=True)
class GraphRun:
    """What happened to one graph."""

    name: str
    inferences: int
    results: int
    execute_seconds: float
    total_seconds: float
    asynchronous: bool


def run_graphs(model: VendorModel, settings: RunSettings, folder: Path, reporter: Reporter) -> list[GraphRun]:
    """Run every graph that has a list, with the results in `folder`."""
    graphs = list(model.graphs.values())
    settings = replace(settings, lists=lists_by_shape(graphs, settings, reporter))
    check_lists(graphs, settings)
    runs: list[GraphRun] = []
    entries: list[dict[str, Any]] = []
    for graph, given in zip(graphs, settings.lists, strict=True):
        if given is None:
            continue
        graph = multiplied(model, graph, settings.batch_multiplier)
        target = folder / file_stem(graph.name) if len(graphs) > 1 else folder
        run = _GraphLoop(model, graph, given, settings, target, reporter)
        runs.append(run.all())
        entries.append(run.entry(target.name if len(graphs) > 1 else ""))
    if model.meter.active:
        write_profile(model, folder, "qnn-net-run")
    api = model.backend.api
    text = execution_metadata.dump("qnn-net-run", api.library.name, api.build_id, entries)
    (folder / execution_metadata.FILE).write_text(text, encoding="utf-8")
    return runs


def run_entry(
    graph: Ports, settings: RunSettings, results: Results, inferences: int, folder: str
) -> dict[str, Any]:
    """What execution_metadata.yaml says of a graph that ran."""
    native = settings.native_outputs
    inputs = [
        execution_metadata.tensor_entry(
            t.name, abi.dtype_name(t.dtype), t.dims, _file_type(t.dtype, is_native(settings, t))
        )
        for t in graph.inputs
    ]
    outputs = [
        execution_metadata.tensor_entry(
            t.name, abi.dtype_name(t.dtype), t.dims, _file_type(t.dtype, native), results.files[t.name]
        )
        for t in graph.outputs
    ]
    return execution_metadata.graph_entry(graph.name, folder, inferences, results.count, inputs, outputs)


def check_lists(graphs: Sequence[Ports], settings: RunSettings) -> None:
    """There is a list for each graph, and what is said of inputs is said of those that are there."""
    if len(settings.lists) != len(graphs):
        names = ", ".join(graph.name for graph in graphs)
        raise UsageError(
            f"{len(settings.lists)} input list(s) for {len(graphs)} graph(s): {names}",
            hint="separate the lists by commas, in this order; __ leaves a graph out. One list alone goes to"
            " the graphs line by line, by the sizes of its files",
        )
    known = {tensor.name for graph in graphs for tensor in graph.inputs}
    for name in settings.native_names:
        if name not in known:
            raise UsageError(f"no graph has an input '{name}'", hint=f"inputs: {', '.join(sorted(known))}")


def file_stem(name: str) -> str:
    """A name as a file name may be: the names of tensors from other tools have slashes and colons."""
    return "".join(c if c.isalnum() or c in "_.@+-" else "_" for c in name) or "_"


def write_profile(model: VendorModel, folder: Path, tool: str) -> None:
    """The log that Qualcomm's viewers read, and the short name that points to it."""
    author = Author(tool, "", model.backend.api.build_id)
    with ProfileLog(system_beside(model.backend.api.library.path), folder / PROFILE_LOG, author) as log:
        for measured in model.meter.found:
            log.add(measured)
    link = folder / PROFILE_LINK
    link.unlink(missing_ok=True)
    link.symlink_to(PROFILE_LOG)


class _GraphLoop:
    """One graph: lines of the list go in, Result_<n> come out."""

    def __init__(
        self,
        model: VendorModel,
        graph: Graph,
        given: InputList,
        settings: RunSettings,
        folder: Path,
        reporter: Reporter,
    ) -> None:
        self._model, self._graph, self._settings, self._reporter = model, graph, settings, reporter
        self._feed = Feed(graph, given, settings)
        whole = [t.name for t in graph.outputs if self._feed.size > 1 and not self._feed.divides(t)]
        self._results = Results(
            folder, graph, settings.native_outputs, file_stem, whole, both=settings.both_outputs
        )
        for name in whole:
            reporter.tell(
                f"graph '{graph.name}', output '{name}': it is not by elements of the batch, and the results "
                "of all lines of a batch have the whole of it"
            )
        self._done, self._inside, self._asynchronous = 0, 0.0, False

    def all(self) -> GraphRun:
        self._reporter.step(f"read the inputs of {self._graph.subject}")
        start = time.perf_counter()
        began = now()
        if self._may_overlap():
            self._overlapping(self._settings.depth or DEFAULT_DEPTH)
        else:
            self._one_by_one()
        self._results.finish()
        total = time.perf_counter() - start
        if self._model.meter.active:
            self._model.meter.found.append(Measured(Method.EXECUTE_IPS, (), self._graph.name, began, now()))
        return GraphRun(
            self._graph.name, self._done, self._results.count, self._inside, total, self._asynchronous
        )

    def entry(self, folder: str) -> dict[str, Any]:
        """For execution_metadata.yaml."""
        return run_entry(self._graph, self._settings, self._results, self._done, folder)

    def _may_overlap(self) -> bool:
        """Only where it was asked for, and where nothing is measured call by call."""
        if self._settings.depth is None or self._settings.synchronous:
            return False
        if self._model.meter.active:
            self._reporter.tell(
                f"no asynchronous execution: profiling measures graph '{self._graph.name}' call by call"
            )
        return not self._model.meter.active

    def _turns(self) -> Iterator[int]:
        """Numbers of input sets, over and over as far as --num_inferences or --duration ask."""
        sets, settings = len(self._feed.groups), self._settings
        end = time.monotonic() + settings.duration if settings.duration else None
        wanted = settings.inferences or (None if end else sets)
        for turn in count():
            if (wanted is not None and turn >= wanted) or (end is not None and time.monotonic() >= end):
                return
            yield turn % sets

    def _one_by_one(self) -> None:
        binding = self._graph.bind(self._feed.blank())
        self._reporter.step(f"execute {self._graph.subject}")
        execute = self._executor(binding)
        clock = time.perf_counter
        for turn in self._turns():
            self._feed.fill(turn, binding.inputs)
            self._reporter.step(f"execute {self._graph.subject}, inference {self._done}")
            start = clock()
            execute()
            self._inside += clock() - start
            self._keep(turn, binding.outputs)

    def _executor(self, binding: Binding) -> Callable[[], object]:
        """A call of graphExecute: bare, or measured within the window that profiling was asked for."""
        meter, settings = self._model.meter, self._settings
        if not meter.active:
            return binding.run
        window = settings.window.over(settings.windows.get(self._graph.name, Window()))
        began, measured = time.monotonic(), 0

        def execute() -> object:
            nonlocal measured
            late = time.monotonic() - began >= window.delay
            few = window.executions is None or measured < window.executions
            if not (late and few):
                return binding.run()
            measured += 1
            return meter.call(self._model.backend, Method.EXECUTE, self._graph.name, binding.run)

        return execute

    def _overlapping(self, depth: int) -> None:
        """Several inferences under way; their results are written in the order of the list."""
        idle = deque(self._graph.bind(self._feed.blank()) for _ in range(depth))
        waiting: deque[tuple[int, Binding, Future[dict[str, Array]]]] = deque()
        self._reporter.step(f"execute {self._graph.subject} asynchronously")
        with ExecutionQueue(self._model.backend, depth) as queue:
            for turn in self._turns():
                if not idle:
                    idle.append(self._finish(waiting))
                binding = idle.popleft()
                self._feed.fill(turn, binding.inputs)
                self._reporter.step(f"execute {self._graph.subject}, inference {self._done}")
                waiting.append((turn, binding, queue.submit(binding)))
            while waiting:
                self._finish(waiting)
            self._asynchronous = bool(queue.native)
        if not self._asynchronous:
            library = self._model.backend.api.library.name
            self._reporter.tell(
                f"{library} has no asynchronous execution on this machine: a queue of ours of depth {depth} "
                f"ran graph '{self._graph.name}'"
            )

    def _finish(self, waiting: deque[tuple[int, Binding, Future[dict[str, Array]]]]) -> Binding:
        turn, binding, future = waiting.popleft()
        start = time.perf_counter()
        outputs = future.result()
        self._inside += time.perf_counter() - start
        self._keep(turn, outputs)
        return binding

    def _keep(self, turn: int, outputs: dict[str, Array]) -> None:
        self._done += 1
        lines, keep = self._feed.groups[turn], self._settings.keep
        if keep is None or self._results.count < keep:
            room = None if keep is None else keep - self._results.count
            self._results.write(outputs, len(lines), self._feed.size, room)


def _file_type(dtype: int, native: bool) -> str:
    return abi.dtype_name(dtype) if native else "float32"
