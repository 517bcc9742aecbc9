"""References in floating point for graphs that somebody else put into fixed point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from openqnn.api.quantize import HTP, prepared_for
from openqnn.errors import InputError, OpenQnnWarning
from openqnn.ir import Graph
from openqnn.quant.recipe import Recipe

LEAST = 0.3  # of the tensors that both must have


def reference_for(opened: Graph, fixed: Graph) -> Graph:
    """The model in floating point, in that of its forms that has most tensors in common with a graph."""
    wanted = {(v.name, v.shape) for v in fixed.values() if not v.is_constant}
    best, most = opened, -1
    for form in _forms(opened):
        shared = sum((v.name, v.shape) in wanted for v in form.values() if not v.is_constant)
        if shared > most:
            best, most = form, shared
    inner = sum(len(node.outputs) for node in fixed.nodes)
    if most < LEAST * inner or not inner:
        raise InputError(
            f"graph '{fixed.name}' has {most} of its {inner} tensors in common with model '{opened.name}'",
            hint="give the model that it was made from; names of tensors must be those of the source",
        )
    return best


def _forms(opened: Graph) -> Iterator[Graph]:
    """The forms that the quantizer may have started from: adapted to HTP with and without wide nodes, and as
    it was converted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        for recipe in (Recipe(), Recipe(wide=False), Recipe(act_bw=16)):
            yield prepared_for(opened, recipe, HTP)
        yield opened
