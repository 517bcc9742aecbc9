"""The passes, in the one order in which they run."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.ir import Graph
from openqnn.ir.verify import verify as verify_graph
from openqnn.ops import infer_outputs
from openqnn.passes.cleanup import merge_repeated, remove_dead_code
from openqnn.passes.constants import fold_constants, merge_constants
from openqnn.passes.explain import Explain
from openqnn.passes.identity import remove_identities
from openqnn.passes.layout import minimise_transposes
from openqnn.passes.rewrite import Pass


@dataclass(frozen=True, slots=True)
class Step:
    """A pass, its name in messages, and why it stands where it does."""

    name: str
    run: Pass
    why: str


PASSES: tuple[Step, ...] = (
    Step("remove_dead_code", remove_dead_code, "first: no other pass should look at what nobody reads"),
    Step("fold_constants", fold_constants, "patterns and layouts look for constants"),
    Step("remove_identities", remove_identities, "patterns need not step over nodes that do nothing"),
    Step("merge_constants", merge_constants, "equal nodes are found by equal operands"),
    Step("merge_repeated", merge_repeated, "after constants are merged"),
    Step(
        "minimise_transposes", minimise_transposes, "patterns are known: the rest may change its axis order"
    ),
    Step("remove_dead_code", remove_dead_code, "last: whatever the rewrites left behind"),
)


def run_passes(graph: Graph, explain: Explain | None = None, verify: bool = False) -> Explain:
    """Runs all passes. With `verify`, every pass is checked and the one that breaks the graph is named."""
    log = explain if explain is not None else Explain()
    for step in PASSES:
        step.run(graph, log)
        if verify:
            verify_graph(graph, infer_outputs, after=step.name)
    if not verify:
        verify_graph(graph, infer_outputs, after="all passes")
    return log
