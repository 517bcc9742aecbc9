"""The way back: a graph from plain QNN records, by the same declarations that `lower` writes them with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openqnn.errors import ModelError, OpenQnnError
from openqnn.ir import Blocks, DType, Encoding, Graph, Node, Port, Value
from openqnn.ops import complete, infer_outputs, plain
from openqnn.ops.schema import OPS, OpSchema, Param
from openqnn.qnn.net import Net, NetNode, NetScalar, NetTensor, block_axis


def graph_of(net: Net) -> Graph:
    """The graph that the records describe. Parameters that backends do not want to see have their defaults.

    Raises ModelError for an operation that is not declared, or one that does not fit its declaration.
    """
    graph = Graph(net.name)
    values = {name: value_of(tensor) for name, tensor in net.tensors.items()}
    graph.reserve(values)
    for name in net.inputs:
        graph.inputs.append(values[name])
        graph.ports[name] = Port(values[name].dtype, values[name].shape)
    for record in net.nodes:
        _add(graph, record, values)
    graph.sort()
    for name in net.outputs:
        graph.add_output(values[name])
    return graph


def value_of(tensor: NetTensor) -> Value:
    """A tensor of QNN's records as a value of the graph."""
    try:
        dtype = DType(tensor.dtype)
    except ValueError:
        raise ModelError(f"tensor '{tensor.name}' has the unknown data type {tensor.dtype:#x}") from None
    data = tensor.data.reshape(tensor.dims) if tensor.data is not None else None
    return Value(tensor.name, dtype, tensor.dims, _encoding(dtype, tensor), data)


def _encoding(dtype: DType, tensor: NetTensor) -> Encoding | None:
    quant = tensor.quant
    if quant is None:
        return None
    found = Encoding(quant.scales, quant.offsets, quant.bitwidth or dtype.bits, quant.axis)
    if not quant.multiples or quant.axis is None:
        return found
    axis = block_axis(quant.axis)
    size, rest = divmod(tensor.dims[axis], quant.block_count)
    if rest:
        raise ModelError(f"tensor '{tensor.name}': {tensor.dims[axis]} inputs in {quant.block_count} blocks")
    return replace(found, symmetric=True, blocks=Blocks(axis, size, quant.multiples))


def _add(graph: Graph, record: NetNode, values: dict[str, Value]) -> None:
    schema = OPS.get(record.op)
    if schema is None:
        raise ModelError(f"{record}: operation '{record.op}' of package '{record.package}' is not known")
    inputs = [None if name is None else values[name] for name in record.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    outputs = [values[name] for name in record.outputs]
    rank = inputs[0].rank if inputs and inputs[0] is not None else 0
    try:
        params = complete(schema, _params(schema, record), rank, str(record))
        node = Node(record.op, record.name, inputs, outputs, params, record.source, record.package)
        _restore_scalars(node)
    except OpenQnnError as e:
        raise ModelError(e.message, hint=e.hint) from e
    graph.add(node)


def _restore_scalars(node: Node) -> None:
    """QNN writes rank 0 as [1]: a result is a scalar again where its op says that it is one."""
    for value, (shape, _) in zip(node.outputs, infer_outputs(node), strict=False):
        if shape == () and value.shape == (1,):
            value.shape = ()


def _params(schema: OpSchema, record: NetNode) -> dict[str, Any]:
    return {name: _param(schema.param(name), value) for name, value in record.params}


def _param(param: Param, value: NetScalar | NetTensor) -> Any:
    if isinstance(value, NetTensor):
        return plain(value.data) if value.data is not None else ()
    return param.member(int(value.value)) if param.members else value.value
