"""A graph as an ONNX model: in fixed point as pairs of QuantizeLinear and DequantizeLinear around every node.

ONNX Runtime computes it on any provider, and its QNN provider takes the pairs for the encodings of a QNN
graph. Inputs and outputs have the source model's names, shapes and types, and tensors their names in the
graph. ONNX Runtime rounds once at each node, where a chip's integer arithmetic may round otherwise.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from openqnn.errors import UnsupportedError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.ir import DType, Graph, Node, Port, Value
from openqnn.ops import OpSchema, schema_of
from openqnn.ops.elementwise import as_onnx
from openqnn.ops.layout import Perm, compose, identity, inverse, permutation_of
from openqnn.runtime.boundary import outside_dtype
from openqnn.runtime.cpu.arithmetic import Arithmetic
from openqnn.runtime.cpu.to_onnx import Lowering

OPSET, IR_VERSION = 21, 10  # opset 21 has pairs of 16 bits
ONE_NODE = {"HardSwish": as_onnx("HardSwish")}
"""What ONNX has as an operation of its own, where the built-in backend computes several: the QNN provider
takes a single node between pairs in fixed point, and what stands inside a group in half precision."""
LARGEST = (1 << 31) - (1 << 20)  # a protobuf message ends at 2 GiB


class QdqLowering(Lowering):
    """Every node in real numbers, between a DequantizeLinear of what it reads and a QuantizeLinear."""

    def __init__(self) -> None:
        super().__init__()
        self.arithmetic = Arithmetic()  # what rounds each result once, as ONNX Runtime does
        self.labels: dict[str, str] = {}  # ONNX name -> name in the graph
        self._taken: set[str] = set()

    def label(self, name: str, value: Value, end: str = "") -> None:
        """Lets a tensor have the name of its value, where no other has it."""
        wanted = value.name + end
        if name not in self.labels and wanted not in self._taken:
            self.labels[name] = wanted
            self._taken.add(wanted)

    def model(self, graph: Graph) -> onnx.ModelProto:
        ports = graph.ports
        inputs = [self._input(value, ports[value.name]) for value in graph.inputs]
        self._taken |= {value.name for value in graph.outputs}
        for node in graph.nodes:
            self._node(node)
        outputs = [self._output(value, ports[value.name]) for value in graph.outputs]
        found = self.lowered({name: name for name in (o.name for o in outputs)})
        constants = [
            numpy_helper.from_array(np.asarray(array, order="C"), self.labels.get(name, name))
            for name, array in found.body.constants.items()
        ]
        for node in found.body.nodes:
            for names in (node.input, node.output):
                names[:] = [self.labels.get(name, name) for name in names]
            node.name = f"{node.op_type}:{node.output[0]}"
        made = helper.make_graph(found.body.nodes, graph.name, inputs, outputs, constants)
        return helper.make_model(
            made,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)],
            ir_version=IR_VERSION,
            producer_name="openqnn",
        )

    # -- the border ------------------------------------------------------------------------------------------

    def _input(self, value: Value, port: Port) -> onnx.ValueInfoProto:
        dtype, name = outside_dtype(port), value.name
        self._taken.add(name)
        seen = self.body.reshape(name, value.shape) if port.shape != value.shape else name
        real = value.dtype.is_fixed and dtype.is_float
        if real and dtype is not DType.FLOAT_32:
            seen = self.body.cast(seen, np.float32)
        elif not real and dtype.numpy != value.dtype.numpy:
            seen = self.body.cast(seen, value.dtype.numpy)
        self._result(value, seen, identity(value.rank), real)
        kind = helper.np_dtype_to_tensor_dtype(dtype.numpy)
        return helper.make_tensor_value_info(name, kind, port.shape)

    def _output(self, value: Value, port: Port) -> onnx.ValueInfoProto:
        dtype = outside_dtype(port)
        real = value.dtype.is_fixed and dtype.is_float
        name = self._get(value, identity(value.rank), real)
        if port.shape != value.shape:
            name = self.body.reshape(name, port.shape)
        inside = np.dtype(np.float32) if real else value.dtype.numpy
        if inside != dtype.numpy:
            name = self.body.cast(name, dtype.numpy)
        self.body.nodes.append(helper.make_node("Identity", [name], [value.name]))
        kind = helper.np_dtype_to_tensor_dtype(dtype.numpy)
        return helper.make_tensor_value_info(value.name, kind, port.shape)

    # -- nodes -----------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        schema, perm = schema_of(node), permutation_of(node)
        if perm is not None and node.out.encoding == node.x(0).encoding:
            self._absorb(node, perm)
        elif schema.on_stored and _is_change(node):
            self._change(node)
        elif schema.lower is None:
            raise UnsupportedError(
                f"{node.where}: ONNX has no such operation",
                hint="write the graph as .dlc or .oqnn, which have it",
            )
        else:
            self._emit(node, replace(schema, lower=ONE_NODE.get(node.op, schema.lower)))

    def _change(self, node: Node) -> None:
        """Writes a change of type or encoding that keeps the real numbers."""
        x, out = node.x(0), node.out
        order = next(iter(self._orders(x)), identity(x.rank))
        real = self._get(x, order, real=True)
        if x.dtype is DType.FLOAT_16:
            real = self.body.cast(real, np.float32)
        if not out.dtype.is_fixed and out.dtype is not DType.FLOAT_32:
            real = self.body.cast(real, out.dtype.numpy)
        self._result(out, real, order, real=True)

    def _is_simulated(self, node: Node, schema: OpSchema) -> bool:
        return any(v.dtype.is_fixed for v in (*node.outputs, *node.inputs) if v is not None)

    def _result(self, value: Value, name: str, perm: Perm, real: bool) -> None:
        if name in self.types or name in self.body.constants:  # known under another name already
            name = self.body.op("Identity", name)
        if name != value.name:
            self.label(name, value)
        if real and value.dtype.is_fixed:
            stored = self._quantize(value, name, perm)
            self.label(stored, value, "_QuantizeLinear_Output")
            self._remember(value, perm, stored)
        else:
            self._remember(value, perm, name)

    def _derive(self, value: Value, perm: Perm, real: bool) -> str:
        """A transposition stands between pairs of its own, so that it is a node in fixed point, too."""
        if not value.dtype.is_fixed or (value.encoding is not None and value.encoding.blocks is not None):
            return super()._derive(value, perm, real)
        if real:
            name = self._dequantize(value, self._get(value, perm), perm)
            self.label(name, value, "_DequantizeLinear_Output")
            return name
        have = self._orders(value)
        if not have:
            return super()._derive(value, perm, real)
        base = next(iter(have))
        moved = self.body.transpose(self._get(value, base, real=True), compose(inverse(base), perm))
        return self._quantize(value, moved, perm)

    def _constant(self, value: Value, perm: Perm) -> str:
        name = super()._constant(value, perm)
        self.label(name, value)
        return name


def _is_change(node: Node) -> bool:
    """Whether it keeps the real numbers: a Cast takes stored integers as they are."""
    sides = [v for v in (node.x(0), node.out) if v.dtype.is_fixed]
    return bool(sides) and all(v.encoding is not None for v in sides) and schema_of(node).same_as is None


def qdq_model(graph: Graph) -> onnx.ModelProto:
    """The graph as an ONNX model."""
    return QdqLowering().model(graph)


def save_qdq_model(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes it; the file appears whole or not at all."""
    made = qdq_model(graph)
    if made.ByteSize() > LARGEST:
        raise UsageError(f"{path}: the weights are too large for one ONNX file", hint="write a .dlc")
    with replacing(path) as file:
        file.write(made.SerializeToString())
