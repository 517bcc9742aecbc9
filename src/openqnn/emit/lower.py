"""The one lowering from a graph to plain QNN records; QNN's own conventions live here and nowhere else.

Names are made QNN's; rank 0 becomes [1]; a graph output that no node produces gets a Reshape of its own, and
inputs that no node reads are left out, see `openqnn.qnn.net.without_idle`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openqnn.errors import UnsupportedError
from openqnn.ir import BUILTIN_PACKAGE, OVERRIDE, DType, Encoding, Graph, Node, ParamValue, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Param
from openqnn.qnn.net import Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind, block_axis, qnn_name

COPY_OP = "Reshape"  # QNN has no identity; a reshape to the same shape is one


class _Names:
    """Unique QNN names, in order of appearance."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._of: dict[object, str] = {}

    def of(self, what: Value | Node) -> str:
        if what not in self._of:
            self._of[what] = self.fresh(what.name)
        return self._of[what]

    def fresh(self, name: str) -> str:
        stem = candidate = qnn_name(name)
        count = 1
        while candidate in self._taken:
            count += 1
            candidate = f"{stem}_{count}"
        self._taken.add(candidate)
        return candidate


def _produced(graph: Graph) -> set[Value]:
    return {value for node in graph.nodes for value in node.outputs}


def lower(graph: Graph, names: dict[str, str] | None = None, *, idle: bool = False) -> Net:
    """Plain records of the whole graph. Inputs and outputs keep the graph's order.

    `names` is told which record each value of the graph became, if any. With `idle`, inputs that no node
    reads are there too, for those who only look.
    """
    tensor_names, node_names = _Names(), _Names()
    produced = _produced(graph)
    reads = produced.intersection(graph.outputs)
    tensors: dict[str, NetTensor] = {}

    def tensor(value: Value) -> str:
        name = tensor_names.of(value)
        if name not in tensors:
            made = _tensor(value, name, _kind(graph, value, reads))
            said = graph.provenance.get(value.name) == OVERRIDE
            tensors[name] = replace(made, overridden=True) if said else made
            if names is not None:
                names[value.name] = name
        return name

    def record(node: Node) -> NetNode:
        return NetNode(
            node_names.of(node), node.package, node.op_name,
            tuple(None if v is None else tensor(v) for v in node.inputs),
            tuple(tensor(v) for v in node.outputs),
            _params(node, node_names.of(node), tensor_names), node.source,
        )  # fmt: skip

    shown = graph.inputs if idle else [v for v in graph.inputs if v.users or graph.is_output(v)]
    inputs = tuple(tensor(v) for v in shown)
    nodes = [record(node) for node in graph.nodes]
    outputs: list[str] = []
    for value in graph.outputs:
        name = tensor(value)
        if value not in produced or name in outputs:
            copy = tensor_names.fresh(f"{value.name}_copy")
            tensors[copy] = _tensor(value, copy, TensorKind.APP_READ, with_data=False)
            nodes.append(NetNode(node_names.fresh(copy), BUILTIN_PACKAGE, COPY_OP, (name,), (copy,)))
            name = copy
        outputs.append(name)
    return Net(qnn_name(graph.name), tensors, inputs, tuple(outputs), tuple(nodes))


def _kind(graph: Graph, value: Value, reads: set[Value]) -> TensorKind:
    if value.is_constant:
        return TensorKind.STATIC
    if value in reads:
        return TensorKind.APP_READ
    return TensorKind.APP_WRITE if any(value is v for v in graph.inputs) else TensorKind.NATIVE


def _tensor(value: Value, name: str, kind: TensorKind, with_data: bool = True) -> NetTensor:
    data = value.data.reshape(value.shape or (1,)) if value.data is not None and with_data else None
    return NetTensor(
        name, kind, int(value.dtype), value.shape or (1,), _quant(value.dtype, value.encoding), data
    )


def _quant(dtype: DType, encoding: Encoding | None) -> NetQuant | None:
    if encoding is None:
        return None
    narrow = encoding.bitwidth if encoding.bitwidth < dtype.bits else None
    if encoding.blocks is None:
        return NetQuant(encoding.scale, encoding.offset, encoding.axis, narrow)
    if encoding.axis is None or encoding.blocks.axis != block_axis(encoding.axis):
        raise UnsupportedError(
            f"QNN has no blocks along axis {encoding.blocks.axis} with scales along axis {encoding.axis}",
            hint="blocks along the input channels, which lie beside the output channels",
        )
    return NetQuant(encoding.scale, encoding.offset, encoding.axis, narrow, encoding.blocks.multiples)


def _params(node: Node, name: str, names: _Names) -> tuple[tuple[str, NetScalar | NetTensor], ...]:
    """Tensor parameters first, then scalars, each in alphabetical order, as QNN's own tools write them."""
    declared = [p for p in schema_of(node).params if p.name in node.params and p.applies(node.params)]
    ordered = sorted(declared, key=lambda p: (not p.is_tensor, p.name))
    return tuple((p.name, _param(p, node.params[p.name], name, names, node.out.dtype)) for p in ordered)


def _param(param: Param, value: ParamValue, node: str, names: _Names, out: DType) -> NetScalar | NetTensor:
    if param.is_tensor:
        data = np.asarray(value, param.dtype.numpy)
        return NetTensor(
            names.fresh(f"{node}_{param.name}"), TensorKind.STATIC, int(param.dtype), data.shape, data=data
        )
    number = param.code(value) if isinstance(value, str) else value
    assert not isinstance(number, tuple | str)
    if param.as_output and out.is_integer:
        return NetScalar(int(out), int(number))
    return NetScalar(int(param.dtype), number)
