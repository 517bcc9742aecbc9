"""A graph that shows its values while it runs.

Values are read as the compiled graph has them, in whatever axis order that is, in buffers that every run uses
again. A graph with much to show runs in stretches, each a session of its own, so that the buffers stay small
however large the model is.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import onnxruntime as ort
from onnx import helper

from openqnn.errors import BackendError
from openqnn.ir import Array, Graph, Value
from openqnn.ops.layout import Perm
from openqnn.runtime.cpu.executable import FAILURES, OnnxStep, compile_steps, failed, run_numpy
from openqnn.runtime.cpu.huge_pages import large
from openqnn.runtime.cpu.tap_nchwc import is_worthwhile, tapped_nchwc
from openqnn.runtime.cpu.to_onnx import Lowered, Lowering, NumpyStep

ALIGNMENT = 64  # bytes
Look = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Tap:
    """Where a value is found: its ONNX name, and the order of its axes there, unless it is loose."""

    name: str
    perm: Perm


class TappedGraph:
    """The compiled graph. Sessions are shared; each thread that runs it has a Runner of its own."""

    def __init__(
        self, graph: Graph, values: Sequence[Value], *, threads: int, limit: int,
        loose: Collection[str] = (), runs: int = 0,
    ) -> None:  # fmt: skip
        """`limit` is how many bytes of values a stretch may show at once, unless one alone is larger. Of
        `loose` values the numbers are wanted, in any order: it depends on the number of `runs` to come
        whether that is used.
        """
        lowering = Lowering()
        lowering.add(graph)
        self.taps = {v.name: _tap(lowering, v) for v in values}
        self.lowered = lowering.lowered({tap.name: tap.name for tap in self.taps.values()})
        self.steps = self._compiled(threads, limit, set(loose), runs)
        self.feeds = {v.name: name for name, v in self.lowered.inputs.items()}
        self.shown = self._shown()
        self.offsets, self.size = _placed(self._lives(), lambda name: _nbytes(self.lowered, name))

    def _compiled(self, threads: int, limit: int, loose: set[str], runs: int) -> list[OnnxStep | NumpyStep]:
        ready = False
        if is_worthwhile(self.lowered, runs):
            ordered = {tap.name for value, tap in self.taps.items() if value not in loose}
            changed = tapped_nchwc(self.lowered, self.lowered.outputs.keys() - ordered)
            # Few places to cut at may be left, and memory comes first.
            if ready := _most_shown(changed, _cuts(changed, limit)) <= 2 * limit:
                self.lowered = changed
        cuts = _cuts(self.lowered, limit)
        # Arenas of their own would add up to the size of all values.
        return compile_steps(self.lowered, threads, cuts, shared=bool(cuts), ready=ready)

    def _shown(self) -> list[list[tuple[str, str]]]:
        """The (value, ONNX name) pairs that can be read before the first step and after each. What is there
        from the start is shown with the first results: computing need not wait for whoever looks."""
        places = {n: i + 1 for i, step in enumerate(self.steps) for n in step.outputs}
        shown: list[list[tuple[str, str]]] = [[] for _ in range(len(self.steps) + 1)]
        for value, tap in self.taps.items():
            shown[places.get(tap.name, min(1, len(self.steps)))].append((value, tap.name))
        return shown

    def _lives(self) -> dict[str, tuple[int, int]]:
        """From which step to which each name needs its buffer: until it is read for the last time."""
        lives: dict[str, tuple[int, int]] = dict.fromkeys(self.feeds.values(), (0, 1))
        for i, step in enumerate(self.steps, 1):
            lives |= {n: (lives[n][0], i) for n in step.inputs if n in lives}
            lives |= dict.fromkeys(step.outputs, (i, i))
        return lives


class Runner:
    """The buffer and the bindings of one thread."""

    def __init__(self, graph: TappedGraph) -> None:
        self._graph = graph
        self.buffer = large((graph.size,), np.uint8)
        self._known: dict[str, Array] = dict(graph.lowered.body.constants)
        self._known |= {name: self._view(name, start) for name, start in graph.offsets.items()}
        # what can be read before the first step and after each; every run overwrites the arrays
        self.shown = [{value: self._known[name] for value, name in place} for place in graph.shown]
        self._bound = [self._bind(s) if isinstance(s, OnnxStep) else None for s in graph.steps]

    def _view(self, name: str, start: int) -> Array:
        dtype, shape = self._graph.lowered.types[name]
        return self.buffer[start : start + _nbytes(self._graph.lowered, name)].view(dtype).reshape(shape)

    def _bind(self, step: OnnxStep) -> ort.IOBinding:
        binding = step.session.io_binding()
        for names, bind in ((step.inputs, binding.bind_input), (step.outputs, binding.bind_output)):
            for name in names:
                array = self._known[name]
                code = helper.np_dtype_to_tensor_dtype(array.dtype)
                bind(name, "cpu", 0, code, array.shape, array.ctypes.data)
        return binding

    def run(self, arrays: Mapping[str, Array], look: Look) -> None:
        """One inference. `look` is told each place in turn: what is shown there can be read until it ends."""
        for value, name in self._graph.feeds.items():
            np.copyto(self._known[name], arrays[value])
        look(0)
        for i, (step, bound) in enumerate(zip(self._graph.steps, self._bound, strict=True), 1):
            if bound is None:
                assert isinstance(step, NumpyStep)
                for name, array in zip(step.outputs, run_numpy(step, self._known), strict=True):
                    np.copyto(self._known[name], array)
            else:
                assert isinstance(step, OnnxStep)
                _run(step, bound)
            look(i)


def _run(step: OnnxStep, binding: ort.IOBinding) -> None:
    try:
        step.session.run_with_iobinding(binding)
    except FAILURES as e:
        raise failed(e) from e


def _tap(lowering: Lowering, value: Value) -> Tap:
    for perm, name in lowering.known.get((value, False), {}).items():
        return Tap(name, perm)
    raise BackendError(f"nothing computes '{value.name}'")


def _nbytes(lowered: Lowered, name: str) -> int:
    dtype, shape = lowered.types[name]
    return prod(shape) * dtype.itemsize


def _placed(lives: Mapping[str, tuple[int, int]], size: Callable[[str], int]) -> tuple[dict[str, int], int]:
    """An offset for each name so that names that live at the same time do not overlap; the largest first."""
    placed: list[tuple[int, int, tuple[int, int]]] = []  # start, end, life; in order
    offsets: dict[str, int] = {}
    for name in sorted(lives, key=size, reverse=True):
        room, (born, dead) = -(-size(name) // ALIGNMENT) * ALIGNMENT, lives[name]
        start = 0
        for low, high, life in placed:
            if life[0] <= dead and born <= life[1]:
                if start + room <= low:
                    break
                start = max(start, high)
        offsets[name] = start
        insort(placed, (start, start + room, (born, dead)))
    return offsets, max((end for _, end, _ in placed), default=0)


# -- which nodes, in which stretches -------------------------------------------------------------------------


def _bytes_shown(lowered: Lowered) -> list[int]:
    """By each node."""
    return [
        sum(_nbytes(lowered, o) for o in node.output if o in lowered.outputs) for node in lowered.body.nodes
    ]


def _most_shown(lowered: Lowered, cuts: list[int]) -> int:
    """The most bytes that a stretch shows besides its largest node, which may be any size."""
    shown = _bytes_shown(lowered)
    stretches = [shown[a:b] for a, b in pairwise([0, *cuts, len(shown)])]
    return max(sum(s) - (max(s) if s else 0) for s in stretches)


def _cuts(lowered: Lowered, limit: int) -> list[int]:
    """Where to end a stretch so that none shows more than `limit` bytes; a few more are not worth an end."""
    shown = _bytes_shown(lowered)
    if sum(shown) <= limit + limit // 2:
        return []
    costs = _costs_of_cutting(lowered)
    cuts: list[int] = []
    start, total = 0, 0
    for index, size in enumerate(shown):
        total += size
        if total <= limit or index == start:
            continue
        near = [p for p in range(start + 1, index + 1) if costs[p] is not None]
        half = [p for p in near if sum(shown[start:p]) * 2 >= total - size]
        if half:
            start = min(half, key=lambda p: (costs[p], -p))
            cuts.append(start)
            total = sum(shown[start : index + 1])
    return cuts


def _lifetimes(lowered: Lowered) -> tuple[dict[str, int], dict[str, int]]:
    """Before which node each computed tensor is there, and which node reads it last."""
    nodes = lowered.body.nodes
    made = {o: i + 1 for i, node in enumerate(nodes) for o in node.output}
    made |= {o: s.position for s in lowered.steps for o in s.outputs}
    last = {n: i for i, node in enumerate(nodes) for n in node.input if n in made}
    for step in lowered.steps:
        last |= {n: max(last.get(n, 0), step.position) for n in step.inputs if n in made}
    return made, last


def _costs_of_cutting(lowered: Lowered) -> list[int | None]:
    """Bytes that a cut in front of each node would have to write besides what is shown anyway; None where
    something without a known type would have to pass."""
    nodes = lowered.body.nodes
    made, last = _lifetimes(lowered)
    extra, unknown = np.zeros(len(nodes) + 2, np.int64), np.zeros(len(nodes) + 2, np.int64)
    for name, end in last.items():
        if name in lowered.outputs:
            continue
        change, by = (extra, _nbytes(lowered, name)) if name in lowered.types else (unknown, 1)
        change[made[name]] += by
        change[end + 1] -= by
    barred = np.cumsum(unknown)
    return [None if barred[i] else int(c) for i, c in enumerate(np.cumsum(extra)[: len(nodes) + 1])]
