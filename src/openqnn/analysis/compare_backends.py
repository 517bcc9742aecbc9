"""Where two backends part: the same graph on both, on the same samples, held against each other tensor by
tensor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.analysis.compared_run import ComparedRun, FolderRun, GraphRun, Numbers, OtherRun
from openqnn.analysis.half_precision import half_problems
from openqnn.api.files import open_graph
from openqnn.api.source_runner import source_kind, source_runner
from openqnn.errors import BackendError, InputError, LibraryError, UsageError
from openqnn.ir import Array, Graph, Node, Value
from openqnn.quant.samples import is_whole, samples_of
from openqnn.quant.verdict import shown
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.metrics import cosine, cosine_of_sums, decibels
from openqnn.runtime.runner import Runner
from openqnn.targets.registry import BUILT_IN, HTP, target_of_backend
from openqnn.vendor.executables import GraphExecutable

Samples = Sequence[Mapping[str, Array]]
GRAPH_FILES = (".oqnn", ".dlc")
LIMIT = 40.0  # dB between two backends, below which they are said to part
SHARE = 6.0  # dB below what a node reads, from where on the loss is said to be its own
TOGETHER = 192  # tensors that a library shows in one run; where it refuses so many, fewer


def _row(array: Array) -> Array:
    """The numbers in a row, in a type that their squares can be added up in: large integers need doubles."""
    row = array.reshape(-1)
    return row if row.dtype == np.float32 else row.astype(np.float64)


def _products(x: Array, y: Array) -> tuple[float, float, float]:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.dot(x, x)), float(np.dot(y, y)), float(np.dot(x, y))


@dataclass(slots=True)
class Gap:
    """Sums over samples of what one backend has for a tensor, and of how far the other is from it."""

    signal: float = 0.0
    noise: float = 0.0
    product: float = 0.0
    power: float = 0.0
    largest: float = 0.0
    reach: float = 0.0

    def add(self, one: Array, other: Array) -> None:
        """One sample. What is not finite in the first (a mask) is left out; only in the other, it is lost."""
        x, y = (_row(a) for a in (one, other))
        signal, power, product = _products(x, y)
        if not isfinite(signal + power):
            good = np.isfinite(x)
            x, y = (a.astype(np.float64)[good] for a in (x, y))
            signal, power, product = _products(x, y)
        if not x.size:
            return
        self.reach = max(self.reach, float(x.max()), -float(x.min()))
        if not isfinite(power):
            self.noise = self.largest = inf
            return
        error = x - y
        self.signal += signal
        self.power += power
        self.product += product
        self.noise += float(np.dot(error, error))
        self.largest = max(self.largest, float(error.max()), -float(error.min()))

    @property
    def sqnr(self) -> float:
        """The energy of the first over that of the difference, in dB."""
        return decibels(self.signal, self.noise) if isfinite(self.noise) else -inf

    @property
    def cosine(self) -> float:
        return cosine_of_sums(self.product, self.signal, self.power)


@dataclass(frozen=True, slots=True)
class TensorGap:
    """A tensor on both backends: how far apart, and how far apart the worst is that its node reads.

    `parts` says that the node itself loses it. `half` says what half precision cannot hold of it.
    """

    name: str
    op: str
    node: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    sqnr: float
    before: float
    cosine: float
    largest: float
    reach: float
    parts: bool
    half: str = ""


@dataclass(frozen=True, slots=True)
class OutputGap:
    """An output of the graph on both backends, where no tensor inside is looked at."""

    name: str
    sqnr: float
    cosine: float
    largest: float


@dataclass(frozen=True, slots=True)
class BackendGaps:
    """Tensors in the order of computation. `tapping` is how far the second backend's outputs are from
    themselves, in dB, when tensors inside are looked at; `hidden` are tensors that only one can show."""

    graph: str
    first: str
    second: str
    samples: int
    limit: float
    outputs: tuple[OutputGap, ...]
    tensors: tuple[TensorGap, ...]
    hidden: tuple[str, ...]
    tapping: float

    @property
    def parting(self) -> tuple[TensorGap, ...]:
        """The tensors whose own nodes lose them, in the order of computation."""
        return tuple(t for t in self.tensors if t.parts)

    @property
    def agree(self) -> bool:
        return all(each.sqnr >= self.limit for each in self.outputs)

    def __str__(self) -> str:
        outputs = ", ".join(f"{o.name} {shown(o.sqnr)}" for o in self.outputs)
        said = f"{self.second} against {self.first} on {self.samples} samples: {outputs}"
        return said + (f"; they part first at '{self.parting[0].name}'" if self.parting else "")


def compare(
    model: Graph | str | os.PathLike[str],
    data: Any,
    backend: str = HTP,
    *,
    reference: str = BUILT_IN,
    samples: int = 4,
    soc: str | int | None = None,
    timeout: float = 600.0,
    limit: float = LIMIT,
) -> BackendGaps:
    """Where two backends part, tensor by tensor, on the first samples of `data`, which is anything that
    `quantize` takes. Below `limit` dB a tensor counts as apart."""
    if backend == reference:
        raise UsageError(f"{backend} would be held against itself", hint="backend='htp'")
    graph = model if isinstance(model, Graph) else open_graph(model)
    chosen = list(islice(filter(is_whole, samples_of(graph, data)), samples))
    return compare_backends(graph, chosen, backend, reference, soc=soc, timeout=timeout, limit=limit)


def compare_backends(
    graph: Graph,
    samples: Samples,
    second: str = HTP,
    first: str = BUILT_IN,
    *,
    soc: str | int | None = None,
    timeout: float = 600.0,
    limit: float = LIMIT,
) -> BackendGaps:
    """Runs a graph on two backends and tells tensor by tensor where they part.

    Each is named as for a Session; or it is a model's file, which runs in its own framework, another graph's,
    or a folder of raw files.

    Tensors count as apart below `limit` dB. What a backend joins in one kernel may change when it is looked
    at: that is measured, too.
    """
    if not samples:
        raise InputError("there are no samples without NaN to compare on", hint="give at least one")
    runs: list[ComparedRun] = []
    try:
        runs += [_opened(graph, name, samples, soc, timeout) for name in (first, second)]
        both = _Both(graph, runs)
        both.compare()
    finally:
        for run in runs:
            run.close()
    return BackendGaps(
        graph.name, first, second, len(samples), limit,
        tuple(OutputGap(n, g.sqnr, g.cosine, g.largest) for n, g in both.plain.items()),
        tuple(_tensors(graph, both.inner, limit, _half(graph, samples, second))),
        tuple(n for n in both.computed if n not in both.inner),
        min((g.sqnr for g in both.tapped.values()), default=inf),
    )  # fmt: skip


def _opened(graph: Graph, name: str, samples: Samples, soc: str | int | None, timeout: float) -> ComparedRun:
    """A backend by its name, a folder of raw files, a graph in a file, or a model in its own framework."""
    path = Path(name)
    if path.suffix in GRAPH_FILES and path.is_file():
        other = open_graph(path)
        return OtherRun(graph, CpuExecutable(other), samples, other)
    if source_kind(path):
        return OtherRun(graph, source_runner(path), samples)
    if path.is_dir():
        return FolderRun(graph, name, len(samples))
    fuses = not target_of_backend(name).is_built_in
    return GraphRun(graph, _runner(graph, name, soc, timeout), samples, fuses=fuses)


def _runner(graph: Graph, backend: str, soc: str | int | None, timeout: float) -> Runner:
    target = target_of_backend(backend)
    if target.is_built_in:  # compiled once, with all that will be looked at
        inner = [v for node in graph.nodes for v in node.outputs if not graph.is_output(v)]
        return CpuExecutable(graph, extra=inner, many=True)
    return GraphExecutable(graph, backend, soc if target.compiles else None, timeout)


class _Both:
    """A graph in two runs, and the gaps between them as they are found."""

    def __init__(self, graph: Graph, runs: Sequence[ComparedRun]) -> None:
        self.first, self.second = runs
        self.computed = [v.name for n in graph.nodes for v in n.outputs]
        shown = self.first.names & self.second.names
        self.own = [v.name for v in graph.outputs if v.name in shown]
        if not self.own:
            raise InputError(
                f"no output of graph '{graph.name}' is in both runs",
                hint=f"outputs: {', '.join(v.name for v in graph.outputs)}; is it the same model?",
            )
        self.shown = [n for n in self.computed if n in shown]
        self.plain, self.tapped = ({name: Gap() for name in self.own} for _ in range(2))
        self.inner: dict[str, Gap] = {}
        self.alone: list[Numbers] = []

    def compare(self) -> None:
        """The outputs with nothing looked at, and all tensors that both can show: together, where looking
        changes nothing."""
        if not (self.first.fuses or self.second.fuses):
            self._look_at(list(dict.fromkeys([*self.own, *self.shown])))
            self.plain = {name: self.inner[name] for name in self.own}
            self.inner = {name: self.inner[name] for name in self.shown}
            return
        for one, other in zip(self.first.run(self.own), self.second.run(self.own), strict=True):
            self._add(self.plain, one, other)
            self.alone.append(other)
        waiting = list(_together(self.shown, self.own))
        while waiting:
            names = waiting.pop(0)
            try:
                self._look_at(names)
            except (BackendError, LibraryError):
                half = len(names) // 2
                waiting += [names[:half], names[half:]] if half else []

    def _look_at(self, names: Sequence[str]) -> None:
        found = {name: Gap() for name in names}
        wanted = list(dict.fromkeys([*self.own, *names]))
        both = zip(self.first.run(names), self.second.run(wanted), strict=True)
        for index, (one, other) in enumerate(both):
            self._add(found, one, other)
            if self.alone:
                self._add(self.tapped, self.alone[index], other)
        self.inner |= found

    def _add(self, gaps: Mapping[str, Gap], one: Numbers, other: Numbers) -> None:
        for name, gap in gaps.items():
            gap.add(*_in_one_order(one[name], other[name]))


def _in_one_order(ones: Sequence[Array], others: Sequence[Array]) -> tuple[Array, Array]:
    """The two in the order of axes that fits best, where a shape does not tell it."""
    pairs = [(one, other) for one in ones for other in others]
    return pairs[0] if len(pairs) == 1 else max(pairs, key=lambda pair: cosine(*pair))


def _together(names: Sequence[str], own: Sequence[str]) -> Iterator[list[str]]:
    """The tensors that are looked at in one run."""
    each = max(TOGETHER - len(own), 1)
    for start in range(0, len(names), each):
        yield list(names[start : start + each])


def _half(graph: Graph, samples: Samples, backend: str) -> dict[str, str]:
    """By tensor what half precision, in which HTP computes floats, cannot hold of it."""
    in_floats = any(v.dtype.is_float for n in graph.nodes for v in n.outputs)
    if not in_floats or not target_of_backend(backend).half_precision:
        return {}
    return {each.tensor: str(each) for each in half_problems(graph, samples)}


def _tensors(
    graph: Graph, gaps: Mapping[str, Gap], limit: float, half: Mapping[str, str]
) -> Iterator[TensorGap]:
    """The tensors in order. A node parts where all that it reads is well, or its result is far worse."""
    known: dict[str, float] = {}
    for node in graph.nodes:
        before = min((known.get(v.name, inf) for v in node.inputs if v is not None), default=inf)
        for value in node.outputs:
            gap = gaps.get(value.name)
            known[value.name] = before if gap is None else gap.sqnr
            if gap is not None:
                yield _tensor(node, value, gap, before, limit, half.get(value.name, ""))


def _tensor(node: Node, value: Value, gap: Gap, before: float, limit: float, half: str) -> TensorGap:
    parts = gap.sqnr < limit and gap.sqnr < before - SHARE
    return TensorGap(
        value.name, node.op, node.name, str(node.source or ""), value.dtype.label, value.shape, gap.sqnr,
        before, gap.cosine, gap.largest, gap.reach, parts, half,
    )  # fmt: skip
