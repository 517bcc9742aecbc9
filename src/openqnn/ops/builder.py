"""Making checked nodes: parameters normalised, operands counted, shapes and types inferred."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, cast

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import (
    BUILTIN_PACKAGE,
    Array,
    DType,
    Encoding,
    Graph,
    Node,
    ParamValue,
    Shape,
    Value,
    dtype_of,
    op_key,
)
from openqnn.ops.schema import ABSENT, FREE, INDICES, LAST, OPS, RANK, REQUIRED, Axis, Kind, OpSchema, Param
from openqnn.ops.vocabulary import Vocabulary


def schema_of(node: Node) -> OpSchema:
    return OPS[node.op]


def kind_of(node: Node) -> Kind:
    return OPS[node.op].kind


def _known(op: str) -> OpSchema:
    if op in OPS:
        return OPS[op]
    near = get_close_matches(op, OPS, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "docs/ops.md lists them"
    raise ShapeError(f"there is no operation '{op}'", hint=hint)


def plain(value: Any) -> ParamValue:
    """Numpy scalars, arrays, lists and ranges as the plain nested tuples that parameters are kept in."""
    if isinstance(value, np.ndarray | np.generic):
        value = cast("Any", value.tolist())
    if isinstance(value, list | tuple | range):
        return tuple(plain(v) for v in cast("Sequence[Any]", value))
    return cast(ParamValue, value)


def _shape_of(value: ParamValue) -> Shape:
    return (len(value), *(_shape_of(value[0]) if value else ())) if isinstance(value, tuple) else ()


def _typed(value: ParamValue, convert: type) -> ParamValue:
    return tuple(_typed(v, convert) for v in value) if isinstance(value, tuple) else convert(value)


def normalise(param: Param, value: Any, where: str) -> ParamValue:
    """A parameter as the graph keeps it; ShapeError when it cannot be that."""
    value = plain(value)
    if param.members:
        return _member(param, value, where)
    shape = _shape_of(value)
    if not param.free and (
        len(shape) != len(param.shape)
        or any(want not in (-1, got) for want, got in zip(param.shape, shape, strict=True))
    ):
        raise ShapeError(f"{where}: parameter {param.name}={value} should have shape {list(param.shape)}")
    convert = bool if param.dtype is DType.BOOL_8 else float if param.dtype.is_float else int
    try:
        value = _typed(value, convert)
    except ValueError as e:
        raise ShapeError(f"{where}: parameter {param.name}={value} is no {param.dtype.label}") from e
    lowest = np.min(np.asarray(value), initial=0) if param.dtype is DType.UINT_32 else 0
    if lowest < 0:
        raise ShapeError(f"{where}: parameter {param.name}={value} must not be negative")
    return value


def _member(param: Param, value: ParamValue, where: str) -> str:
    names = dict(param.members)
    if isinstance(value, str) and value in names:
        return value
    if isinstance(value, int) and value in names.values():
        return param.member(value)
    raise ShapeError(f"{where}: {param.name}={value} is none of {', '.join(names)}")


def complete(schema: OpSchema, given: dict[str, Any], rank: int, where: str) -> dict[str, ParamValue]:
    """All parameters, defaults spelled out: the vendor's libraries disagree on what a missing one means."""
    for name in given:
        schema.param(name)
    params: dict[str, ParamValue] = {}
    for param in schema.params:
        value = given.get(param.name)
        if value is None:
            value = param.default
        if value is REQUIRED:
            raise ShapeError(f"{where}: parameter {param.name} is missing")
        if value is ABSENT:
            continue
        if value is param.default and isinstance(value, str):
            value = {LAST: rank - 1, RANK: rank}.get(value, value)
        params[param.name] = normalise(param, value, where)
    return params


def check_operands(schema: OpSchema, node: Node) -> None:
    """Counts and ranks of the inputs."""
    needed = sum(not i.optional for i in schema.inputs)
    if len(node.inputs) > len(schema.inputs) and not schema.variadic:
        raise ShapeError(f"{node.where}: {len(node.inputs)} inputs, at most {len(schema.inputs)} are known")
    for index in range(max(needed, len(node.inputs))):
        operand = schema.operand(index)
        value = node.inputs[index] if index < len(node.inputs) else None
        if value is None and not operand.optional:
            raise ShapeError(f"{node.where}: input '{operand.name}' is missing")
        ranks = operand.rank if isinstance(operand.rank, tuple) else (operand.rank,)
        if value is not None and operand.rank is not None and value.rank not in ranks:
            want = " or ".join(map(str, ranks))
            raise ShapeError(
                f"{node.where}: input '{operand.name}' has shape {list(value.shape)}, rank {want} expected"
            )


def check_axes(schema: OpSchema, node: Node) -> None:
    """Parameters that name axes of input 0 stay inside its rank."""
    rank = node.x(0).rank if node.inputs and node.inputs[0] is not None else 0
    for param in schema.params:
        if param.name not in node.params:
            continue
        if param.axis is Axis.EACH:
            count = len(node.rows(param.name))
            if count != rank and not (param.more and count > rank):
                raise ShapeError(f"{node.where}: {param.name} has {count} entries for rank {rank}")
        elif param.axis is not Axis.NO:
            _check_named_axes(node, param, rank)


def _check_named_axes(node: Node, param: Param, rank: int) -> None:
    named = (node.int(param.name),) if param.axis is Axis.ONE else node.ints(param.name)
    if any(not 0 <= a < rank for a in named):
        shape = list(node.x(0).shape) if rank else []
        raise ShapeError(f"{node.where}: {param.name}={node.params[param.name]} is no axis of {shape}")
    if len(set(named)) != len(named):
        raise ShapeError(f"{node.where}: {param.name}={named} names an axis twice")


def infer_outputs(node: Node) -> list[tuple[Shape, DType | None]]:
    """Shape and type of every output, from the inputs, the parameters and the declared outputs."""
    schema = schema_of(node)
    check_operands(schema, node)
    check_axes(schema, node)
    shapes = schema.infer(node)
    return [(tuple(int(d) for d in s), _dtype(schema, node, i)) for i, s in enumerate(shapes)]


def _dtype(schema: OpSchema, node: Node, index: int) -> DType | None:
    declared = schema.result(index).dtype
    if declared == FREE:
        return None
    if declared == INDICES:
        given = node.outputs[index].dtype if index < len(node.outputs) else DType.INT_32
        return given if given.is_integer else DType.INT_32
    return declared if isinstance(declared, DType) else node.x(cast(int, declared)).dtype


class Builder(Vocabulary):
    """Adds nodes to a graph, by the words of the vocabulary or by op name: `b("Lrn", x, alpha=..., ...)`."""

    def __init__(self, graph: Graph, source: str = "", before: Node | None = None) -> None:
        self.graph = graph
        self.source = source
        self.before = before
        self.stem = "node"

    def __call__(self, op: str, *inputs: Value | None, **params: Any) -> Value:
        """One node, its first output. See `many` for the keywords beyond the op's parameters."""
        return self.many(op, *inputs, **params)[0]

    def many(
        self,
        op: str,
        *inputs: Value | None,
        shapes: Sequence[Shape] = (),
        shape: Shape | None = None,
        dtype: DType | None = None,
        dtypes: Sequence[DType] = (),
        encoding: Encoding | None = None,
        name: str = "",
        package: str = BUILTIN_PACKAGE,
        **params: Any,
    ) -> list[Value]:
        """One node, all outputs. `shape`, `dtype` declare what the op cannot infer; `name` names output 0."""
        op = op_key(package, op)
        schema = _known(op)
        declared = list(shapes) or ([shape] if shape is not None else [])
        types = list(dtypes) or ([dtype] if dtype is not None else [])
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        first = inputs[0] if inputs else None
        label = name or self.graph.unique(self.stem)
        full = complete(schema, params, first.rank if first is not None else 0, f"{op} '{label}'")
        filled = [*types, *[DType.FLOAT_32] * len(declared)]
        hints = [Value("", kind, tuple(dims)) for kind, dims in zip(filled, declared, strict=False)]
        node = Node(op, label, list(inputs), hints, full, self.source, package)
        inferred = infer_outputs(node)
        node.outputs = [self._output(label, i, s, t, types) for i, (s, t) in enumerate(inferred)]
        if encoding is not None:
            node.outputs[0].encoding = encoding
        self.place(node)
        return node.outputs

    def place(self, node: Node) -> None:
        """Where a node goes that was made."""
        self.graph.add(node, self.before)

    def _output(self, label: str, index: int, shape: Shape, dtype: DType | None, types: list[DType]) -> Value:
        chosen = types[index] if index < len(types) else dtype
        if chosen is None:
            raise ShapeError(f"'{label}': output {index} needs a data type")
        return Value(label if index == 0 else self.graph.unique(f"{label}.{index}"), chosen, shape)

    def scalar(self, number: float, like: Value) -> Value:
        """A one-element constant of the type of another value."""
        return self.const([number], like.dtype.numpy)

    def constant(self, data: Any, name: str = "") -> Value:
        array: Array = np.asarray(data)
        return self.const(array, {"f": np.float32, "i": np.int32}.get(array.dtype.kind), name)

    def const(self, data: Any, dtype: Any = None, name: str = "") -> Value:
        array: Array = np.asarray(data, dtype)
        return self.graph.constant(name or f"{self.stem}.const", array, dtype_of(array.dtype))
