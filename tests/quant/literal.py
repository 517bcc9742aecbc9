"""A fixed-point graph word by word: every node in floats, between a dequantize and a quantize.

This is what a model with quantize nodes means, whatever a backend makes of it.
"""

from __future__ import annotations

from openqnn.ir import DType, Graph, Node, Value
from openqnn.ops import schema_of


def literal(graph: Graph) -> Graph:
    made, copies, reals = Graph(graph.name), dict[Value, Value](), dict[Value, Value]()

    def copy(value: Value) -> Value:
        if value not in copies:
            copies[value] = Value(value.name, value.dtype, value.shape, value.encoding, value.data)
        return copies[value]

    def real(value: Value) -> Value:
        if not value.dtype.is_fixed:
            return copy(value)
        if value not in reals:
            reals[value] = Value(f"{value.name}.real", DType.FLOAT_32, value.shape)
            made.add(Node("Dequantize", f"{value.name}.real", [copy(value)], [reals[value]]))
        return reals[value]

    made.inputs = [copy(v) for v in graph.inputs]
    for node in graph.nodes:
        if schema_of(node).on_stored:
            inputs = [None if v is None else copy(v) for v in node.inputs]
            made.add(Node(node.op, node.name, inputs, [copy(v) for v in node.outputs], node.params))
            continue
        inputs = [None if v is None else real(v) for v in node.inputs]
        fixed = [v for v in node.outputs if v.dtype.is_fixed]
        before = {v: Value(f"{v.name}.exact", DType.FLOAT_32, v.shape) for v in fixed}
        outputs = [before.get(v) or copy(v) for v in node.outputs]
        made.add(Node(node.op, node.name, inputs, outputs, node.params))
        for value, exact in before.items():
            made.add(Node("Quantize", f"{value.name}.exact", [exact], [copy(value)]))
    made.outputs = [copy(v) for v in graph.outputs]
    made.ports = dict(graph.ports)
    return made
