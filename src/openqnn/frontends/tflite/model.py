"""A TFLite model as records: subgraphs of tensors and operators that were checked to fit together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from openqnn.errors import ModelError
from openqnn.formats.mapped import map_file
from openqnn.formats.sniff import look_of
from openqnn.frontends.tflite.flatbuffer import DAMAGED, MAGIC, Record, read_flatbuffer, schema
from openqnn.frontends.tflite.stored_numbers import decoded, densified
from openqnn.ir import Array, Shape

CUSTOM: Final = "CUSTOM"


@dataclass(frozen=True, slots=True)
class Quantization:
    """Scales and zero points: one of each for a whole tensor, or one for each element of an axis."""

    scale: Array
    zero: Array
    axis: int

    @property
    def per_axis(self) -> bool:
        return self.scale.size > 1


@dataclass(frozen=True, slots=True)
class Blockwise:
    """Scales and zero points that are tensors of their own: one for each block of the last axis."""

    scales: int
    zeros: int
    size: int


@dataclass(slots=True)
class Tensor:
    """A tensor; `data` is what is stored of a constant, in the type that it is stored in."""

    index: int
    name: str
    type: str
    shape: Shape
    signature: tuple[int, ...]
    data: Array | None
    quantization: Quantization | Blockwise | None
    is_variable: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: inputs and outputs are indices of tensors, -1 for one that is left out.

    `op` is the builtin operator's name, or CUSTOM with the name in `custom`.
    """

    index: int
    op: str
    version: int
    custom: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    custom_options: bytes

    @property
    def title(self) -> str:
        return self.custom if self.op == CUSTOM else self.op


@dataclass(slots=True)
class Subgraph:
    index: int
    name: str
    tensors: list[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[Operator]


@dataclass(frozen=True, slots=True)
class SignatureDef:
    """A signature: a subgraph, and names for some of its tensors."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass
class TfliteModel:
    path: Path | None
    subgraphs: list[Subgraph]
    signatures: list[SignatureDef] = field(default_factory=list)


def read_tflite(source: str | os.PathLike[str] | bytes) -> TfliteModel:
    """A model of a file, whose weights stay mapped, or of its bytes."""
    path = None if isinstance(source, bytes) else Path(source)
    buffer = np.frombuffer(source, np.uint8) if isinstance(source, bytes) else mapped(Path(source))
    try:
        return _Reading(buffer, path).model()
    except ModelError as e:
        where = f"{path}: " if path else ""
        hint = look_of(buffer[:512].tobytes()) if buffer[4:8].tobytes() != MAGIC else ""
        raise ModelError(f"{where}not a readable TFLite model: {e.message}", hint=hint or e.hint) from e


def mapped(path: Path) -> Array:
    try:
        if path.stat().st_size == 0:
            raise ModelError(f"{path}: the file is empty")
        return np.frombuffer(map_file(path), np.uint8)
    except FileNotFoundError as e:
        raise ModelError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise ModelError(f"{path}: cannot be read: {e}") from e


class _Reading:
    def __init__(self, buffer: Array, path: Path | None) -> None:
        self.buffer, self.path = buffer, path
        self.root = read_flatbuffer(buffer)
        self.codes = [self._code(c) for c in self.root["operator_codes"]]

    def model(self) -> TfliteModel:
        if self.root["version"] != 3:
            raise ModelError(f"version {self.root['version']} of the format is not known, only 3 is")
        if not self.root["subgraphs"]:
            raise ModelError("the model has no subgraphs", hint=DAMAGED)
        subgraphs = [self._subgraph(i, s) for i, s in enumerate(self.root["subgraphs"])]
        signatures = [self._signature(s, subgraphs) for s in self.root["signature_defs"]]
        return TfliteModel(self.path, subgraphs, signatures)

    def _code(self, record: Record) -> tuple[str, int, str]:
        number = max(record["builtin_code"], record["deprecated_builtin_code"])
        return schema().name_of("BuiltinOperator", number), record["version"], record["custom_code"] or ""

    def _signature(self, record: Record, subgraphs: Sequence[Subgraph]) -> SignatureDef:
        index = record["subgraph_index"]
        if index >= len(subgraphs):
            raise ModelError(f"a signature is of subgraph {index}; there are {len(subgraphs)}", hint=DAMAGED)
        count = len(subgraphs[index].tensors)
        maps: list[dict[str, int]] = []
        for which in ("inputs", "outputs"):
            maps.append({m["name"] or "": m["tensor_index"] for m in record[which]})
            if any(i >= count for i in maps[-1].values()):
                raise ModelError("a signature names a tensor that does not exist", hint=DAMAGED)
        return SignatureDef(record["signature_key"] or "", index, *maps)

    def _subgraph(self, index: int, record: Record) -> Subgraph:
        names: set[str] = set()
        tensors = [self._tensor(i, t, names) for i, t in enumerate(record["tensors"])]
        operators = [self._operator(i, o, len(tensors)) for i, o in enumerate(record["operators"])]
        ends = _ends(record)
        if any(not 0 <= i < len(tensors) for end in ends for i in end):
            raise ModelError(f"subgraph {index} names a tensor that does not exist", hint=DAMAGED)
        return Subgraph(index, record["name"] or "", tensors, *ends, operators)

    # -- tensors ---------------------------------------------------------------------------------------------

    def _tensor(self, index: int, record: Record, taken: set[str]) -> Tensor:
        name = record["name"] or f"tensor_{index}"
        if name in taken:
            name = f"{name}_{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        shape = tuple(int(d) for d in record["shape"])
        signature = tuple(int(d) for d in record["shape_signature"])
        if min(shape, default=0) < -1 or len(signature) not in (0, len(shape)):
            raise ModelError(f"tensor '{name}' has the shape {list(shape)}", hint=DAMAGED)
        kind = schema().name_of("TensorType", record["type"])
        quantization = self._quantization(record["quantization"], name, shape)
        try:
            data = self._data(record, kind, shape)
        except ModelError as e:
            raise ModelError(f"tensor '{name}': {e.message}", hint=e.hint or DAMAGED) from e
        return Tensor(index, name, kind, shape, signature, data, quantization, bool(record["is_variable"]))

    def _data(self, record: Record, kind: str, shape: Shape) -> Array | None:
        if record["external_buffer"]:
            raise ModelError("its numbers are in another file", hint="export the model into one file")
        stored = self._stored(record["buffer"])
        if stored is None or not stored.size:
            return None
        if record["sparsity"] is not None:
            return densified(stored, kind, shape, record["sparsity"])
        return decoded(stored, kind, shape)

    def _stored(self, index: int) -> Array | None:
        """The bytes of a buffer; those of large models stand behind the flatbuffer."""
        buffers = self.root["buffers"]
        if index >= len(buffers):
            raise ModelError(f"its buffer is number {index}; there are {len(buffers)}")
        record = buffers[index]
        start, size = record["offset"], record["size"]
        if not start or record["data"].size:
            return record["data"]
        if start + size > self.buffer.size:
            raise ModelError(f"its numbers end at byte {start + size:,}, the file at {self.buffer.size:,}")
        return self.buffer[start : start + size]

    def _quantization(
        self, record: Record | None, name: str, shape: Shape
    ) -> Quantization | Blockwise | None:
        if record is None:
            return None
        details = record["details"]
        if details is not None and "block_size" in details:
            return Blockwise(int(details["scales"]), int(details["zero_points"]), int(details["block_size"]))
        scale = record["scale"]
        if not scale.size or not np.all(np.isfinite(scale) & (scale >= 0)) or not scale.any():
            return None
        return _checked(scale, record["zero_point"], int(record["quantized_dimension"]), name, shape)

    # -- operators -------------------------------------------------------------------------------------------

    def _operator(self, index: int, record: Record, tensors: int) -> Operator:
        if record["opcode_index"] >= len(self.codes):
            raise ModelError(f"operator {index} has a code that does not exist", hint=DAMAGED)
        op, version, custom = self.codes[record["opcode_index"]]
        ends = _ends(record)
        if any(not -1 <= i < tensors for end in ends for i in end):
            raise ModelError(f"operator {index} ({op}) names a tensor that does not exist", hint=DAMAGED)
        options = record["builtin_options2"] or record["builtin_options"] or {}
        return Operator(index, op, version, custom, *ends, options, record["custom_options"].tobytes())


def _ends(record: Record) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tensors that go into a subgraph or operator, and those that come out."""
    return tuple(int(i) for i in record["inputs"]), tuple(int(i) for i in record["outputs"])


def _checked(scale: Array, zero: Array, axis: int, name: str, shape: Shape) -> Quantization:
    """Scales and zero points that fit each other and the tensor."""
    if zero.size <= 1:
        zero = np.repeat(zero if zero.size else np.zeros(1, np.int64), scale.size)
    fits = scale.size == 1 or (0 <= axis < len(shape) and shape[axis] == scale.size)
    if zero.size != scale.size or not fits:
        counts = f"{scale.size} scales and {zero.size} zero points"
        raise ModelError(f"tensor '{name}' {list(shape)} has {counts} along axis {axis}", hint=DAMAGED)
    return Quantization(np.maximum(scale, np.float32(1e-30)), zero, axis if scale.size > 1 else 0)
