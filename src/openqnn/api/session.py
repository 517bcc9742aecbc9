"""The Python API: a graph that runs, on any backend."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from openqnn.api.compile import check_seconds
from openqnn.api.family import Family, graphs_of
from openqnn.api.files import CONTEXT, check_path
from openqnn.errors import InputError, UsageError
from openqnn.formats.mapped import check_unchanged, files_behind
from openqnn.ir import Array, Graph, Value
from openqnn.qnn.op_package_library import OpPackages, op_package_libraries
from openqnn.runtime.boundary import accepted, fitting, outward, shapes_text
from openqnn.targets.registry import target_of_backend

if TYPE_CHECKING:
    from openqnn.runtime.runner import Runner
    from openqnn.vendor.partition.plan import Plan
    from openqnn.vendor.target_setup import Settings


AUTO = "auto"


def _graphs(source: Graph | Family | str | os.PathLike[str], soc: str | int | None) -> tuple[Graph, ...]:
    """All that a source has; of a context binary their borders."""
    if isinstance(source, Graph):
        return (source,)
    if isinstance(source, Family):
        return source.graphs
    if Path(source).suffix != CONTEXT:
        return graphs_of(source)
    from openqnn.vendor.executables import borders_of

    return borders_of(source, soc)


def _check_none(packages: Sequence[object]) -> None:
    if packages:
        raise UsageError(
            "op packages are for the vendor's libraries; the built-in backend computes custom ops by their"
            " Python functions",
            hint='backend="libQnnCpu.so"',
        )


class Session:
    """A graph ready to run. Arrays go in and come out by the source model's names, layout, shapes and types.

    `backend` is "cpu", the built-in one, or a vendor library by name or path ("libQnnCpu.so", "htp"), which
    has `timeout` seconds for a run: the simulator of HTP is slow. HTP compiles for `soc`, SM8650 by default,
    with `settings` of a graph by the names that they have in its JSON file: {"vtcm_mb": 4, "O": 3}. A context
    binary (.bin) runs on the library that made it. `op_packages` are libraries with operations of your own,
    "path:provider[:target]", for the vendor's.

    Of several graphs (a family, a DLC, a context binary) `run` takes the one whose inputs have the shapes of
    the arrays; `graphs` are all, `graph` is the first.

    With "auto" every node goes to HTP, to libQnnCpu or to the built-in backend, by the libraries' own word
    and the least cost; `partition` has the user's say, as a file or as what stands in it, and `plan` tells.
    """

    def __init__(
        self,
        graph: Graph | Family | str | os.PathLike[str],
        backend: str | os.PathLike[str] = "cpu",
        *,
        threads: int = 0,
        timeout: float = 60.0,
        soc: str | int | None = None,
        settings: Settings | None = None,
        op_packages: OpPackages | None = None,
        partition: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    ) -> None:
        is_path = not isinstance(graph, Graph | Family)
        if is_path:
            check_path(graph)
        if not isinstance(backend, str | os.PathLike):
            raise UsageError(f"a {type(backend).__name__} names no backend", hint='backend="htp"')
        self._binary = os.fspath(graph) if is_path and Path(graph).suffix == CONTEXT else ""
        self.graphs = _graphs(graph, soc)
        self.graph = self.graphs[0]
        self._soc, self._settings, self._partition = soc, settings, partition
        self._packages = op_package_libraries(op_packages)
        self.backend = os.fspath(backend)
        check_seconds(timeout)
        self._threads, self._timeout = threads, timeout
        self.plan: Plan | None = None
        self._check_usage()
        self._files = files_behind(v.data for g in self.graphs for v in g.constants() if v.data is not None)
        self._runners: dict[str, Runner] | None = {self.graph.name: self._compile(self.graph)}

    def __repr__(self) -> str:
        borders = f"{', '.join(shapes_text(self.graph))} -> {', '.join(self.output_names)}"
        state = "" if self._runners is not None else ", closed"
        names = ", ".join(graph.name for graph in self.graphs)
        return f"<Session of {names} on {self.backend}: {borders}{state}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for runner in (self._runners or {}).values():
            runner.close()
        self._runners = None

    @property
    def input_names(self) -> list[str]:
        return [v.name for v in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        return [v.name for v in self.graph.outputs]

    def run(
        self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None, *, native: bool = False
    ) -> dict[str, Array]:
        """Runs once. `outputs` may name intermediate tensors, which come in the graph's own layout and types.

        Fixed-point tensors go in and come out as real numbers; `native` takes and gives stored integers.
        """
        graph = fitting(self.graphs, inputs)
        runner, wanted = self._open(graph, outputs)
        results = runner.run(accepted(graph, inputs, native=native), outputs)
        return _outward(graph, wanted, results, native)

    def run_many(
        self,
        samples: Iterable[Mapping[str, Any]],
        outputs: Sequence[str] | None = None,
        *,
        native: bool = False,
    ) -> Iterator[dict[str, Array]]:
        """Results of sample after sample, as they are asked for; the built-in backend works on several."""
        if len(self.graphs) > 1:
            return (self.run(sample, outputs, native=native) for sample in samples)
        runner, wanted = self._open(self.graph, outputs)
        arrays = (accepted(self.graph, sample, native=native) for sample in samples)
        found = runner.run_many(arrays, outputs)
        return (_outward(self.graph, wanted, each, native) for each in found)

    def _open(self, graph: Graph, outputs: Sequence[str] | None) -> tuple[Runner, dict[str, Value]]:
        if self._runners is None:
            raise UsageError("the session is closed")
        if isinstance(outputs, str):
            raise UsageError(f"outputs is a list of names, not {outputs!r}", hint=f"outputs=[{outputs!r}]")
        check_unchanged(self._files)
        own = {value.name: value for value in graph.outputs}
        names = list(own) if outputs is None else outputs
        wanted = {name: own.get(name) or _value(graph, name) for name in names}
        if graph.name not in self._runners:
            self._runners[graph.name] = self._compile(graph)
        return self._runners[graph.name], wanted

    def _check_usage(self) -> None:
        if self._partition is not None and self.backend != AUTO:
            raise UsageError("a partition goes with several backends", hint=f'backend="{AUTO}"')
        built_in = target_of_backend(self.backend).is_built_in
        if self._binary and (built_in or self.backend == AUTO):
            raise UsageError(
                f"{self._binary} runs on the library that made it, not on the built-in backend",
                hint='backend="htp" or backend="libQnnCpu.so"',
            )
        if self._soc is not None and built_in:
            raise UsageError("a SoC can only be chosen for HTP", hint='backend="htp"')
        if self._settings and built_in:
            raise UsageError("settings are those of HTP", hint='backend="htp"')
        if self._settings and self._binary:
            raise UsageError(f"{self._binary} is compiled, with settings of its own")

    def _compile(self, graph: Graph) -> Runner:
        if target_of_backend(self.backend).is_built_in:
            _check_none(self._packages)
            from openqnn.runtime.cpu.executable import CpuExecutable

            return CpuExecutable(graph, threads=self._threads)
        if self.backend == AUTO:
            _check_none(self._packages)
            return self._divided(graph)
        from openqnn.vendor.executables import ContextExecutable, GraphExecutable

        if self._binary:
            return ContextExecutable(
                self._binary, self.backend, self._soc, self._timeout, self._packages, border=graph
            )
        return GraphExecutable(graph, self.backend, self._soc, self._timeout, self._settings, self._packages)

    def _divided(self, graph: Graph) -> Runner:
        from openqnn.vendor.partition.choices import choices_of, read_choices
        from openqnn.vendor.partition.partitioned_executable import PartitionedExecutable
        from openqnn.vendor.partition.plan import plan_partition

        given = self._partition or {}
        chosen = choices_of(given) if isinstance(given, Mapping) else read_choices(given)
        self.plan = plan_partition(graph, chosen, self._soc)
        return PartitionedExecutable(
            graph, self.plan, self._soc, self._timeout, self._settings, self._threads
        )


def _outward(
    graph: Graph, wanted: Mapping[str, Value], found: Mapping[str, Array], native: bool
) -> dict[str, Array]:
    return {n: outward(v, graph.ports.get(n), found[n], native=native) for n, v in wanted.items()}


def _value(graph: Graph, name: str) -> Value:
    known = {v.name: v for v in graph.values()}
    if name not in known:
        near = difflib.get_close_matches(name, known, 3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else "`openqnn inspect --text` lists them"
        )
        raise InputError(f"the graph has no tensor '{name}'", hint=hint)
    return known[name]
