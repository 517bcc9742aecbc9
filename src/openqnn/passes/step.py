"""A step in a list that graphs go through in order: what it does, and why it stands where it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from openqnn.ir import Graph
from openqnn.passes.explain import Explain

Change: TypeAlias = Callable[[Graph, Explain], int | None]
"""Changes a graph in place; how often, where anybody wants to know."""


@dataclass(frozen=True, slots=True)
class Step:
    """A pass or another stage, its name in messages, and why it stands where it does."""

    name: str
    run: Change
    why: str


def run_steps(steps: Sequence[Step], graph: Graph, log: Explain) -> int:
    """Runs each step once; how often the graph was changed, by those that count."""
    return sum([step.run(graph, log) or 0 for step in steps])


def repeat(steps: Sequence[Step], rounds: int = 3) -> Change:
    """Runs steps until none of them changes anything, a few times at most."""

    def run(graph: Graph, log: Explain) -> int:
        total = 0
        for _ in range(rounds):
            changes = run_steps(steps, graph, log)
            total += changes
            if not changes:
                break
        return total

    return run
