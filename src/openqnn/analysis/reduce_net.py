"""The smallest part of a graph on which a library still fails in the same way.

First the shortest failing stretch from the front and from the back, by halving; then its connected pieces;
then everything that can be left out of what remains. Each trial is a child process with a time limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from openqnn.errors import BackendError, ModelError
from openqnn.ir import DType
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array, Net
from openqnn.qnn.net_parts import components, part_of
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor.jobs import run_net
from openqnn.vendor.library_worker import LibraryWorker

Part = frozenset[int]
Progress = Callable[[int, int, int], None]  # trials, nodes left, nodes at first
TRIAL_SECONDS = 60.0
TOTAL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """How a library fails: `kind` is the same for failures of the same sort, `message` is the whole story."""

    kind: str
    message: str
    executes: bool


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is left. `complete` is false where time ran out before everything had been tried."""

    net: Net
    failure: Failure
    nodes_before: int
    trials: int
    complete: bool


def failure_kind(message: str) -> str:
    """The call and its code, or the end of the process and the step before it."""
    crashed = re.search(r"crashed \((.*?)\); last step: (\w+)", message)
    if crashed:
        return f"{crashed[1]} during {crashed[2]}"
    hung = re.search(r"gave no answer in .*?last step: (\w+)", message)
    if hung:
        return f"no answer during {hung[1]}"
    failed = re.search(r"(\w+) failed with (?:(\w+) \((\d+)\)|error (\d+))", message)
    if failed:
        return f"{failed[1]}: {failed[2] or 'error'} ({failed[3] or failed[4]})"
    return message.partition("\n")[0]


def reduce_net(
    net: Net,
    library: str,
    device: DeviceOptions | None = None,
    *,
    seconds: float = TOTAL_SECONDS,
    trial_seconds: float = TRIAL_SECONDS,
    progress: Progress | None = None,
) -> Reduced:
    """Cut the graph down. Raises ModelError when it does not fail at all."""
    with LibraryWorker() as worker:
        trials = _Trials(net, library, device, worker, seconds, trial_seconds, progress)
        failure = trials.first()
        part: Part = frozenset(range(len(net.nodes)))
        try:
            for step in (_shortest, _connected, _leave_out):
                part = step(trials, part)
            complete = True
        except _OutOfTimeError:
            complete = False
        best = trials.best or part
        return Reduced(
            part_of(net, best), trials.failures.get(best, failure), len(net.nodes), trials.count, complete
        )


class _OutOfTimeError(Exception):
    """The time for all trials together is over."""


class _Trials:
    """Runs parts of the graph; remembers what it saw, and the smallest part that failed."""

    def __init__(
        self,
        net: Net,
        library: str,
        device: DeviceOptions | None,
        worker: LibraryWorker,
        seconds: float,
        trial_seconds: float,
        progress: Progress | None,
    ) -> None:
        self.net, self._library, self._device = net, find_library(library), device
        self._worker, self._trial_seconds = worker, trial_seconds
        self._deadline = time.monotonic() + seconds
        self._progress = progress
        self._wanted: Failure | None = None
        self._known: dict[Part, bool] = {}
        self.failures: dict[Part, Failure] = {}
        self.best: Part | None = None
        self.count = 0

    def first(self) -> Failure:
        """How the whole graph fails: in being compiled, else in being run."""
        found = self._run(self.net, executes=False) or self._run(self.net, executes=True)
        if found is None:
            raise ModelError(
                f"{self._library.name} compiles and runs '{self.net.name}': there is nothing to reduce",
                hint="give the --soc that it fails for; --as_is leaves out our own changes for HTP",
            )
        self._wanted = found
        return found

    def fails(self, part: Part) -> bool:
        """Whether this part fails as the whole does."""
        if not part:
            return False
        if part not in self._known:
            self._known[part] = self._try(part)
        return self._known[part]

    def _try(self, part: Part) -> bool:
        if time.monotonic() > self._deadline:
            raise _OutOfTimeError
        assert self._wanted is not None
        found = self._run(part_of(self.net, part), self._wanted.executes)
        same = found is not None and found.kind == self._wanted.kind
        if same and found is not None and (self.best is None or len(part) < len(self.best)):
            self.best, self.failures[part] = part, found
        if self._progress is not None:
            self._progress(self.count, len(self.best or self.net.nodes), len(self.net.nodes))
        return same

    def _run(self, net: Net, executes: bool) -> Failure | None:
        self.count += 1
        inputs = [random_feed(net)] if executes else []
        left = max(1.0, self._deadline - time.monotonic())
        try:
            self._worker.ask(
                run_net, self._library, min(self._trial_seconds, left),
                net=net, inputs=inputs, device=self._device,
            )  # fmt: skip
        except BackendError as error:
            return Failure(failure_kind(error.message), error.message, executes)
        return None


def random_feed(net: Net) -> dict[str, Array]:
    """Arrays for the inputs of any part: normal floats, and zeros for integers, which may be positions."""
    rng = np.random.default_rng(0)
    feed: dict[str, Array] = {}
    for name in net.inputs:
        tensor = net.tensors[name]
        dtype = DType(tensor.dtype)
        if dtype.is_float:
            feed[name] = rng.standard_normal(tensor.dims).astype(dtype.numpy)
        else:
            feed[name] = np.zeros(tensor.dims, dtype.numpy)
    return feed


def _shortest(trials: _Trials, part: Part) -> Part:
    """Nodes are in order of execution: the end of the failing stretch by halving, then its beginning."""
    order = sorted(part)
    end = _halve(len(order), lambda count: trials.fails(frozenset(order[:count])))
    order = order[:end]
    length = _halve(len(order), lambda count: trials.fails(frozenset(order[len(order) - count :])))
    return frozenset(order[len(order) - length :])


def _halve(size: int, fails: Callable[[int], bool]) -> int:
    """The smallest count that fails, if failing grows with the count; `size` itself is known to fail."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle
    return high


def _connected(trials: _Trials, part: Part) -> Part:
    groups = components(trials.net, part)
    if len(groups) == 1:
        return part
    return next((group for group in reversed(groups) if trials.fails(group)), part)


def _leave_out(trials: _Trials, part: Part) -> Part:
    """Leave out ever smaller chunks, until no single node can be missed."""
    size = max(1, len(part) // 2)
    while True:
        smaller = next((rest for rest in _without(part, size) if trials.fails(rest)), None)
        if smaller is not None:
            part = smaller
            size = max(1, min(size, len(part) // 2))
        elif size == 1:
            return part
        else:
            size = max(1, size // 2)


def _without(part: Part, size: int) -> Iterator[Part]:
    order: Sequence[int] = sorted(part)
    for start in range(0, len(order), size):
        yield part - frozenset(order[start : start + size])
