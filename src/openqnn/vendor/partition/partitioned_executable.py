"""A graph whose parts run on several backends, as one runner."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openqnn.errors import BackendError, OpenQnnWarning
from openqnn.ir import Array, Graph
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.runner import Outputs, Runner, chosen
from openqnn.vendor.executables import GraphExecutable
from openqnn.vendor.partition.costs import BUILT_IN, target_at
from openqnn.vendor.partition.plan import Plan, short_reason
from openqnn.vendor.target_setup import Settings


@dataclass(slots=True)
class _Running:
    """A part at work; `backend` may change, where the library does not compile what it has accepted."""

    graph: Graph
    backend: str
    runner: Runner


class PartitionedExecutable:
    """Parts one after the other, with tensors handed on as they are stored.

    A library may accept every node and still fail to compile them together: that part then runs on the
    built-in backend, with a warning.
    """

    def __init__(
        self,
        graph: Graph,
        plan: Plan,
        soc: str | int | None,
        timeout: float,
        settings: Settings | None = None,
        threads: int = 0,
    ) -> None:
        self.plan = plan
        self._threads = threads
        self._own = [value.name for value in graph.outputs]
        self._parts: list[_Running] = []
        for number, part in enumerate(plan.parts):
            own = part.graph(graph, f"{graph.name}_{number}" if len(plan.parts) > 1 else graph.name)
            runner = self._runner(own, part.backend, soc, timeout, settings)
            self._parts.append(_Running(own, part.backend, runner))

    def _runner(
        self, graph: Graph, backend: str, soc: str | int | None, timeout: float, settings: Settings | None
    ) -> Runner:
        target = target_at(backend)
        if target.is_built_in:
            return CpuExecutable(graph, threads=self._threads)
        chosen_soc, chosen_settings = (soc, settings) if target.compiles else (None, None)
        return GraphExecutable(graph, target.libraries[0], chosen_soc, timeout, chosen_settings)

    @property
    def ran(self) -> list[tuple[str, int]]:
        """Backend and number of nodes of each part, as they run."""
        return [(part.backend, len(part.graph.nodes)) for part in self._parts]

    @property
    def tensor_names(self) -> list[str]:
        inner = [name for part in self._parts for name in part.runner.tensor_names]
        return list(dict.fromkeys([*self._own, *inner]))

    def run(self, arrays: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        names = chosen(outputs, self._own, self.tensor_names)
        known = dict(arrays)
        for part in self._parts:
            own = [value.name for value in part.graph.outputs]
            extra = [n for n in names if n not in own and n not in known and n in part.runner.tensor_names]
            inputs = {value.name: known[value.name] for value in part.graph.inputs}
            known |= self._run(part, inputs, [*own, *extra])
        return {name: known[name] for name in names}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        for part in self._parts:
            part.runner.close()

    def _run(self, part: _Running, inputs: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        try:
            return part.runner.run(inputs, names)
        except BackendError as error:
            target = target_at(part.backend)
            if target.is_built_in:
                raise
            warnings.warn(
                f"{target.libraries[0]} took every node of '{part.graph.name}' and failed on them"
                f" together ({short_reason(error.message)}): the built-in backend runs this part",
                OpenQnnWarning,
                stacklevel=5,
            )
            part.runner.close()
            part.backend, part.runner = BUILT_IN, CpuExecutable(part.graph, threads=self._threads)
            return part.runner.run(inputs, names)
