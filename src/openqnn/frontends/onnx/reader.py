"""Opens an ONNX file: structure parsed, weights mapped from the file or from its external data files."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from openqnn.errors import ModelError
from openqnn.formats.beside import check_regular, file_beside
from openqnn.formats.mapped import map_file
from openqnn.formats.sniff import look_of
from openqnn.frontends.onnx.protobuf import split_model
from openqnn.ir import Array, Given


@dataclass
class Taken:
    """Encodings that were in the model, by the name of the tensor; the nodes that went; what was left out."""

    given: dict[str, Given] = field(default_factory=dict)
    nodes: Counter[str] = field(default_factory=Counter)
    notes: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class OnnxModel:
    """A parsed model; `arrays` has its initializers, as views into mapped files where they are large."""

    proto: onnx.ModelProto
    path: Path | None
    arrays: dict[str, Array] = field(default_factory=dict)
    taken: Taken = field(default_factory=Taken)

    def with_nodes(
        self, nodes: Iterable[onnx.NodeProto], arrays: dict[str, Array], gone: Container[str], taken: Taken
    ) -> OnnxModel:
        """The model with other nodes between its inputs and outputs; `gone` are tensors that went."""
        proto = onnx.ModelProto(ir_version=self.proto.ir_version)
        proto.opset_import.extend(self.proto.opset_import)
        graph = proto.graph
        graph.name = self.graph.name
        graph.input.extend(self.graph.input)
        graph.output.extend(self.graph.output)
        graph.value_info.extend(v for v in self.graph.value_info if v.name not in gone)
        graph.node.extend(nodes)
        return OnnxModel(proto, self.path, arrays, taken)

    @property
    def graph(self) -> onnx.GraphProto:
        return self.proto.graph

    def tensor(self, tensor: TensorProto) -> Array:
        """The array of any tensor of the model, such as a Constant's attribute."""
        return _array(tensor, self.path)


def read_model(source: str | os.PathLike[str] | onnx.ModelProto) -> OnnxModel:
    """A file, or a model in memory."""
    if isinstance(source, onnx.ModelProto):
        return _with_arrays(OnnxModel(source, None), {})
    path = Path(source)
    buffer = _map(path)
    try:
        stripped, spans = split_model(buffer)
        proto = onnx.ModelProto.FromString(stripped)
    except (ModelError, DecodeError, ValueError) as e:
        reason = e.message if isinstance(e, ModelError) else "the bytes are not a protobuf message"
        raise ModelError(f"{path}: not a readable ONNX model: {reason}", hint=_advice(buffer)) from e
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelError(f"{path}: not an ONNX model: it holds no graph", hint=_advice(buffer))
    raw = {i: buffer[s.start : s.end] for i, s in spans.items()}
    return _with_arrays(OnnxModel(proto, path), raw)


def _map(path: Path) -> memoryview:
    check_regular(path)
    try:
        if path.stat().st_size == 0:
            raise ModelError(f"{path}: the file is empty")
        return map_file(path)
    except FileNotFoundError as e:
        raise ModelError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise ModelError(f"{path}: cannot be read: {e}") from e


def _advice(buffer: memoryview) -> str:
    look = look_of(bytes(buffer[:512]))
    return look or "the download or copy may be incomplete; check its size or export it again"


def _with_arrays(model: OnnxModel, raw: dict[int, memoryview]) -> OnnxModel:
    for index, tensor in enumerate(model.graph.initializer):
        inside = index in raw
        model.arrays[tensor.name] = _mapped(tensor, raw[index]) if inside else _array(tensor, model.path)
    return model


def _numpy_type(tensor: TensorProto) -> np.dtype[Any]:
    try:
        return helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError as e:
        raise ModelError(f"tensor '{tensor.name}': unknown data type {tensor.data_type}") from e


def _mapped(tensor: TensorProto, data: memoryview) -> Array:
    """An array over bytes that stay in the file."""
    dtype, dims = _numpy_type(tensor), tuple(tensor.dims)
    fits = dtype.itemsize * math.prod(dims) == len(data) and min(dims, default=1) >= 0
    if not fits or dtype.hasobject:
        packed = TensorProto(data_type=tensor.data_type, dims=dims, raw_data=bytes(data), name=tensor.name)
        return _decoded(packed)
    return np.frombuffer(data, dtype).reshape(dims)


def _decoded(tensor: TensorProto) -> Array:
    _numpy_type(tensor)
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"tensor '{tensor.name}' {list(tensor.dims)} has a negative dimension")
    try:
        return numpy_helper.to_array(tensor)
    except Exception as e:  # malformed tensors raise whatever numpy or protobuf stumble over
        raise ModelError(f"tensor '{tensor.name}' {list(tensor.dims)} does not fit its data: {e}") from e


def _array(tensor: TensorProto, model: Path | None) -> Array:
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, model)
    return _decoded(tensor)


def _external(tensor: TensorProto, model: Path | None) -> Array:
    info = {e.key: e.value for e in tensor.external_data}
    location = info.get("location", "")
    if model is None:
        raise ModelError(
            f"tensor '{tensor.name}' is in the external file '{location}': give the model by its path"
        )
    path = _inside(model, location, tensor.name)
    _check_sum(path, info.get("checksum", ""))
    try:
        start = int(info.get("offset") or 0)
        length = int(info.get("length") or path.stat().st_size - start)
    except ValueError as e:
        raise ModelError(f"tensor '{tensor.name}': bad external data entry {info}") from e
    size = path.stat().st_size
    if start < 0 or length < 0 or start + length > size:
        raise ModelError(
            f"tensor '{tensor.name}': bytes {start} to {start + length} of '{location}', which has {size}",
            hint="the external data file is truncated or belongs to another model",
        )
    return _mapped(tensor, _map(path)[start : start + length] if length else memoryview(b""))


def _inside(model: Path, location: str, name: str) -> Path:
    try:
        return file_beside(model, location)
    except ValueError as e:
        said = f"tensor '{name}': external data location '{location}' leaves the model's folder"
        raise ModelError(said, hint="keep external data beside the model, and no link to elsewhere") from e
    except FileNotFoundError as e:
        missing = f"tensor '{name}': external data file '{model.parent / location}' is missing"
        raise ModelError(missing, hint="keep it beside the model") from e


def _check_sum(path: Path, said: str) -> None:
    """ModelError where a file does not have the SHA-1 that the model may tell of it."""
    if said and _sha1(path, path.stat().st_mtime_ns) != said.lower():
        raise ModelError(
            f"{path} is damaged, or another model's: it does not have the checksum that the model tells",
            hint="copy both files again, or export the model again",
        )


@lru_cache(4)
def _sha1(path: Path, changed: int) -> str:
    del changed  # tells the file from what it was before
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()
