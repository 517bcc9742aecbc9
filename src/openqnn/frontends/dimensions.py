"""Static shapes for the inputs of a model: QNN graphs have no dynamic ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final, cast

import numpy as np

from openqnn.errors import DynamicShapeError, ShapeError, UsageError
from openqnn.ir import Array, DType, Shape

UNNAMED: Final = "?"  # stands for a symbol that has no name


@dataclass(frozen=True)
class Dimensions:
    """What the user said about shapes: whole shapes by input name, symbols by name, and the batch size; and
    of inputs that are to be constants, their values."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def dimensions_of(
    shapes: object = None, symbols: object = None, batch: object = None, values: object = None
) -> Dimensions:
    """What was said, checked: UsageError where it is of another kind than it must be."""
    named_shapes = _mapping("input_shapes", shapes, "{'x': (1, 3, 224, 224)}")
    for name, shape in named_shapes.items():
        if isinstance(shape, str) or not isinstance(shape, Iterable) or not all(map(_is_whole, shape)):
            raise UsageError(
                f"input_shapes has {shape!r} for '{name}', which is no list of whole numbers",
                hint=f"input_shapes={{{name!r}: (1, 3, 224, 224)}}",
            )
    named_sizes = _mapping("dims", symbols, "{'batch': 1}")
    for name, size in (*named_sizes.items(), *([("batch", batch)] if batch is not None else [])):
        if not _is_whole(size):
            raise UsageError(f"the size of '{name}' is {size!r}, and must be a whole number")
    whole = {name: tuple(map(int, shape)) for name, shape in named_shapes.items()}
    sizes = {name: int(size) for name, size in named_sizes.items()}
    number = None if batch is None else int(cast("int", batch))
    return Dimensions(whole, sizes, number, _mapping("input_values", values, "{'k': 10}"))


def _mapping(what: str, given: object, example: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is a {type(given).__name__}, not a mapping", hint=f"{what}={example}")
    return dict(given)


def _is_whole(size: object) -> bool:
    return isinstance(size, Integral) and not isinstance(size, bool)


def frozen_array(source: str, value: Any, dtype: DType, shape: Shape) -> Array:
    """The number or the numbers that an input is frozen to, in its own type and shape."""
    array = np.asarray(value)
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and bool((array == np.round(array)).all()))
    if array.dtype.kind not in "iubf" or not (dtype.is_float or whole):
        raise UsageError(f"input '{source}' is {dtype.label}, and cannot be {value!r}")
    try:
        return np.array(np.broadcast_to(array, shape), dtype.numpy)
    except ValueError:
        raise UsageError(
            f"input '{source}' has shape {list(shape)}, and cannot be the {array.size} numbers that are given"
        ) from None


@dataclass(frozen=True, slots=True)
class SourceInput:
    """An input as the source model declares it.

    Dimensions are numbers or symbols, UNNAMED where they have no name; `dims` is None where the model gives
    no shape.
    """

    name: str
    dims: tuple[int | str, ...] | None

    @property
    def symbols(self) -> set[str]:
        return {d for d in self.dims or () if isinstance(d, str) and d != UNNAMED}


def input_shape(source: SourceInput, said: Dimensions) -> Shape:
    """The shape of an input, with every dimension settled."""
    if source.name in said.shapes:
        given = tuple(said.shapes[source.name])
        _check_symbols(source.name, source.dims or (), given, said.symbols)
        return _checked(source.name, source.dims, given)
    if source.dims is None:
        raise DynamicShapeError(f"input '{source.name}' has no shape", {source.name: "N,..."})
    shape = [_settled(d, i, said) for i, d in enumerate(source.dims)]
    if any(isinstance(d, str) for d in shape):
        text = ",".join(d if isinstance(d, str) else str(d) for d in shape)
        message = f"input '{source.name}' has dynamic dimensions: [{text}]"
        raise DynamicShapeError(message, {source.name: _example(shape)})
    return _sized(source.name, tuple(int(d) for d in shape))


def check_dimensions(said: Dimensions, inputs: Sequence[SourceInput]) -> None:
    """UsageError where the user speaks of inputs, symbols or a batch that the model does not have."""
    names = [i.name for i in inputs]
    for name in (*said.shapes, *said.values):
        if name not in names:
            hint = f"its inputs: {', '.join(map(repr, names))}"
            raise UsageError(f"the model has no input '{name}'", hint=hint)
    if is_batch_unused(said, inputs):
        raise UsageError(f"batch {said.batch} has no effect: no input has it", hint="leave it out")
    symbols = {symbol for i in inputs for symbol in i.symbols}
    for name in said.symbols:
        if name not in symbols:
            known = ", ".join(sorted(map(repr, symbols))) or "none"
            raise UsageError(f"the model has no dimension '{name}'", hint=f"its symbols: {known}")


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


def is_batch_unused(said: Dimensions, inputs: Sequence[SourceInput]) -> bool:
    """Whether no input has this batch: all have shapes of their own, or are single numbers."""
    return said.batch is not None and all(
        tuple(said.shapes[i.name][:1]) != (said.batch,) if i.name in said.shapes else i.dims == ()
        for i in inputs
    )


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


def _settled(d: int | str, index: int, said: Dimensions) -> int | str:
    if index == 0 and said.batch is not None:
        return said.batch
    return said.symbols.get(d, d) if isinstance(d, str) else d


def _checked(name: str, declared: tuple[int | str, ...] | None, shape: Shape) -> Shape:
    if any(d < 0 for d in shape):
        raise ShapeError(f"input '{name}': shape {list(shape)} has a negative dimension")
    if declared is not None and len(declared) != len(shape):
        raise ShapeError(
            f"input '{name}': shape {list(shape)} given, the model has rank {len(declared)}: {list(declared)}"
        )
    return _sized(name, shape)


def _open(dimension: str, axis: int) -> str:
    """What to write for a dimension: one sample, and else a word that cannot be taken for an answer."""
    return "1" if axis == 0 else re.sub(r"\W", "_", dimension).strip("_").upper() or "N"


def _example(shape: Sequence[int | str]) -> str:
    return ",".join(_open(d, axis) if isinstance(d, str) else str(d) for axis, d in enumerate(shape))
