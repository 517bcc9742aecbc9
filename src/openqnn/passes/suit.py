"""A graph in the forms that one of Qualcomm's libraries takes and computes right."""

from __future__ import annotations

import numpy as np

from openqnn.errors import UnsupportedError
from openqnn.ir import DType, Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import Builder
from openqnn.passes.edit import builder_at, supplant

HTP, CPU = "libQnnHtp", "libQnnCpu"
_CAST = {DType.UFIXED_8, DType.SFIXED_8}  # what libQnnCpu casts to floats


def suit(graph: Graph, library: str, *, keeps_border: bool = False) -> Graph:
    """The graph itself, or one that computes the same, for the library of that name."""
    if library.startswith(HTP):
        from openqnn.passes.htp import legalise_htp

        return legalise_htp(graph, keeps_border=keeps_border)
    return dequantize_each_time(graph) if library.startswith(CPU) else graph


def suit_file(graph: Graph, library: str) -> Graph:
    """The same for what a tool wrote, whose fixed point is for HTP already and stays as it is there."""
    if library.startswith(HTP):
        from openqnn.passes.htp.legalise import computes_fixed

        if computes_fixed(graph):
            return graph
    return suit(graph, library, keeps_border=True)


def dequantize_each_time(graph: Graph) -> Graph:
    """libQnnCpu (2.47) runs a Dequantize once: whatever comes later, its result stays that of the first."""
    if not any(_once(node) for node in graph.nodes):
        return graph
    made = clone_graph(graph)
    for node in [n for n in made.nodes if _once(n)]:
        supplant(made, node.out, _computed(builder_at(made, node), node))
    return made


def _once(node: Node) -> bool:
    return node.op == "Dequantize" and not node.x(0).is_constant


def _computed(b: Builder, node: Node) -> Value:
    x, known = node.x(0), node.x(0).encoding
    if x.dtype not in _CAST or known is None:
        raise UnsupportedError(
            f"{node.where}: libQnnCpu makes real numbers of {x.dtype.label} in its first run only",
            hint="run the graph on HTP, or on the built-in backend",
        )
    shape = [-1 if axis == known.axis else 1 for axis in range(x.rank)]
    offset, scale = (np.asarray(n, np.float32).reshape(shape) for n in (known.offset, known.scale))
    real = b.cast(x, DType.FLOAT_32)
    return b.mul(b.add(real, b.const(offset)), b.const(scale))
