"""Static shapes for the inputs of a model: QNN graphs have no dynamic ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from openqnn.errors import DynamicShapeError, ShapeError
from openqnn.ir import Shape


@dataclass(frozen=True)
class Dimensions:
    """What the user said about shapes: whole shapes by input name, symbols by name, and the batch size."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None


def input_shape(info: onnx.ValueInfoProto, said: Dimensions) -> Shape:
    """The shape of an input, with every dimension settled."""
    tensor = info.type.tensor_type
    declared = [_dimension(d) for d in tensor.shape.dim]
    if info.name in said.shapes:
        given = tuple(said.shapes[info.name])
        _check_symbols(info.name, declared, given, said.symbols)
        return _checked(info.name, declared if tensor.HasField("shape") else None, given)
    if not tensor.HasField("shape"):
        raise DynamicShapeError(f"input '{info.name}' has no shape", {info.name: "N,..."})
    shape = [_settled(d, i, said) for i, d in enumerate(declared)]
    if any(isinstance(d, str) for d in shape):
        text = ",".join(d if isinstance(d, str) else str(d) for d in shape)
        message = f"input '{info.name}' has dynamic dimensions: [{text}]"
        raise DynamicShapeError(message, {info.name: _example(shape)})
    return _sized(info.name, tuple(int(d) for d in shape))


def _check_symbols(
    name: str, declared: Sequence[int | str], given: Shape, symbols: Mapping[str, int]
) -> None:
    for symbol, size in zip(declared, given, strict=False):
        if isinstance(symbol, str) and symbols.get(symbol, size) != size:
            raise ShapeError(
                f"input '{name}': shape {list(given)} has {size} where '{symbol}' is said to be"
                f" {symbols[symbol]}",
                hint="leave one of the two out",
            )


def is_batch_unused(said: Dimensions, inputs: Sequence[onnx.ValueInfoProto]) -> bool:
    """Whether no input has this batch: all have shapes of their own, or are single numbers."""
    return said.batch is not None and all(
        tuple(said.shapes[i.name][:1]) != (said.batch,) if i.name in said.shapes else _is_number(i)
        for i in inputs
    )


def _is_number(info: onnx.ValueInfoProto) -> bool:
    return info.type.tensor_type.HasField("shape") and not info.type.tensor_type.shape.dim


def _sized(name: str, shape: Shape) -> Shape:
    """QNN tensors are never empty, and their dimensions are 32-bit numbers."""
    if 0 in shape:
        hint = f"give it another one, such as {','.join(str(d or 1) for d in shape)}"
        raise ShapeError(
            f"input '{name}': shape {list(shape)} has a dimension of size 0; QNN has no empty tensors",
            hint=hint,
        )
    if max(shape, default=0) >= 1 << 32:
        raise ShapeError(f"input '{name}': shape {list(shape)} is beyond QNN's 32-bit dimensions")
    return shape


def _dimension(d: onnx.TensorShapeProto.Dimension) -> int | str:
    if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0:
        return d.dim_value
    return d.dim_param or "?"


def _settled(d: int | str, index: int, said: Dimensions) -> int | str:
    if index == 0 and said.batch is not None:
        return said.batch
    return said.symbols.get(d, d) if isinstance(d, str) else d


def _checked(name: str, declared: list[int | str] | None, shape: Shape) -> Shape:
    if any(d < 0 for d in shape):
        raise ShapeError(f"input '{name}': shape {list(shape)} has a negative dimension")
    if declared is not None and len(declared) != len(shape):
        raise ShapeError(
            f"input '{name}': shape {list(shape)} given, the model has rank {len(declared)}: {declared}"
        )
    return _sized(name, shape)


def _open(dimension: str, axis: int) -> str:
    """What to write for a dimension: one sample, and else a word that cannot be taken for an answer."""
    return "1" if axis == 0 else re.sub(r"\W", "_", dimension).strip("_").upper() or "N"


def _example(shape: Sequence[int | str]) -> str:
    return ",".join(_open(d, axis) if isinstance(d, str) else str(d) for axis, d in enumerate(shape))
