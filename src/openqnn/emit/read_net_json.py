"""Reads `<model>_net.json`, with the weights of `<model>.bin` where they are given, as plain QNN records."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.emit.net_json import IR_NAMES
from openqnn.errors import ModelError
from openqnn.formats.mapped import map_file
from openqnn.formats.tar import tar_members
from openqnn.qnn import abi
from openqnn.qnn.net import Array, Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind, qnn_name

_OPS = {ours: op for op, ours in IR_NAMES.items()}
_FAMILIES = ("pool_type", "reduce_type")  # supplemental parameters that name the op of a family
_SUFFIX = "_net"
_HINT = "give the file that a converter wrote beside model.cpp"


def read_net_json(path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> Net:
    """The graph of the file. Without `weights`, static tensors have no data."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path}: not JSON: {error}", hint=_HINT) from error
    try:
        graph = content["graph"]
        arrays: Mapping[str, Array] = {} if weights is None else _Weights(weights)
        tensors = {name: _tensor(name, record, arrays) for name, record in graph["tensors"].items()}
        nodes = tuple(_node(name, record) for name, record in graph["nodes"].items())
        _check_names(tensors, nodes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        raise ModelError(f"{path}: no graph can be read from it: {what}", hint=_HINT) from error
    inputs = tuple(name for name, t in tensors.items() if t.kind is TensorKind.APP_WRITE)
    outputs = tuple(name for name, t in tensors.items() if t.kind is TensorKind.APP_READ)
    return Net(Path(path).stem.removesuffix(_SUFFIX), tensors, inputs, outputs, nodes)


class _Weights(dict[str, Array]):
    """The members of a .bin archive by tensor, as views of the mapped file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        mapped = np.frombuffer(map_file(path) if os.path.getsize(path) else b"", np.uint8)
        for member in tar_members(path):
            self[member.name.removesuffix(".raw")] = mapped[member.offset : member.offset + member.size]


def _check_names(tensors: Mapping[str, NetTensor], nodes: tuple[NetNode, ...]) -> None:
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            if name is not None and name not in tensors:
                raise ValueError(f"node '{node.name}' names the tensor '{name}', which does not exist")


def _tensor(name: str, record: Mapping[str, Any], arrays: Mapping[str, Array]) -> NetTensor:
    kind = TensorKind(record["type"])
    dtype = int(record["data_type"])
    dims = tuple(int(d) for d in record["dims"])
    data = None
    if kind is TensorKind.STATIC and qnn_name(name) in arrays:
        data = arrays[qnn_name(name)].view(abi.numpy_dtype(dtype)).reshape(dims)
    overridden = bool(record.get("quant_params", {}).get("is_overridden"))
    return NetTensor(name, kind, dtype, dims, _quant(record.get("quant_params", {}), dtype), data, overridden)


def _quant(record: Mapping[str, Any], dtype: int) -> NetQuant | None:
    if record.get("definition") != abi.DEFINED:
        return None
    if "scale_offset" in record:
        records = [record["scale_offset"]]
        return _pairs(records, None, dtype)
    if "axis_scale_offset" in record:
        axis = record["axis_scale_offset"]
        return _pairs(axis["scale_offsets"], int(axis["axis"]), dtype)
    blocks = record["blockwise_expansion"]
    return _pairs(blocks["scale_offsets"], int(blocks["axis"]), dtype, tuple(blocks["blocks_scale"]))


def _pairs(
    records: list[Mapping[str, Any]], axis: int | None, dtype: int, multiples: tuple[int, ...] = ()
) -> NetQuant:
    scales = tuple(float(r["scale"]) for r in records)
    offsets = tuple(int(r["offset"]) for r in records)
    bits = int(records[0]["bitwidth"])
    stored = abi.numpy_dtype(dtype).itemsize * 8
    return NetQuant(scales, offsets, axis, bits if 0 < bits < stored else None, multiples)


def _node(name: str, record: Mapping[str, Any]) -> NetNode:
    scalars: dict[str, Mapping[str, Any]] = record["scalar_params"]
    family = next((scalars[key] for key in _FAMILIES if key in scalars), None)
    kind = str(record["type"])
    op = next(iter(family.values())) if family else _OPS.get(kind, kind)
    params: list[tuple[str, NetScalar | NetTensor]] = []
    for key, number in record.get("param_map", {}).items():
        if number == 1 and key in scalars:
            code, value = next(iter(scalars[key].items()))
            params.append((key, NetScalar(int(code), value)))
        elif number == 1:
            tensor, content = next(iter(record["tensor_params"][key].items()))
            params.append((key, _param_tensor(tensor, content)))
    inputs = tuple(name or None for name in record["input_names"])
    return NetNode(name, str(record["package"]), op, inputs, tuple(record["output_names"]), tuple(params))


def _param_tensor(name: str, record: Mapping[str, Any]) -> NetTensor:
    found = _tensor(name, record, {})
    data = np.asarray(record["data"], abi.numpy_dtype(found.dtype)).reshape(found.dims)
    return NetTensor(name, found.kind, found.dtype, found.dims, found.quant, data)
