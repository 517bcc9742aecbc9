"""Types: HTP computes with float16, float32 (as float16), int32 and bool; the rest goes through these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from openqnn.ir import DType, Encoding, Graph, Node, Value
from openqnn.ops import Builder, schema_of
from openqnn.ops.schema import Role
from openqnn.passes.edit import builder_at
from openqnn.targets.htp.rules import Instead, Refusal, rule, taken, takes

FLOAT, INT, BOOL = DType.FLOAT_32, DType.INT_32, DType.BOOL_8
SIGNED, UNSIGNED, HALF = DType.SFIXED_8, DType.UFIXED_8, 128

# HTP takes the other integers in a handful of ops only, or casts them (int8, int16, uint16: not even that).
WIDER: Final = {
    DType.INT_8: INT, DType.INT_16: INT, DType.UINT_8: INT, DType.UINT_16: INT, DType.UINT_32: INT,
    DType.INT_64: INT, DType.UINT_64: INT, DType.FLOAT_64: FLOAT,
}  # fmt: skip
_SIXTEEN = (DType.INT_16, DType.UINT_16)
_SMALL = (DType.INT_8, DType.UINT_8)  # every value is exact in float16

takes("Cast", kinds="FIB")
takes("NonMaxSuppression", kinds="")


def is_cast(node: Node) -> bool:
    return node.op == "Cast"


# -- once, before the rules ----------------------------------------------------------------------------------


def _is_coded(node: Node) -> bool:
    return any(v.dtype.is_fixed or v.encoding for v in (*filter(None, node.inputs), *node.outputs))


def widen_types(graph: Graph) -> dict[Node, Refusal]:
    """Every value gets a type that HTP computes with; what depended on the narrow type is spelled out."""
    refused: dict[Node, Refusal] = {}
    for node in list(graph.nodes):
        if _is_coded(node):
            continue
        b = builder_at(graph, node)
        from_integer = is_cast(node) and node.x(0).dtype.is_integer
        if (taken(node).wraps or from_integer) and node.out.dtype in _NARROW:
            _wrap_output(graph, node, b)
        elif _is_cast_to_sixteen(node):
            refused[node] = Refusal(
                f"{node.out.dtype.label} from floats: half precision holds every integer up to 2048 only",
                "quantize to 8 bits, or let the tool quantize the model",
            )
        elif node.x(0).dtype in _SMALL and taken(node).kinds and "I" not in taken(node).kinds:
            _in_float(graph, node, b)
    for value in graph.values():
        _widen(value)
    return refused


def _widen(value: Value) -> None:
    wider = WIDER.get(value.dtype)
    if wider is None or value.encoding is not None or _is_declared(value):
        return
    if value.data is not None:
        limits = np.iinfo(np.int32)
        if wider is INT and value.data.size and value.data.max() > limits.max:
            value.data = value.data.astype(np.int64).clip(limits.min, limits.max)
        value.data = value.data.astype(wider.numpy)
    value.dtype = wider


def finite_constants(graph: Graph) -> None:
    """Infinite constants become the largest number of half precision, which HTP's own numbers reach too."""
    for value in graph.constants():
        if value.dtype.is_float and value.data is not None and np.isinf(value.data).any():
            value.data = np.clip(value.data, -65504, 65504)


def _is_declared(value: Value) -> bool:
    """A result whose type the op itself fixes."""
    if value.producer is None:
        return False
    index = next(i for i, v in enumerate(value.producer.outputs) if v is value)
    return isinstance(schema_of(value.producer).result(index).dtype, DType)


_NARROW = (DType.INT_8, DType.INT_16, DType.UINT_8, DType.UINT_16)


def _wrap_output(graph: Graph, node: Node, b: Builder) -> None:
    """Narrow integers wrap around; int32 does not at the same place, so the excess is taken away."""
    old, kind = node.out, node.out.dtype
    size = 1 << kind.bits
    half = size // 2 if kind.signed else 0
    wide = Value(graph.unique(f"{old.name}.wide"), INT, old.shape)
    b.before = next(iter(_after(graph, node)), None)
    node.outputs = [wide]
    wide.producer = node
    x = b.add(wide, half) if half else wide
    x = b.mod(x, size)
    x = b.sub(x, half) if half else x
    last = x.producer
    assert last is not None
    last.outputs = [old]
    old.producer = last


def _after(graph: Graph, node: Node) -> list[Node]:
    nodes = list(graph.nodes)
    return nodes[nodes.index(node) + 1 :]


def _in_float(graph: Graph, node: Node, b: Builder) -> None:
    """8-bit integers in an op that has floats only: all of them are exact in float16."""
    for index, value in enumerate(node.inputs):
        if value is not None and value.dtype in _SMALL:
            graph.set_input(node, index, b.cast(value, FLOAT))
    for index, old in enumerate(list(node.outputs)):
        if old.dtype not in _SMALL:
            continue
        wide = Value(graph.unique(f"{old.name}.float"), FLOAT, old.shape)
        node.outputs[index] = wide
        wide.producer = node
        b.before = next(iter(_after(graph, node)), None)
        cast = b.cast(wide, INT).producer
        assert cast is not None
        cast.outputs = [old]
        old.producer = cast


# -- a rule for every node -----------------------------------------------------------------------------------


def kind_of(dtype: DType) -> str:
    return "B" if dtype is BOOL else "I" if dtype.is_integer else "F"


def _is_cast_to_sixteen(node: Node) -> bool:
    return is_cast(node) and node.x(0).dtype.is_float and node.out.dtype in _SIXTEEN


def fit_types(node: Node, b: Builder) -> Instead:
    """Casts around a node whose data HTP does not take in that type.

    Booleans go through int32 or, where there are floats only, float16: 0 and 1 are exact in both. Integers do
    not go through float16, which is exact up to 2048 only: such ops have rules of their own, or are refused.
    """
    allowed = taken(node).kinds
    if not allowed:
        return None
    data = [i for i, v in enumerate(node.inputs) if v is not None and _is_data(node, i)]
    kinds = {kind_of(node.x(i).dtype) for i in data if not node.x(i).dtype.is_fixed}
    if not kinds or kinds <= set(allowed):
        return None
    if "B" not in kinds and not ("I" in kinds and allowed == "B"):
        raise Refusal(
            f"HTP has {node.op} for floats only, and float16 does not hold every int32",
            "cast the data to float before this node, if its values stay below 2048",
        )
    return _computed_in(node, b, INT if "I" in allowed else BOOL if allowed == "B" else FLOAT, data)


def _computed_in(node: Node, b: Builder, target: DType, data: Sequence[int]) -> list[Value]:
    """The results of the node with its data cast to a type, and back."""
    inputs = list(node.inputs)
    for i in data:
        inputs[i] = _as_type(b, node.x(i), target)
    types = [target if v.dtype is BOOL and _follows(node, i) else v.dtype for i, v in enumerate(node.outputs)]
    params: dict[str, Any] = dict(node.params)
    made = b.many(node.op, *inputs, shapes=[v.shape for v in node.outputs], dtypes=types, **params)
    return [_as_type(b, new, old.dtype) for new, old in zip(made, node.outputs, strict=True)]


def _as_type(b: Builder, value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else b.cast(value, dtype)


def _is_data(node: Node, index: int) -> bool:
    operand = schema_of(node).operand(index)
    return operand.role is not Role.INDEX and operand.dtype is None


def _follows(node: Node, index: int) -> bool:
    return not isinstance(schema_of(node).result(index).dtype, DType)


# -- casts ---------------------------------------------------------------------------------------------------


@rule("Cast")
def cast_to_bool(node: Node, b: Builder) -> Instead:
    # HTP's Cast to bool gives False for negative numbers and for fractions below 1.
    x = node.x(0)
    return b.not_equal(x, 0) if node.out.dtype is BOOL and x.dtype is not BOOL else None


@rule("Cast")
def cast_to_same(node: Node, b: Builder) -> Instead:
    # What was a cast between integer types is none any more.
    x = node.x(0)
    return b.reshape(x, x.shape) if x.dtype is node.out.dtype else None


@rule("Cast")
def cast_signed_steps(node: Node, b: Builder) -> Instead:
    # HTP has signed bytes in fixed point as unsigned ones, and casts them to integers, and these to them, so.
    x, out = node.x(0), node.out
    if x.dtype is SIGNED and x.encoding is not None and out.dtype is INT:
        return b.sub(b.cast(b.convert(x, UNSIGNED, _moved(x.encoding)), INT), HALF)
    if out.dtype is SIGNED and out.encoding is not None and x.dtype is INT:
        return b.convert(b.cast(b.add(x, HALF), UNSIGNED, _moved(out.encoding)), SIGNED, out.encoding)
    return None


def _moved(encoding: Encoding) -> Encoding:
    """The encoding of the same real numbers in unsigned bytes."""
    return replace(encoding, offset=tuple(offset - HALF for offset in encoding.offset), symmetric=False)
