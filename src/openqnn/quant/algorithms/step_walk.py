"""Runs a graph step by step on all samples: each step ends where layers need their inputs to be known.

What comes before a layer has run when the layer is looked at, so that a change of it shows in all that
follows. Every node runs once, and arrays that nothing reads any more are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from openqnn.ir import Array, Graph, Node, Value
from openqnn.runtime.cpu.executable import CpuExecutable

Known = dict[str, list[Array]]  # by value name, one array for each sample


def steps_of(graph: Graph, is_stop: Callable[[Node], bool]) -> dict[Node, int]:
    """For each node the step that runs it: a stop runs one step after its inputs are known."""
    ready: dict[Value, int] = {}
    found: dict[Node, int] = {}
    for node in graph.nodes:
        start = max((ready.get(v, 0) for v in node.inputs if v is not None), default=0)
        found[node] = start + 1 if is_stop(node) else start
        for value in node.outputs:
            ready[value] = found[node]
    return found


class Walk:
    """One graph and its samples on their way through it. `steps` says when each node runs."""

    def __init__(
        self,
        graph: Graph,
        samples: Sequence[Mapping[str, Array]],
        steps: Mapping[Node, int],
        threads: int = 0,
    ) -> None:
        self.graph, self.steps, self.threads = graph, steps, threads
        self.known: Known = {v.name: [s[v.name] for s in samples] for v in graph.inputs}
        self.count = len(samples)
        self._last = self._last_uses()

    def _last_uses(self) -> dict[str, int]:
        """The last step that needs a value; layers look at their inputs one step before they run."""
        return {v.name: max((self.steps[u] for u in v.users), default=-1) for v in self.graph.values()}

    def run(self, step: int) -> None:
        """Runs the nodes of a step; afterwards `known` has what later steps read."""
        nodes = [n for n in self.graph.nodes if self.steps[n] == step]
        wanted = [v for n in nodes for v in n.outputs if self._last[v.name] > step]
        if wanted:
            self.known.update(self._computed(nodes, wanted))
        for name in [n for n in self.known if self._last[n] <= step]:
            del self.known[name]

    def _computed(self, nodes: Sequence[Node], wanted: Sequence[Value]) -> Known:
        """What the nodes compute from what is known, for every sample."""
        part, extra = part_of(self.graph, nodes, wanted)
        executable = CpuExecutable(part, threads=self.threads, extra=extra, many=True)
        names = [v.name for v in part.inputs]
        made: Known = {v.name: [] for v in wanted}
        samples = ({n: self.known[n][i] for n in names} for i in range(self.count))
        for results in executable.run_many(samples):
            for name, arrays in made.items():
                arrays.append(results[name])
        executable.close()
        return made


def part_of(graph: Graph, nodes: Sequence[Node], wanted: Sequence[Value]) -> tuple[Graph, list[Value]]:
    """A graph of some nodes alone: what others make becomes an input, what is wanted an output."""
    part = Graph(graph.name)
    copies: dict[Value, Value] = {}
    inside = {v for n in nodes for v in n.outputs}

    def copy(value: Value) -> Value:
        if value not in copies:
            copies[value] = Value(value.name, value.dtype, value.shape, value.encoding, value.data)
            if value not in inside and not value.is_constant:
                part.inputs.append(copies[value])
        return copies[value]

    for node in nodes:
        inputs = [None if v is None else copy(v) for v in node.inputs]
        part.add(
            Node(
                node.op,
                node.name,
                inputs,
                [copy(v) for v in node.outputs],
                dict(node.params),
                node.source,
                node.package,
            )
        )
    return part, [copies[v] for v in wanted]


def last_step(steps: Mapping[Node, int]) -> int:
    return max(steps.values(), default=0)
