"""The models of a throughput run on their libraries: backends opened once, contexts shared by their names."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from openqnn.errors import ModelError
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.context_info import context_info
from openqnn.qnn.graph import Graph
from openqnn.qnn.options import ContextOptions
from openqnn.qnn.profile_log import Method
from openqnn.vendor.model import Meter, of_file, open_backend, read_binary, system_beside
from openqnn.vendor.source import nets_of
from openqnn.vendor.target_setup import Target
from openqnn.vendor.throughput.plan import ThroughputPlan
from openqnn.vendor.throughput.turns import Turns
from openqnn.worker.serve import Reporter


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """A graph, and the lock that an execution needs."""

    graph: Graph
    lock: Turns


class OpenModels:
    """Backends, contexts and graphs by the names of the configuration. A context manager.

    libQnnHtp's simulator hangs when two graphs run at once, so that one lock is for all of them; libQnnCpu
    gives wrong numbers when two threads run one graph, so that each graph has a lock.
    """

    def __init__(self, plan: ThroughputPlan, reporter: Reporter) -> None:
        self._plan, self._reporter = plan, reporter
        self._handles = ExitStack()
        self._backends: dict[str, Backend] = {}
        self._meters: dict[str, Meter] = {}
        self._contexts: dict[str, Context] = {}
        self._graphs: dict[tuple[str, str], list[OpenGraph]] = {}
        self._accelerators: dict[str, Turns] = {}
        self.seconds: dict[tuple[str, str], float] = {}
        """What it took to get a model ready in a context, last time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for context in self._contexts.values():
            context.free()
        self._handles.close()

    def backend(self, name: str) -> Backend:
        if name not in self._backends:
            target = self._plan.backends[name].target
            opened = open_backend(target, self._reporter.step)
            self._backends[name] = self._handles.enter_context(opened)
        return self._backends[name]

    @property
    def packages(self) -> list[str]:
        """Libraries of op packages that are registered with any backend."""
        return sorted({name for backend in self._backends.values() for name in backend.packages})

    def meter(self, backend: str) -> Meter:
        """What was measured while graphs were compiled or loaded on a backend."""
        return self._meters.setdefault(backend, Meter(self._plan.backends[backend].profiling))

    def graphs(self, backend: str, context: str, model: str) -> list[OpenGraph]:
        """The graphs of a model in a context, which is made where it is not there."""
        if (context, model) not in self._graphs:
            start = time.perf_counter()
            plan = self._plan.models[model]
            opened = self._load if plan.source.binary else self._compose
            made = opened(backend, context, model)
            self._graphs[context, model] = [OpenGraph(g, self._lock(backend)) for g in made]
            self.seconds[context, model] = time.perf_counter() - start
        return self._graphs[context, model]

    def free(self, context: str) -> None:
        """Give a context back, for a thread that makes its model anew."""
        self._graphs = {key: found for key, found in self._graphs.items() if key[0] != context}
        found = self._contexts.pop(context, None)
        if found is not None:
            found.free()

    def _lock(self, backend: str) -> Turns:
        opened = self.backend(backend)
        if not opened.is_htp:
            return Turns()
        return self._accelerators.setdefault(str(opened.api.library.path), Turns())

    def _compose(self, backend: str, name: str, model: str) -> list[Graph]:
        opened, target = self.backend(backend), self._plan.backends[backend].target
        if name not in self._contexts:
            self._contexts[name] = Context(opened, self._options(name, target))
        context = self._contexts[name]
        made: list[Graph] = []
        for net in nets_of(self._plan.models[model].source, target.library, self._reporter):
            if net.name in context.graphs:  # two models of a context may name their graphs alike
                net = replace(net, name=f"{model}_{net.name}")
            options = target.options_of(net.name)
            graph = context.compose(net, options=options)
            with self._alone(backend):
                self.meter(backend).call(opened, Method.FINALIZE, net.name, graph.finalize)
            made.append(graph)
        return made

    def _load(self, backend: str, name: str, model: str) -> list[Graph]:
        opened, target = self.backend(backend), self._plan.backends[backend].target
        path = self._plan.models[model].source.binary
        blob = read_binary(path)
        try:
            info = context_info(blob, system_beside(target.library))
        except ModelError as error:
            raise of_file(path, error) from error
        options = self._options(name, target)
        create: Callable[..., Context] = lambda handle: Context.from_binary(
            opened, blob, info, options, handle
        )
        with self._alone(backend):
            context = self.meter(backend).call(opened, Method.CREATE_FROM_BINARY, "", create)
        self._contexts[name] = context
        return list(context.graphs.values())

    def _alone(self, backend: str) -> Turns:
        return self._lock(backend)

    def _options(self, name: str, target: Target) -> ContextOptions | None:
        depth = self._plan.config.contexts[name].queue_depth
        if depth is None or not self._has_chips(target):
            return target.context
        return replace(target.context or ContextOptions(), queue_depth=depth)

    @staticmethod
    def _has_chips(target: Target) -> bool:
        from openqnn.targets.registry import target_of_library

        return target_of_library(target.library).compiles
