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
    own = widths or {}
    made, log = clone_graph(graph), Explain()
    set_float_width(made, 32)  # casts between widths of floats mean nothing once both are integers
    remove_identities(made, log)
    for node in list(made.nodes):
        rule = FIXED_RULES.get(node.op)
        bits = own.get(node.name, width)
        b = builder_at(made, node)
        new = (rule(node, b, bits) if rule is not None else without_groups(node, b)) if alive(node) else None
        if new is not None:
            supplant(made, node.out, new)
    keep_clips(made)
    merge_constants(made, log)  # a weight that many steps share was turned for each
    _keep_names(graph, made)
    verify(made, infer_outputs, after="prepare_fixed")
    return made


def _keep_names(graph: Graph, made: Graph) -> None:
    """A constant that took the place of another gets its name: overrides go by names."""
    gone = {v.name for v in graph.constants()} - {v.name for v in made.constants()}
    for value in made.constants():
        stem = value.name.rpartition("_")[0]
        if stem in gone:
            value.name = stem
            gone.remove(stem)
