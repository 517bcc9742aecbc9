"""The passes, in the one order in which they run."""

from __future__ import annotations

from collections.abc import Collection

from openqnn.errors import UsageError
from openqnn.ir import Graph
from openqnn.ir.verify import verify as verify_graph
from openqnn.ops import infer_outputs
from openqnn.passes.explain import Explain
from openqnn.passes.fold_affine import fold_affine
from openqnn.passes.fold_constants import fold_constants, merge_constants
from openqnn.passes.fold_pad import fold_pad
from openqnn.passes.merge_repeated import merge_repeated, merge_reshapes, merge_views, remove_dead_code
from openqnn.passes.minimise_transposes import minimise_transposes
from openqnn.passes.patterns import activation, linear, norm, space_depth
from openqnn.passes.remove_identities import remove_identities
from openqnn.passes.rewrite import apply_rules
from openqnn.passes.step import Step, repeat

# A constant makes another node one that does nothing, and the reverse.
CLEANING: tuple[Step, ...] = (
    Step("fold_constants", fold_constants, "patterns and layouts look for constants"),
    Step("remove_identities", remove_identities, "patterns need not step over nodes that do nothing"),
)
# Scaled dot-product attention has no pass: products and a softmax are how every QNN backend runs it best.
PASSES: tuple[Step, ...] = (
    Step("remove_dead_code", remove_dead_code, "first: no other pass should look at what nobody reads"),
    Step("clean", repeat(CLEANING), "constants and nodes that do nothing, until there are no more"),
    Step("merge_reshapes", merge_reshapes, "patterns know chains of reshapes as a single one"),
    Step("merge_constants", merge_constants, "equal nodes are found by equal operands"),
    Step("merge_repeated", merge_repeated, "patterns use a value twice that exporters compute twice"),
    Step("activations", apply_rules(activation.RULES), "before norms and layers, which they stand between"),
    Step("norms", apply_rules(norm.RULES), "on the source's own axis order, as exporters wrote them"),
    Step("instance_norm", apply_rules(norm.LATER), "what is a LayerNorm over an image and got no weights"),
    Step("blocks", apply_rules(space_depth.RULES), "while transposes still are where exporters put them"),
    Step("linear", apply_rules(linear.RULES), "a bias joins the product before channels are scaled"),
    Step("matmul_transpose", apply_rules(linear.TRANSPOSES), "so that all factors want the same axis order"),
    Step("minimise_transposes", minimise_transposes, "patterns are known: the rest may change its order"),
    Step("matmul_transpose", apply_rules(linear.TRANSPOSES), "of the transposes that are left"),
    Step("merge_views", merge_views, "the walk leaves reshapes where axes of size 1 moved"),
    Step("remove_identities", remove_identities, "reshapes that came back to where they began"),
    Step("fold_pad", fold_pad, "pads and their readers now are in the same axis order"),
    Step("fold_affine", fold_affine, "channels are last now, next to the layers that they scale"),
    Step("merge_constants", merge_constants, "weights that were folded or turned alike"),
    Step("merge_repeated", merge_repeated, "what became equal in the same axis order"),
    Step("remove_dead_code", remove_dead_code, "last: whatever the rewrites left behind"),
)


def run_passes(
    graph: Graph, explain: Explain | None = None, verify: bool = False, without: Collection[str] = ()
) -> Explain:
    """Runs all passes but those in `without`. With `verify`, the pass that breaks the graph is named."""
    unknown = sorted(set(without) - {step.name for step in PASSES})
    if unknown:
        raise UsageError(f"there is no pass '{unknown[0]}' to leave out")
    log = explain if explain is not None else Explain()
    log.begun(graph)
    for step in PASSES:
        if step.name in without:
            continue
        step.run(graph, log)
        log.finished(step.name, step.why, graph)
        if verify:
            verify_graph(graph, infer_outputs, after=step.name)
    if not verify:
        verify_graph(graph, infer_outputs, after="all passes")
    return log
