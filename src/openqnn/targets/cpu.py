"""What libQnnCpu needs: a Dequantize that it computes anew in every run."""

from __future__ import annotations

import numpy as np

from openqnn.errors import UnsupportedError
from openqnn.ir import DType, Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import Builder
from openqnn.passes.edit import builder_at, supplant
from openqnn.targets.target import Target

_CAST = {DType.UFIXED_8, DType.SFIXED_8}  # what libQnnCpu casts to floats


class CpuTarget(Target):
    """Qualcomm's CPU library."""

    name = "libQnnCpu"
    libraries = ("libQnnCpu.so",)

    def adapt(self, graph: Graph, *, keeps_border: bool = False) -> Graph:
        return dequantize_each_time(graph)


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
