"""What runs on one of Qualcomm's libraries: a graph, or a context binary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike

from openqnn.emit import lower
from openqnn.emit.graph_from_net import value_of
from openqnn.errors import UsageError
from openqnn.ir import Graph, Port, Value, dtype_of
from openqnn.qnn.context_info import GraphInfo
from openqnn.qnn.net import Array
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.runtime.boundary import inward
from openqnn.runtime.runner import Outputs, chosen
from openqnn.vendor.extra_outputs import with_outputs
from openqnn.vendor.library_worker import LibraryWorker
from openqnn.vendor.model import check_soc
from openqnn.vendor.remote import CompiledNet, describe_context, run_context
from openqnn.vendor.source import suited
from openqnn.vendor.target_setup import Settings, check_computes, target_of


class GraphExecutable:
    """A graph on one of Qualcomm's libraries, compiled once, in a child process: a bad graph cannot take the
    caller down.

    Intermediate tensors become outputs of the graph, which is compiled once more for them. The library runs
    the graph in a form that suits it: a tensor that this form lacks, or has in another shape or with another
    encoding, cannot be shown.
    """

    def __init__(
        self,
        graph: Graph,
        library: str,
        soc: str | int | None,
        timeout: float,
        settings: Settings | None = None,
        packages: tuple[OpPackageLibrary, ...] = (),
    ) -> None:
        self._target = target_of(library, soc, settings, packages)
        check_computes(self._target.library)
        self._timeout = timeout
        self._own = [value.name for value in graph.outputs]
        self._graph = suited(graph, self._target.library)
        self._names: dict[str, str] = {}
        self._net = lower(self._graph, self._names)
        self._results = dict(zip(self._own, self._net.outputs, strict=True))
        self._inner = _inner_tensors(graph, self._graph, self._names)
        self._compiled: dict[tuple[str, ...], CompiledNet] = {}

    @property
    def tensor_names(self) -> list[str]:
        return list(dict.fromkeys([*self._own, *self._inner]))

    def run(self, arrays: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        names = chosen(outputs, self._own, self.tensor_names)
        results = self._net_with(names).run(self._fed(arrays))
        return {name: self._shown(name, results) for name in names}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        for compiled in self._compiled.values():
            compiled.close()
        self._compiled.clear()

    def _fed(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        given: dict[str, Array] = {}
        read = (v for v in self._graph.inputs if v.name in self._names)
        for value, name in zip(read, self._net.inputs, strict=True):
            array = arrays[value.name].reshape(self._net.tensors[name].dims)
            given[name] = inward(value, Port(dtype_of(array.dtype), array.shape), array, native=True)
        return given

    def _net_with(self, names: Sequence[str]) -> CompiledNet:
        """The graph with these tensors as outputs; of those with more than its own, the last is kept."""
        extra = tuple(self._inner[name][0] for name in names if name not in self._results)
        if extra not in self._compiled:
            for old in [key for key in self._compiled if key]:
                self._compiled.pop(old).close()
            net = with_outputs(self._net, extra)
            self._compiled[extra] = CompiledNet(net, self._target, timeout=self._timeout)
        return self._compiled[extra]

    def _shown(self, name: str, results: Mapping[str, Array]) -> Array:
        if name in self._results:
            return results[self._results[name]]
        tensor, value = self._inner[name]
        return results[tensor].astype(value.dtype.numpy, copy=False).reshape(value.shape)


def _inner_tensors(graph: Graph, runs: Graph, names: Mapping[str, str]) -> dict[str, tuple[str, Value]]:
    """The values that nodes of both graphs compute, each with its tensor in the records that run."""
    computed = {value.name: value for node in runs.nodes for value in node.outputs}
    found: dict[str, tuple[str, Value]] = {}
    for value in (value for node in graph.nodes for value in node.outputs):
        other = computed.get(value.name)
        if other is not None and other.name in names and _is_alike(value, other):
            found[value.name] = (names[other.name], value)
    return found


def _is_alike(value: Value, other: Value) -> bool:
    """Whether arrays of one are arrays of the other, but for the width of the numbers."""
    same_kind = value.dtype.numpy.kind == other.dtype.numpy.kind
    return value.shape == other.shape and value.encoding == other.encoding and same_kind


class ContextExecutable:
    """One graph of a context binary on the library that made it, in a child process that keeps it loaded.

    It shows the outputs that were compiled into it.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        library: str,
        soc: str | int | None,
        timeout: float,
        packages: tuple[OpPackageLibrary, ...] = (),
        *,
        border: Graph | None = None,
    ) -> None:
        self._path, self._border = path, border or borders_of(path, soc)[0]
        self._target = target_of(library, soc, packages=packages)
        self._timeout = timeout
        self._worker = LibraryWorker()

    @property
    def tensor_names(self) -> list[str]:
        return [value.name for value in self._border.outputs]

    def run(self, arrays: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        names = chosen(outputs, (), self.tensor_names) if outputs is not None else None
        found = run_context(
            self._path, [arrays], self._target.library,
            graph=self._border.name, device=self._target.device, worker=self._worker,
            timeout=self._timeout, keep=True, packages=self._target.packages,
        ).outputs[0]  # fmt: skip
        return found if names is None else {name: found[name] for name in names}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        self._worker.close()


def borders_of(path: str | PathLike[str], soc: str | int | None = None) -> tuple[Graph, ...]:
    """The graphs of a context binary with inputs and outputs, and no nodes: those are compiled away."""
    info = describe_context(path)
    check_soc(path, info, soc)
    if not info.graphs:
        raise UsageError(f"{path} holds no graph")
    return tuple(map(_border, info.graphs))


def _border(found: GraphInfo) -> Graph:
    graph = Graph(found.name)
    for item in found.inputs:
        value = value_of(item.tensor)
        graph.inputs.append(value)
        graph.ports[value.name] = Port(value.dtype, value.shape)
    for item in found.outputs:
        graph.add_output(value_of(item.tensor))
    return graph
