"""ONNX ops that ONNX itself defines as functions of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import defs, helper

from openqnn.ir import Value


@dataclass(frozen=True)
class Function:
    """A body to translate in place of a node."""

    nodes: list[onnx.NodeProto]
    inputs: list[str]
    outputs: list[str]
    opsets: dict[str, int]


def _schema(op: str, opset: int, domain: str) -> Any:
    """The op's schema, None when ONNX does not know it. Its stubs leave out what is asked of it here: hence
    Any."""
    try:
        return defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None


def has_body(node: onnx.NodeProto, domain: str, opset: int) -> bool:
    """Whether ONNX defines the op by others, whatever the types."""
    schema = _schema(node.op_type, opset, domain)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(node: onnx.NodeProto, inputs: Sequence[Any], domain: str, opset: int) -> Function | None:
    """The function body of an op with the node's attributes filled in; None when ONNX has none."""
    schema = _schema(node.op_type, opset, domain)
    if schema is None:
        return None
    proto = _context_dependent(schema, node, inputs, opset) or _plain(schema, opset)
    if proto is None:
        return None
    attributes = {a.name: a.default_value for a in schema.attributes.values() if a.default_value.name}
    attributes.update({a.name: a for a in node.attribute})
    given = len(inputs)
    absent = {n for i, n in enumerate(proto.input) if i >= given or inputs[i] is None}
    nodes = [_bound(n, attributes, absent) for n in proto.node]
    opsets = {o.domain: o.version for o in proto.opset_import if o.version}
    return Function(nodes, list(proto.input), list(proto.output), opsets)


def _plain(schema: Any, opset: int) -> onnx.FunctionProto | None:
    versions = [v for v in schema.function_opset_versions if v <= opset]
    if not versions:
        return None
    return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(max(versions)))


def _context_dependent(
    schema: Any, node: onnx.NodeProto, inputs: Sequence[Any], opset: int
) -> onnx.FunctionProto | None:
    """Some bodies depend on the types of the inputs."""
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        return None
    types = [_type(v) for v in inputs]
    try:
        found = schema.get_context_dependent_function_with_opset_version(
            max(versions), node.SerializeToString(), [t.SerializeToString() for t in types]
        )
    except Exception:  # the builders of bodies throw what C++ throws when they do not apply
        return None
    return onnx.FunctionProto.FromString(found)


def _type(value: Any) -> onnx.TypeProto:
    if not isinstance(value, Value):
        return onnx.TypeProto()
    return helper.make_tensor_type_proto(
        helper.np_dtype_to_tensor_dtype(value.dtype.numpy), list(value.shape)
    )


def _bound(
    node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], absent: set[str]
) -> onnx.NodeProto:
    """A body's node: references to attributes become values, inputs that the call leaves out stay out."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    bound.input[:] = ["" if i in absent else i for i in node.input]
    del bound.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.attribute.append(attribute)
        elif attribute.ref_attr_name in attributes:
            copy = onnx.AttributeProto()
            copy.CopyFrom(attributes[attribute.ref_attr_name])
            copy.name = attribute.name
            bound.attribute.append(copy)
    return bound
