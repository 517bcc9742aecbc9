"""Calibration: one pass over the samples tells all that is wanted of a graph's values.

Several samples run at once, each in a thread of its own, which pays for the observing. What a thread finds is
small and is added up in the order of the samples: the result does not depend on the number of threads.
"""

from __future__ import annotations

import difflib
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import repeat
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np

from openqnn.errors import InputError, OpenQnnWarning, UsageError
from openqnn.ir import Array, Graph, Value
from openqnn.quant.observe.observers import Observer, Seen, Statistics, Watch
from openqnn.quant.observe.tallies import Tallies, bins_room
from openqnn.quant.observe.together import ObservedTogether
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.taps import Runner, TappedGraph
from openqnn.worker.c_function import usable_processors

Progress = Callable[[int, int | None], None]  # samples done, and of how many where that is known
SHOWN = 4 << 20  # bytes of values that a thread may hold for looking at; few stay in the processor's caches
TOGETHER = 180 << 20  # bytes that all threads may take beyond what plain inference takes
USUAL = 32  # samples, where nobody says how many there are
SMALL, MOST_TOGETHER = 1 << 20, 4  # bytes of samples, and how many, that a thread takes at a time
MOST_NAMED = 5


class _Stopped(Exception):
    """The caller has given up."""


def calibrate(
    graph: Graph,
    samples: Iterable[Mapping[str, Any]],
    wanted: Mapping[str, Watch],
    *,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Statistics]:
    """Runs the samples and tells of each wanted value what was seen.

    Samples hold arrays by input name, as a session takes them; those whose first dimension is a multiple of
    the graph's are taken apart. `threads` is how many cores to use, all by default. Raises InputError when
    there is no sample at all or one does not fit.
    """
    if threads < 0:
        raise UsageError(f"threads is {threads}, and must be a number of cores, or 0 for all of them")
    values = _values(graph, wanted)
    computed = [v for v in values if not v.is_constant]
    found = {v.name: _of_constant(v, wanted[v.name]) for v in values if v.is_constant}
    total = len(samples) if isinstance(samples, Sized) else None
    with _Calibration(graph, computed, wanted, threads, total) as run:
        done = run.over(samples, lambda count: progress(count, total) if progress else None)
        if not done:
            raise InputError("there are no samples to calibrate with", hint="give at least one input set")
        found |= run.statistics()
    _warn_of_nans(found, [v.name for v in graph.inputs])
    return {name: found[name] for name in wanted}


def cores() -> int:
    """How many processor cores this process may use."""
    return usable_processors()


class _Calibration:
    """Threads with their buffers, and the observers that they fill."""

    def __init__(
        self, graph: Graph, values: list[Value], wanted: Mapping[str, Watch], threads: int, total: int | None
    ) -> None:
        self._graph = graph
        use, runs = threads or cores(), total or USUAL
        self._workers = _workers(graph, use)
        loose = [name for name, watch in wanted.items() if Watch.CHANNELS not in watch]
        self._tapped = TappedGraph(
            graph, values, threads=use // self._workers, limit=SHOWN, loose=loose, runs=runs
        )
        types = self._tapped.lowered.types
        counted = any(Watch.HISTOGRAM in wanted[value.name] for value in values)
        rooms = bins_room(len(values)) if counted else repeat(None)
        self._observers = {
            name: Observer(wanted[name], types[tap.name][1], _channel_axis(tap.perm), room, runs)
            for room, (name, tap) in zip(rooms, self._tapped.taps.items(), strict=False)
        }
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._tallies = Tallies(self._observers)
        self._all = [_Worker(self._tapped, self._observers, self._tallies) for _ in range(self._workers)]
        for worker in self._all:
            self._free.put(worker)
        self._pool = ThreadPoolExecutor(self._workers, "calibrate")
        self._stop = Event()
        given = sum(v.nbytes for v in graph.inputs)
        self._group = max(1, min(MOST_TOGETHER, SMALL // max(given, 1), (total or 0) // (4 * self._workers)))

    def __enter__(self) -> _Calibration:
        return self

    def __exit__(self, *_: object) -> None:
        """However it ends, no thread goes on: each finishes at most the stretch that it is in."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def over(self, samples: Iterable[Mapping[str, Any]], progress: Callable[[int], None]) -> int:
        """Runs them all; returns how many there were."""
        waiting: deque[tuple[Future[list[dict[str, Seen]]], int]] = deque()
        group: list[Mapping[str, Array]] = []
        turn = count = 0
        for count, sample in enumerate(samples, 1):
            for part in batches(self._graph, sample):
                group.append(accepted(self._graph, part))
                if len(group) < self._group:
                    continue
                waiting.append((self._pool.submit(self._some, turn, group), count))
                turn, group = turn + len(group), []
                if len(waiting) > self._workers:
                    self._take(waiting, progress)
        if group:
            waiting.append((self._pool.submit(self._some, turn, group), count))
        while waiting:
            self._take(waiting, progress)
        return count

    def _take(
        self, waiting: deque[tuple[Future[list[dict[str, Seen]]], int]], progress: Callable[[int], None]
    ) -> None:
        future, count = waiting.popleft()
        for found in future.result():
            for name, seen in found.items():
                self._observers[name].add(seen)
        if not waiting or waiting[0][1] != count:
            progress(count)

    def _some(self, turn: int, group: Sequence[Mapping[str, Array]]) -> list[dict[str, Seen]]:
        """An inference after the other, in a thread."""
        worker = self._free.get()
        try:
            return [worker.run(turn + i, arrays, self._stop) for i, arrays in enumerate(group)]
        finally:
            self._free.put(worker)

    def statistics(self) -> dict[str, Statistics]:
        self._tallies.count()
        for worker in self._all:
            worker.hand_over()
        return {name: observer.statistics() for name, observer in self._observers.items()}


class _Worker:
    """What a thread runs samples with, and what it has seen of them."""

    def __init__(self, tapped: TappedGraph, observers: Mapping[str, Observer], tallies: Tallies) -> None:
        self._runner = Runner(tapped)
        self._panels = [
            ObservedTogether(self._runner.buffer, arrays, observers, tallies) for arrays in self._runner.shown
        ]

    def run(self, turn: int, arrays: Mapping[str, Array], stop: Event) -> dict[str, Seen]:
        """One inference. Returns what has to be added in the order of the samples."""
        seen: dict[str, Seen] = {}

        def look(place: int) -> None:
            if stop.is_set():
                raise _Stopped
            seen.update(self._panels[place].look(turn))

        with np.errstate(all="ignore"):
            self._runner.run(arrays, look)
        return seen

    def hand_over(self) -> None:
        for panel in self._panels:
            panel.hand_over()


def batches(graph: Graph, sample: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of a sample that holds several batches; one that fits, or not at all, is one part."""
    counts: set[int] = set()
    for name, given in sample.items():
        port, shape = graph.ports.get(name), np.shape(given)
        if port is None or not port.shape or len(shape) != len(port.shape) or shape[1:] != port.shape[1:]:
            counts.add(1)
        else:
            counts.add(shape[0] // port.shape[0] if shape[0] % port.shape[0] == 0 else 1)
    count = counts.pop() if len(counts) == 1 else 1
    if count <= 1:
        yield sample
        return
    arrays = {name: np.asarray(given) for name, given in sample.items()}
    for i in range(count):
        yield {n: a[i * (s := len(a) // count) : (i + 1) * s] for n, a in arrays.items()}


def _values(graph: Graph, wanted: Mapping[str, Watch]) -> list[Value]:
    known = {v.name: v for v in graph.values()}
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UsageError(f"the graph has no tensor '{name}' to observe", hint=hint)
        if known[name].dtype.is_fixed:
            raise UsageError(f"'{name}' is in fixed point already: calibrate the graph in floating point")
    return [known[name] for name in wanted]


def _of_constant(value: Value, watch: Watch) -> Statistics:
    assert value.data is not None
    observer = Observer(watch, value.shape)
    observer.add(observer.look(np.ascontiguousarray(value.data), 0))
    return observer.statistics()


def _workers(graph: Graph, use: int) -> int:
    """How many samples may run at once: each takes the memory of an inference and of what is looked at."""
    inference = _peak(graph)
    return max(1, min(use, (TOGETHER + inference) // (inference + 2 * SHOWN)))


def _peak(graph: Graph) -> int:
    """The most bytes of computed values that live at the same time."""
    left = {v: len(v.users) for v in graph.values()}
    live = peak = sum(v.nbytes for v in graph.inputs)
    for node in graph.nodes:
        live += sum(v.nbytes for v in node.outputs)
        peak = max(peak, live)
        for value in node.inputs:
            if value is not None and not value.is_constant:
                left[value] -= 1
                live -= 0 if left[value] else value.nbytes
    return peak


def _channel_axis(perm: tuple[int, ...]) -> int | None:
    """Where the last axis of a value is stored."""
    return perm.index(len(perm) - 1) if perm else None


def _warn_of_nans(found: Mapping[str, Statistics], inputs: Sequence[str]) -> None:
    bad = {name: seen for name, seen in found.items() if seen.nans}
    if not bad:
        return
    empty = [name for name in inputs if name in bad and not bad[name].count]
    if empty:
        raise InputError(f"input '{empty[0]}' is NaN or infinite in all samples: nothing has a range")
    said = [f"'{n}' ({s.nans:,} of {s.nans + s.count:,})" for n, s in list(bad.items())[:MOST_NAMED]]
    more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    warnings.warn(
        f"NaN or infinite numbers in {', '.join(said)}{more}: they are left out of the ranges",
        OpenQnnWarning,
        stacklevel=3,
    )
