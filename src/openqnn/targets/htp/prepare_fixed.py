"""Forms whose fixed-point kernels on HTP are right, put in before ranges are measured.

Each rule (`fixed_rule`, in the module of the op's family) says what the library does with the other form, as
measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openqnn.ir import Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ir.verify import verify
from openqnn.ops import Builder, infer_outputs
from openqnn.passes.edit import alive, builder_at, supplant
from openqnn.passes.explain import Explain
from openqnn.passes.fold_constants import merge_constants
from openqnn.passes.remove_identities import remove_identities
from openqnn.passes.set_float_width import set_float_width
from openqnn.passes.step import Step, run_steps
from openqnn.targets.htp.clipped_sums import keep_clips
from openqnn.targets.htp.rules import FIXED_RULES, again


def without_groups(node: Node, b: Builder) -> Value | None:
    """Groups of a transposed convolution have fewer channels than there are scales for: the weights of all
    become one matrix, with zeros for what does not meet."""
    group, weight = node.params.get("group", 1), node.inputs[1] if node.has(1) else None
    if group == 1 or "output_padding" not in node.params or weight is None or weight.data is None:
        return None
    blocks = np.split(weight.data, node.int("group"), axis=-2)
    many, size = len(blocks), weight.shape[-1]
    rows = [
        np.pad(w, [(0, 0)] * (w.ndim - 1) + [(i * size, (many - 1 - i) * size)]) for i, w in enumerate(blocks)
    ]
    whole = b.graph.constant(weight.name, np.concatenate(rows, axis=-2), weight.dtype)
    return again(b, node, node.x(0), whole, *node.inputs[2:], shape=node.out.shape, group=1)


def prepare_fixed(graph: Graph, width: int, widths: Mapping[str, int] | None = None) -> Graph:
    """A graph that computes the same, ready to be quantized to activations of that width.

    Nodes in `widths` may have another one.
    """
    made = clone_graph(graph)
    run_steps(_steps(graph, width, widths or {}), made, Explain())
    verify(made, infer_outputs, after="prepare_fixed")
    return made


def _steps(source: Graph, width: int, widths: Mapping[str, int]) -> tuple[Step, ...]:
    """What is done with the copy of a graph, in this order."""
    rules = lambda graph, _: _apply_rules(graph, width, widths)
    names = lambda graph, _: _keep_names(source, graph)
    return (
        Step("one_float_width", lambda graph, _: set_float_width(graph, 32), "integers take its place"),
        Step("remove_identities", remove_identities, "the casts between widths, which now do nothing"),
        Step("rules", rules, "forms that integers are right in"),
        Step("keep_clips", lambda graph, _: keep_clips(graph), "around sums that rules made, too"),
        Step("merge_constants", merge_constants, "a weight that many steps share was turned for each"),
        Step("keep_names", names, "last: no constant is replaced again"),
    )


def _apply_rules(graph: Graph, width: int, widths: Mapping[str, int]) -> None:
    for node in list(graph.nodes):
        if not alive(node):
            continue
        rule, b = FIXED_RULES.get(node.op), builder_at(graph, node)
        new = without_groups(node, b) if rule is None else rule(node, b, widths.get(node.name, width))
        if new is not None:
            supplant(graph, node.out, new)


def _keep_names(graph: Graph, made: Graph) -> None:
    """A constant that took the place of another gets its name: overrides go by names."""
    gone = {v.name for v in graph.constants()} - {v.name for v in made.constants()}
    for value in made.constants():
        stem = value.name.rpartition("_")[0]
        if stem in gone:
            value.name = stem
            gone.remove(stem)
