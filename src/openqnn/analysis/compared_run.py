"""Compared runs: the numbers of a graph's tensors, sample by sample, from whatever computes them or has them.

A backend, the source model in its own framework, another graph, a folder of raw files: each gives real
numbers in the axes of the graph, by the names of its tensors. Names may be spelled as QNN does; where one is
not found, the node of the source is that a tensor comes from. Tensors that fixed point holds in part only, as
in front of a clip, are nobody's but the graph's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from openqnn.analysis.accuracy.layers import is_cut
from openqnn.analysis.accuracy.tally import real_of
from openqnn.analysis.accuracy.tensor_folder import TensorFolder
from openqnn.errors import InputError
from openqnn.ir import Array, Graph, Value
from openqnn.qnn.net import qnn_name
from openqnn.runtime.boundary import accepted
from openqnn.runtime.runner import ALL, Runner

Numbers = Mapping[str, Sequence[Array]]
"""By the names of tensors their numbers, in more than one order of axes where the shape does not tell it."""
_SOURCE = re.compile(r"node '?([^']+?)'?$")


class ComparedRun(Protocol):
    """One of the runs that are held against each other."""

    @property
    def names(self) -> frozenset[str]:
        """The graph's tensors that it can show."""
        ...

    @property
    def fuses(self) -> bool:
        """Whether looking at tensors may change what is computed."""
        ...

    def run(self, names: Sequence[str]) -> Iterator[Numbers]:
        """These tensors of sample after sample."""
        ...

    def close(self) -> None: ...


class GraphRun:
    """The graph itself on a backend."""

    def __init__(
        self, graph: Graph, runner: Runner, samples: Sequence[Mapping[str, Any]], *, fuses: bool = True
    ) -> None:
        self.runner, self.fuses = runner, fuses
        self.values = {v.name: v for v in graph.values()}
        self.given = [accepted(graph, sample) for sample in samples]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.runner.tensor_names)

    def run(self, names: Sequence[str]) -> Iterator[Numbers]:
        for found in self.runner.run_many(self.given, list(names)):
            yield {name: (_real(self.values[name], array),) for name, array in found.items()}

    def close(self) -> None:
        self.runner.close()


class OtherRun:
    """Another model on the same samples: the source in its framework, or a graph of other numbers."""

    fuses = False

    def __init__(
        self, graph: Graph, runner: Runner, samples: Sequence[Mapping[str, Any]], other: Graph | None = None
    ) -> None:
        self.runner, self.other = runner, {v.name: v for v in other.values()} if other is not None else {}
        self.values = _computed(graph)
        self.given = [_fed(sample, other) for sample in samples]
        self.first = self.runner.run(self.given[0], ALL)
        self.known = _matched(graph, {n: a.shape for n, a in self.first.items()}, _made_by(runner))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.known)

    def run(self, names: Sequence[str]) -> Iterator[Numbers]:
        wanted = {name: self.known[name] for name in names if name in self.known}
        for found in chain([self.first], self.runner.run_many(self.given[1:], ALL)):
            shown = {
                o: _real(self.other[o], found[o]) if o in self.other else found[o] for o in wanted.values()
            }
            yield {n: in_axes(shown[o], self.values[n].shape) for n, o in wanted.items()}

    def close(self) -> None:
        self.runner.close()


class FolderRun:
    """Raw files of a run that somebody else made: Result_<n> for each sample, or one folder for the only
    one."""

    fuses = False

    def __init__(self, graph: Graph, folder: str, count: int, dtype: str = "float32") -> None:
        whole = [p for i in range(count) if (p := Path(folder, f"Result_{i}")).is_dir()]
        if whole and len(whole) < count:
            raise InputError(
                f"{folder} has {len(whole)} results, and there are {count} samples",
                hint=f"compare fewer: --samples {len(whole)}",
            )
        if not whole and count > 1:
            raise InputError(
                f"{folder} has no Result_0, Result_1, ... for {count} samples",
                hint="compare the one sample that its files are of: --samples 1",
            )
        self.folders = [TensorFolder(p, dtype) for p in whole or [Path(folder)]]
        self.values = _computed(graph)
        found = {n: self.folders[0].found(n) for n in self.values}
        self.known = {n: o for n, o in found.items() if o is not None}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.known)

    def run(self, names: Sequence[str]) -> Iterator[Numbers]:
        for folder in self.folders:
            yield {n: self._read(folder, n) for n in names if n in self.known}

    def _read(self, folder: TensorFolder, name: str) -> Sequence[Array]:
        array, value = folder.read(self.known[name]), self.values[name]
        if array.size != value.size:
            raise InputError(
                f"{folder.files[self.known[name]]}: {array.size:,} numbers, and tensor '{name}' has"
                f" {value.size:,}",
                hint="files hold float32; is this the folder of another model?",
            )
        return flat_in_axes(array, value.shape)

    def close(self) -> None:
        """Nothing is open between samples."""


def _computed(graph: Graph) -> dict[str, Value]:
    """The tensors that other runs may have, too."""
    return {v.name: v for node in graph.nodes for v in node.outputs if not is_cut(graph, v)}


def _real(value: Value, array: Array) -> Array:
    coded = value.encoding is not None and array.dtype.kind in "iu"
    return real_of(array, value.encoding) if coded and value.encoding is not None else array


def _fed(sample: Mapping[str, Any], other: Graph | None) -> dict[str, Array]:
    if other is not None:
        return accepted(other, sample)
    return {name: np.asarray(array) for name, array in sample.items()}


def _made_by(runner: Runner) -> Mapping[str, str]:
    """Tensors by the names of the nodes that make them, where a runner tells them."""
    return getattr(runner, "made_by", {})


Shapes = Mapping[str, tuple[int, ...]]


def _matched(graph: Graph, shapes: Shapes, made_by: Mapping[str, str]) -> dict[str, str]:
    """Which tensor of the other model is the same, by name or else by the node of the source."""
    found = _by_name(graph, shapes)
    taken = set(found.values())
    for node in graph.nodes:
        said = _SOURCE.search(node.source)
        other = made_by.get(said[1], "") if said is not None else ""
        known = other in shapes and other not in taken and not is_cut(graph, node.out)
        if known and _fits(shapes[other], node.out.shape):  # the last node of a source node counts
            found = {n: o for n, o in found.items() if o != other} | {node.out.name: other}
    return found


def _by_name(graph: Graph, shapes: Shapes) -> dict[str, str]:
    spelled = {qnn_name(n): n for n in shapes} | {qnn_name(n.removesuffix(":0")): n for n in shapes}
    found: dict[str, str] = {}
    for name, value in _computed(graph).items():
        other = name if name in shapes else spelled.get(qnn_name(name)) or spelled.get(name)
        if other is not None and _fits(shapes[other], value.shape):
            found[name] = other
    return found


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    return bool(in_axes(np.empty(shape, np.bool_), tuple(wanted)))


def in_axes(array: Array, shape: tuple[int, ...]) -> list[Array]:
    """An array in the axes of a graph's tensor: as it is, and with channels moved to the end; none if neither
    fits."""
    found = [array] if array.shape == shape else []
    if array.ndim >= 3 and (turned := np.moveaxis(array, 1, -1)).shape == shape:
        found.append(turned)
    if not found and [d for d in array.shape if d != 1] == [d for d in shape if d != 1]:
        found = [array.reshape(shape)]
    return found


def flat_in_axes(array: Array, shape: tuple[int, ...]) -> list[Array]:
    """Numbers in a row, in both orders of axes that they may have."""
    found = [array.reshape(shape)]
    if len(shape) >= 3:
        first = (shape[0], shape[-1], *shape[1:-1])
        found.append(np.moveaxis(array.reshape(first), 1, -1))
    return found
