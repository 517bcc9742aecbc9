"""Types that ONNX Runtime's CPU kernels lack: computed in a wider type that they have, with casts around the
node.

QNN graphs hold types such as uint16 or int8 in ops for which ONNX Runtime has no such kernel. Only when it
refuses a graph for that reason is every node looked at; the kernels' own registry says what each accepts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import onnx
import onnxruntime.capi.onnxruntime_pybind11_state as state
from onnx import TensorProto, defs, helper, shape_inference

_CAST = "Cast"
_WIDER = ("tensor(int32)", "tensor(int64)", "tensor(float)", "tensor(double)")


@lru_cache(maxsize=1)
def _kernels() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain in ("", "ai.onnx"):
            found.setdefault(kernel.op_name, []).append(kernel)
    return found


def _accepts(kernel: Any, types: dict[str, str]) -> bool:
    constraints = kernel.type_constraints
    return all(not constraints.get(name) or given in constraints[name] for name, given in types.items())


def _type_name(code: int) -> str:
    """The type as the registry spells it; protobuf's names are these in capitals."""
    return f"tensor({TensorProto.DataType.Name(code).lower()})"


def _type_code(name: str) -> int:
    return TensorProto.DataType.Value(name.removeprefix("tensor(").removesuffix(")").upper())


def _formals(formals: Any, names: Any) -> list[tuple[str, str]]:
    """Value name and type variable of every argument; the last formal may repeat."""
    return [(name, formals[min(i, len(formals) - 1)].type_str) for i, name in enumerate(names) if name]


def with_known_kernels(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with casts around every node that no kernel takes as it is."""
    opset = next(o.version for o in model.opset_import if not o.domain)
    types = _types(model)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes.extend(_widened(node, opset, types))
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.node[:]
    wide.graph.node.extend(nodes)
    return wide


def _types(model: onnx.ModelProto) -> dict[str, int]:
    inferred = shape_inference.infer_shapes(model).graph
    types = {t.name: t.data_type for t in inferred.initializer}
    for info in (*inferred.input, *inferred.value_info, *inferred.output):
        types[info.name] = info.type.tensor_type.elem_type
    return types


def _widened(node: onnx.NodeProto, opset: int, types: dict[str, int]) -> list[onnx.NodeProto]:
    kernels = _kernels().get(node.op_type, [])
    if node.domain or not kernels or node.op_type == _CAST:
        return [node]
    schema = defs.get_schema(node.op_type, opset)
    inputs, outputs = _formals(schema.inputs, node.input), _formals(schema.outputs, node.output)
    bound = {var: _type_name(types[name]) for name, var in (*inputs, *outputs) if types.get(name)}
    variables = dict.fromkeys(var for _, var in (*inputs, *outputs) if var in bound)
    if any(_accepts(k, bound) for k in kernels):
        return [node]
    for variable in variables:
        # uint32 does not fit into int32
        for wider in _WIDER[bound[variable] == "tensor(uint32)" :]:
            if any(_accepts(k, {**bound, variable: wider}) for k in kernels):
                return _around(node, inputs, outputs, variable, _type_code(wider), types)
    return [node]


def _around(
    node: onnx.NodeProto,
    inputs: list[tuple[str, str]],
    outputs: list[tuple[str, str]],
    variable: str,
    wider: int,
    types: dict[str, int],
) -> list[onnx.NodeProto]:
    """The node in the wider type, its arguments of that type variable cast before and back after."""
    rename = {n: f"{n}.wide" for n, var in (*inputs, *outputs) if var == variable}
    made = node.output[0]
    before = [
        helper.make_node(_CAST, [n], [f"{made}.{rename[n]}"], to=wider)
        for n in dict.fromkeys(n for n, var in inputs if var == variable)
    ]
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.input[:] = [f"{made}.{rename[n]}" if n in rename else n for n in node.input]
    inner.output[:] = [rename.get(n, n) for n in node.output]
    after = [helper.make_node(_CAST, [rename[n]], [n], to=types[n]) for n, var in outputs if var == variable]
    return [*before, inner, *after]
