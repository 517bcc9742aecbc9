"""<model>_net.json: the graph for viewers and scripts, as the converter writes it beside model.cpp.

Ops go by the converter's own names, which differ from QNN's for families of ops:

    ElementWiseBinary  Eltwise_Binary         ReduceMax, ReduceMean, ...   Reduce, with reduce_type
    ElementWiseUnary   Eltwise_Unary          PoolMax2d, PoolAvg2d, ...    Pool, with pool_type

No file of the original tools with a per-channel encoding was at hand. Ours writes `axis_scale_offset`, with
the axis and one record per channel, where a per-tensor encoding has `scale_offset`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from openqnn.emit.emission_order import emission_steps, input_names, unique_params
from openqnn.formats.atomic import replacing
from openqnn.ir import op_key
from openqnn.ops.schema import OPS
from openqnn.qnn import abi
from openqnn.qnn.net import Array, Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind

Json: TypeAlias = dict[str, Any]

IR_NAMES = {"ElementWiseBinary": "Eltwise_Binary", "ElementWiseUnary": "Eltwise_Unary"}
_STRING = "1544"  # QNN's data type of text, the key of supplemental parameters
_QNN_PARAM, _SUPPLEMENTAL = 1, 2
_INFINITE, _NEGATIVE = "\0inf", "\0-inf"


@dataclass(frozen=True, slots=True)
class NetJsonOptions:
    """What the graph itself does not say: the files beside this one, the command line, and sizes of nodes."""

    cpp: str = ""
    bin: str = ""
    command: str = ""
    copyright: str = ""
    axis_formats: Mapping[str, tuple[str, str]] = field(default_factory=lambda: dict[str, tuple[str, str]]())
    """Of a tensor: its axes in QNN, and in the source model."""
    macs: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    """Of a node: multiply-accumulates per inference."""


def write_net_json(net: Net, path: str | os.PathLike[str], options: NetJsonOptions | None = None) -> None:
    """Writes the file, one tensor and one node at a time."""
    with replacing(path) as file:
        for piece in print_net_json(net, options):
            file.write(piece.encode())


def print_net_json(net: Net, options: NetJsonOptions | None = None) -> Iterator[str]:
    """The JSON text in pieces."""
    options = options or NetJsonOptions()
    graph = _Graph(unique_params(net), options)
    head = {
        "model.cpp": str(Path(options.cpp).absolute()) if options.cpp else "",
        "model.bin": str(Path(options.bin).absolute()) if options.bin else "",
        "converter_command": options.command,
        "copyright_str": options.copyright,
        "op_types": sorted({ir_name(node.op) for node in net.nodes}),
    }
    yield "{\n"
    for key, value in head.items():
        yield f"\t{_text(key, 1)}: {_text(value, 1)},\n"
    yield '\t"graph": {\n\t\t"tensors": '
    yield from _object(graph.tensors())
    yield ',\n\t\t"nodes": '
    yield from _object(graph.nodes())
    yield "\n\t}\n}\n"


def ir_name(op: str) -> str:
    """The converter's name of an op."""
    return _family(op) or IR_NAMES.get(op, op)


def _family(op: str) -> str:
    return next((family for family in ("Pool", "Reduce") if op.startswith(family)), "")


class _Graph:
    """The tensors and nodes of one graph as JSON objects. Identities count every tensor, parameters too."""

    def __init__(self, net: Net, options: NetJsonOptions) -> None:
        self._net, self._options = net, options
        self._ids = {name: number for number, name in enumerate(_created(net), 1)}
        statics = [t for t in net.tensors.values() if t.kind is TensorKind.STATIC]
        self._parameters = sum(math.prod(t.dims) for t in statics)
        self._formats = {**_axis_formats(net), **options.axis_formats}

    def tensors(self) -> Iterator[tuple[str, Json]]:
        for step in emission_steps(self._net):
            if isinstance(step, NetTensor):
                yield step.name, self._tensor(step)
            else:
                yield from ((name, self._tensor(self._net.tensors[name])) for name in step.outputs)

    def nodes(self) -> Iterator[tuple[str, Json]]:
        return ((node.name, self._node(node)) for node in self._net.nodes)

    def _tensor(self, tensor: NetTensor) -> Json:
        axes, source = self._formats.get(tensor.name, ("NONTRIVIAL", "NONTRIVIAL"))
        record: Json = {
            "id": self._ids[tensor.name],
            "type": int(tensor.kind),
            "dataFormat": 0,
            "data_type": tensor.dtype,
            "unquantized_data_type": abi.FLOAT_32 if _is_fixed(tensor.dtype) else tensor.dtype,
            "axis_format": axes,
            "src_axis_format": source,
            "quant_params": _quant_params(tensor),
            "dims": list(tensor.dims),
            "is_dynamic_dims": [],
            "is_quantizable": _is_fixed(tensor.dtype) or tensor.dtype in (abi.FLOAT_16, abi.FLOAT_32),
            "is_updateable": False,
        }
        if tensor.kind is TensorKind.STATIC:
            record["params_count"] = self._share(math.prod(tensor.dims))
        return record

    def _share(self, count: int) -> str:
        """`243 (98.7%)`: a share of all weights, cut, not rounded, after three digits, as observed."""
        percent = 100 * count / self._parameters if self._parameters else 0.0
        return f"{count} ({f'{percent:.6f}'[:4].rstrip('.')}%)"

    def _param_tensor(self, tensor: NetTensor) -> Json:
        record = self._tensor(tensor)
        del record["params_count"]  # it counts weights, and a parameter of a node is none
        values: Array = np.zeros(0) if tensor.data is None else tensor.data
        return {tensor.name: {**record, "data": _numbers(values.tolist())}}

    def _node(self, node: NetNode) -> Json:
        scalars: Json = {}
        tensors: Json = {}
        for name, value in node.params:
            if isinstance(value, NetScalar):
                scalars[name] = {str(value.dtype): _numbers(value.value)}
            else:
                tensors[name] = self._param_tensor(value)
        extra = {"packageName": node.package}
        family = _family(node.op)
        if family:
            extra[f"{family.lower()}_type"] = node.op
        kinds = {name: _QNN_PARAM for name, _ in node.params} | dict.fromkeys(extra, _SUPPLEMENTAL)
        return {
            "package": node.package,
            "type": ir_name(node.op),
            "tensor_params": tensors,
            "scalar_params": scalars | {name: {_STRING: text} for name, text in extra.items()},
            "param_map": kinds,
            "input_names": input_names(node),
            "output_names": list(node.outputs),
            "macs_per_inference": str(self._options.macs.get(node.name, 0)),
        }


def _created(net: Net) -> Iterator[str]:
    """The names of all tensors in the order of creation: a node makes its parameters, then its results."""
    for step in emission_steps(net):
        if isinstance(step, NetTensor):
            yield step.name
        else:
            yield from (value.name for _, value in step.params if isinstance(value, NetTensor))
            yield from step.outputs


def _axis_formats(net: Net) -> dict[str, tuple[str, str]]:
    """Layouts as the ops that read and write the tensors declare them."""
    found: dict[str, tuple[str, str]] = {}
    for node in net.nodes:
        schema = OPS.get(op_key(node.package, node.op)) or OPS.get(node.op)
        if schema is None:
            continue
        operands = [
            (name, schema.operand(i).layout) for i, name in enumerate(node.inputs) if name is not None
        ]
        results = [(name, schema.result(i).layout) for i, name in enumerate(node.outputs)]
        for name, layout in (*operands, *results):
            if layout and len(layout) == len(net.tensors[name].dims) and "*" not in layout:
                found.setdefault(name, (layout, layout))
    vectors = {n: ("ANY", "ANY") for n, t in net.tensors.items() if len(t.dims) == 1}
    return {**vectors, **found}


def _quant_params(tensor: NetTensor) -> Json:
    quant, said = tensor.quant, {"is_overridden": tensor.overridden}
    if quant is None:
        return {
            "definition": abi.UNDEFINED,
            "encoding": abi.UNDEFINED,
            **said,
            "scale_offset": _scale_offset(0, 0.0, 0.0, 0.0, 0, False, False),
        }
    pairs = zip(quant.scales, quant.offsets, strict=True)
    records = [_record(s, o, quant, tensor.dtype) for s, o in pairs]
    head: Json = {"definition": abi.DEFINED, "encoding": _encoding(quant), **said}
    if quant.axis is None:
        return {**head, "scale_offset": records[0]}
    if quant.multiples:
        blocks = {
            "axis": quant.axis,
            "scale_offsets": records,
            "num_blocks_per_axis": quant.block_count,
            "blocks_scale": list(quant.multiples),
        }
        return {**head, "blockwise_expansion": blocks}
    axis = {"axis": quant.axis, "num_scale_offsets": len(records), "scale_offsets": records}
    return {**head, "axis_scale_offset": axis}


def _encoding(quant: NetQuant) -> int:
    if quant.multiples:
        return abi.ENCODING_EXPANSION
    if quant.axis is None:
        return abi.ENCODING_TENSOR if quant.bitwidth is None else abi.ENCODING_TENSOR_BITS
    return abi.ENCODING_AXIS if quant.bitwidth is None else abi.ENCODING_AXIS_BITS


def _record(scale: float, offset: int, quant: NetQuant, dtype: int) -> Json:
    signed = dtype >> 8 == abi.SFIXED_8 >> 8
    bits = quant.bitwidth or _stored_bits(dtype)
    lowest = -(1 << bits - 1) if signed else 0
    highest = lowest + (1 << bits) - 1
    low, high = (lowest + offset) * scale, (highest + offset) * scale
    return _scale_offset(bits, low, high, scale, offset, signed and offset == 0, True)


def _scale_offset(
    bits: int, low: float, high: float, scale: float, offset: int, symmetric: bool, fixed: bool
) -> Json:
    return {
        "bitwidth": bits,
        "minimum": low,
        "maximum": high,
        "scale": scale,
        "offset": offset,
        "is_symmetric": symmetric,
        "is_fixed_point": fixed,
    }


def _stored_bits(dtype: int) -> int:
    return 4 if dtype in (abi.SFIXED_4, abi.UFIXED_4) else abi.numpy_dtype(dtype).itemsize * 8


def _is_fixed(dtype: int) -> bool:
    return dtype >> 8 in (abi.SFIXED_8 >> 8, abi.UFIXED_8 >> 8)


def _numbers(value: Any) -> Any:
    """JSON has no infinities: they travel as a marker that `_text` turns into a number beyond all floats."""
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_numbers(item) for item in items]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else _INFINITE if value > 0 else _NEGATIVE
    return value


def _text(value: Any, depth: int) -> str:
    text = json.dumps(value, indent="\t").replace("\n", "\n" + "\t" * depth)
    return text.replace(json.dumps(_INFINITE), "1e999").replace(json.dumps(_NEGATIVE), "-1e999")


def _object(entries: Iterable[tuple[str, Json]]) -> Iterator[str]:
    opening = "{\n"
    for name, value in entries:
        yield f"{opening}\t\t\t{json.dumps(name)}: {_text(value, 3)}"
        opening = ",\n"
    yield "{}" if opening == "{\n" else "\n\t\t}"
