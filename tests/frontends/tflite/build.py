"""Small TFLite models, written with LiteRT's own object API: a single operator, or a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

Array = NDArray[Any]
TYPES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int32": "INT32", "uint8": "UINT8", "int64": "INT64",
    "bool": "BOOL", "int16": "INT16", "int8": "INT8", "uint32": "UINT32", "int4": "INT4",
}  # fmt: skip


@dataclass(frozen=True)
class Quant:
    """Scale and zero point, or several along an axis."""

    scale: Sequence[float]
    zero: Sequence[int]
    axis: int = 0


@dataclass(frozen=True)
class T:
    """A tensor: an input by shape, or a constant by data."""

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    data: Array | None = None
    quant: Quant | None = None
    name: str = ""
    variable: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)  # other fields of the table


def const(data: Any, dtype: str | None = None, quant: Quant | None = None, name: str = "") -> T:
    array = np.asarray(data, dtype)
    if dtype is None and array.dtype == np.float64:
        array = array.astype(np.float32)
    if dtype is None and array.dtype == np.int64:
        array = array.astype(np.int32)
    return T(array.shape, array.dtype.name, array, quant, name)


@dataclass(frozen=True)
class Op:
    """An operator: tensors by their place in the list, options by their names in the schema."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""  # the options' table, where the op's name does not give it
    custom: bytes = b""


@dataclass(frozen=True)
class Body:
    tensors: Sequence[T]
    ops: Sequence[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]


def packed(data: Array, dtype: str) -> bytes:
    if dtype != "int4":
        return np.ascontiguousarray(data).tobytes()
    nibbles = data.ravel().astype(np.uint8) & 15
    nibbles = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
    return (nibbles[::2] | (nibbles[1::2] << 4)).tobytes()


class Writer:
    def __init__(self) -> None:
        self.model: Any = schema.ModelT()
        self.model.version, self.model.description = 3, "test"
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.codes: dict[str, int] = {}

    def tensor(self, index: int, t: T) -> Any:
        made: Any = schema.TensorT()
        made.name = (t.name or f"t{index}").encode()
        made.shape = list(t.shape)
        made.type = getattr(schema.TensorType, TYPES.get(t.dtype, t.dtype))
        made.isVariable = t.variable
        if t.data is not None:
            buffer: Any = schema.BufferT()
            buffer.data = np.frombuffer(packed(t.data, t.dtype), np.uint8)
            self.model.buffers.append(buffer)
            made.buffer = len(self.model.buffers) - 1
        if t.quant is not None:
            q: Any = schema.QuantizationParametersT()
            q.scale, q.zeroPoint = list(t.quant.scale), list(t.quant.zero)
            q.quantizedDimension = t.quant.axis
            made.quantization = q
        for key, value in t.more.items():
            setattr(made, key, value)
        return made

    def code(self, name: str) -> int:
        if name not in self.codes:
            made: Any = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, name, None)
            made.builtinCode = schema.BuiltinOperator.CUSTOM if number is None else number
            made.deprecatedBuiltinCode = min(made.builtinCode, 127)
            made.customCode = name.encode() if number is None else None
            made.version = VERSIONS.get(name, 1)
            self.model.operatorCodes.append(made)
            self.codes[name] = len(self.model.operatorCodes) - 1
        return self.codes[name]

    def operator(self, op: Op) -> Any:
        made: Any = schema.OperatorT()
        made.opcodeIndex = self.code(op.name)
        made.inputs, made.outputs = list(op.inputs), list(op.outputs)
        if op.custom:
            made.customOptions = np.frombuffer(op.custom, np.uint8)
        if op.kind:
            options: Any = getattr(schema, f"{op.kind}T")()
            for key, value in op.options.items():
                setattr(options, key, value)
            number = getattr(schema.BuiltinOptions, op.kind, None)
            if number is not None:
                made.builtinOptionsType, made.builtinOptions = number, options
            else:
                made.builtinOptions2Type = getattr(schema.BuiltinOptions2, op.kind)
                made.builtinOptions2 = options
        return made

    def subgraph(self, body: Body, name: str) -> Any:
        made: Any = schema.SubGraphT()
        made.name = name.encode()
        made.tensors = [self.tensor(i, t) for i, t in enumerate(body.tensors)]
        made.operators = [self.operator(o) for o in body.ops]
        made.inputs, made.outputs = list(body.inputs), list(body.outputs)
        return made


VERSIONS = {"BROADCAST_TO": 2}  # the least that LiteRT has


def model(*bodies: Body, signatures: Mapping[str, int] | None = None) -> bytes:
    """A file of some subgraphs; the first is the main one."""
    writer = Writer()
    writer.model.subgraphs = [writer.subgraph(b, f"g{i}") for i, b in enumerate(bodies)]
    if signatures:
        writer.model.signatureDefs = [_signature(k, i, bodies[i]) for k, i in signatures.items()]
    builder = flatbuffers.Builder(1024)
    builder.Finish(writer.model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _signature(key: str, index: int, body: Body) -> Any:
    made: Any = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = key.encode(), index
    made.inputs = [_mapping(f"in{i}", t) for i, t in enumerate(body.inputs)]
    made.outputs = [_mapping(f"out{i}", t) for i, t in enumerate(body.outputs)]
    return made


def _mapping(name: str, index: int) -> Any:
    made: Any = schema.TensorMapT()
    made.name, made.tensorIndex = name.encode(), index
    return made


def single(
    op: str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    kind: str = "",
    custom: bytes = b"",
    **options: Any,
) -> bytes:
    """A model of one operator; None is an input that is left out."""
    tensors = [t for t in inputs if t is not None] + list(outputs)
    places, at = list[int](), 0
    for t in inputs:
        places.append(-1 if t is None else at)
        at += t is not None
    results = list(range(at, len(tensors)))
    feeds = [i for i in range(at) if tensors[i].data is None and not tensors[i].variable]
    return model(Body(tensors, [Op(op, places, results, options, kind, custom)], feeds, results))
