"""The way back: a graph from plain QNN records, by the same declarations that `lower` writes them with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openqnn.errors import ModelError, OpenQnnError
from openqnn.formats.op_package import SCALAR, OperandDef
from openqnn.ir import BUILTIN_PACKAGE, Blocks, DType, Encoding, Graph, Node, Port, Value, op_key
from openqnn.ops import complete, infer_outputs, plain
from openqnn.ops.custom import datatype_name, declare_seen, is_seen
from openqnn.ops.schema import OPS, REQUIRED, OpSchema, Param
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
    inputs = [None if name is None else values[name] for name in record.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    outputs = [values[name] for name in record.outputs]
    op = _op(record, inputs, outputs)
    schema = OPS[op]
    rank = inputs[0].rank if inputs and inputs[0] is not None else 0
    try:
        params = complete(schema, _params(schema, record), rank, str(record))
        node = Node(op, record.name, inputs, outputs, params, record.source, record.package)
        _restore_scalars(node)
    except OpenQnnError as e:
        raise ModelError(e.message, hint=e.hint) from e
    graph.add(node)


def _op(record: NetNode, inputs: list[Value | None], outputs: list[Value]) -> str:
    """The op's key: of its package, or QNN's own under another package's name.

    An operation that nobody declared is taken as the records have it.
    """
    key = op_key(record.package, record.op)
    if key in OPS and (not is_seen(key) or _fits(OPS[key], record)):
        return key
    if record.op in OPS:
        return record.op
    if record.package == BUILTIN_PACKAGE:
        raise ModelError(f"{record}: operation '{record.op}' of package '{record.package}' is not known")
    given = [v.dtype for v in inputs if v is not None]
    params = [_seen_param(name, value) for name, value in record.params]
    return declare_seen(record.package, record.op, given, [v.dtype for v in outputs], params)


def _fits(schema: OpSchema, record: NetNode) -> bool:
    """Whether an op that is known from a file is used here as it was there."""
    names = {p.name for p in schema.params}
    needed = {p.name for p in schema.params if p.default is REQUIRED}
    given = {name for name, _ in record.params}
    return needed <= given <= names and len(record.inputs) <= len(schema.inputs)


def _seen_param(name: str, value: NetScalar | NetTensor) -> OperandDef:
    rank = f"{len(value.dims)}D" if isinstance(value, NetTensor) else SCALAR
    return OperandDef(name, datatypes=(datatype_name(DType(value.dtype)),), rank=rank)


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
