"""What runs on one of Qualcomm's libraries: a graph, or a context binary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike

from openqnn.compiler import Settings, check_computes, device_of, options_of, resolved, suited
from openqnn.emit import lower
from openqnn.emit.graph_from_net import value_of
from openqnn.errors import ModelError, UsageError
from openqnn.ir import Graph, Port, dtype_of
from openqnn.qnn.isolated import Worker
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Array
from openqnn.qnn.remote import CompiledNet, describe_context, run_context
from openqnn.runtime.boundary import inward
from openqnn.runtime.vendor import check_soc, of_file


class GraphExecutable:
    """A graph on one of Qualcomm's libraries, compiled once, in a child process: a bad graph cannot take the
    caller down."""

    def __init__(
        self,
        graph: Graph,
        library: str,
        soc: str | int | None,
        timeout: float,
        settings: Settings | None = None,
    ) -> None:
        path = find_library(library)
        check_computes(str(path))
        device = device_of(str(path), soc)
        options = options_of(str(path), device, settings)
        self._graph, self._names = suited(graph, path.name), dict[str, str]()
        self._net = lower(self._graph, self._names)
        self._compiled = CompiledNet(self._net, path, device=device, options=options, timeout=timeout)

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        given: dict[str, Array] = {}
        read = (v for v in self._graph.inputs if v.name in self._names)
        for value, name in zip(read, self._net.inputs, strict=True):
            array = arrays[value.name].reshape(self._net.tensors[name].dims)
            given[name] = inward(value, Port(dtype_of(array.dtype), array.shape), array, native=True)
        results = self._compiled.run(given)
        return {v.name: results[n] for v, n in zip(self._graph.outputs, self._net.outputs, strict=True)}

    def run_many(self, samples: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        return map(self.run, samples)

    def close(self) -> None:
        self._compiled.close()


class ContextExecutable:
    """One graph of a context binary on the library that made it, in a child process that keeps it loaded."""

    def __init__(
        self, path: str | PathLike[str], library: str, soc: str | int | None, timeout: float
    ) -> None:
        self._path, self._library, self._timeout = path, resolved(library), timeout
        self._device = device_of(self._library, soc)
        self._worker = Worker()

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        return run_context(
            self._path, [arrays], self._library,
            device=self._device, worker=self._worker, timeout=self._timeout, keep=True,
        ).outputs[0]  # fmt: skip

    def run_many(self, samples: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        return map(self.run, samples)

    def close(self) -> None:
        self._worker.close()


def border_of(path: str | PathLike[str], soc: str | int | None = None) -> Graph:
    """A graph with the inputs and outputs of a context binary, and no nodes: those are compiled away."""
    try:
        info = describe_context(path)
    except ModelError as error:
        raise of_file(path, error) from error
    check_soc(path, info, soc)
    if len(info.graphs) != 1:
        names = ", ".join(graph.name for graph in info.graphs)
        raise UsageError(f"{path} holds {len(info.graphs)} graphs: {names}", hint="run it with qnn-net-run")
    found = info.graphs[0]
    graph = Graph(found.name)
    for item in found.inputs:
        value = value_of(item.tensor)
        graph.inputs.append(value)
        graph.ports[value.name] = Port(value.dtype, value.shape)
    for item in found.outputs:
        graph.add_output(value_of(item.tensor))
    return graph
