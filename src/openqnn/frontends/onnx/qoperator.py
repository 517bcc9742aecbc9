"""Ops that compute on stored integers, said as what they stand for: dequantize, compute, quantize.

So there is one form of quantized model behind this module: nodes between QuantizeLinear and DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import AttributeProto, helper

from openqnn.frontends.onnx.table import MICROSOFT
from openqnn.ir import Array

Reader = Callable[[onnx.TensorProto], Array]
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
_VALUES = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING)
_OWN = ("channels_last", "opset")  # attributes that the plain op does not have


@dataclass(frozen=True, slots=True)
class _Row:
    """A plain op, and where data (before scale and zero point), the result's scale and a bias are."""

    op: str
    data: tuple[int, ...]
    result: int
    bias: int | None = None
    plain: tuple[int, ...] = ()


_UNARY = ("Sigmoid", "LeakyRelu", "Softmax", "AveragePool", "GlobalAveragePool", "ReduceMean")
_ROWS = {
    "QLinearConv": _Row("Conv", (0, 3), 6, bias=8),
    "QLinearMatMul": _Row("MatMul", (0, 3), 6),
    "QLinearAdd": _Row("Add", (0, 3), 6),
    "QLinearMul": _Row("Mul", (0, 3), 6),
    "QGemm": _Row("Gemm", (0, 3), 7, bias=6),
    "QLinearWhere": _Row("Where", (1, 4), 7, plain=(0,)),
    **{f"QLinear{op}": _Row(op, (0,), 3) for op in _UNARY},
}
_CONCAT, _FAKE = "QLinearConcat", "FakeQuant"
_RANGES = {(0, 255): "uint8", (-128, 127): "int8", (0, 65535): "uint16", (-32768, 32767): "int16"}
_TRAINING = (MICROSOFT, "com.microsoft.training")
QUANTIZED_OPS = frozenset({*_ROWS, _CONCAT, _FAKE, QUANTIZE, DEQUANTIZE})


def plain_nodes(nodes: Sequence[onnx.NodeProto], arrays: dict[str, Array]) -> list[onnx.NodeProto]:
    """The nodes with such ops spelled out where their scales are known. New constants go into `arrays`."""
    found: list[onnx.NodeProto] = []
    for node in nodes:
        spelled = _Spelling(node, arrays).nodes() if node.op_type in QUANTIZED_OPS else []
        found += spelled or [node]
    return found


class _Spelling:
    """One node in other words."""

    def __init__(self, node: onnx.NodeProto, arrays: dict[str, Array]) -> None:
        self.node, self.arrays = node, arrays
        self.inputs = list(node.input)
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type in _VALUES}

    def nodes(self) -> list[onnx.NodeProto]:
        """Nothing for other ops, for scales that are computed, and for images that are channel-last."""
        op, domain = self.node.op_type, self.node.domain
        if domain not in ("", "ai.onnx", *_TRAINING) or self.attributes.get("channels_last"):
            return []
        if op == _FAKE:
            return self._fake()
        row = self._row()
        scales = [] if row is None else [i + 1 for i in row.data] + self._result(row)
        if row is None or any(i >= len(self.inputs) or self.inputs[i] not in self.arrays for i in scales):
            return []
        return list(self._spelled(row))

    def _result(self, row: _Row) -> list[int]:
        """Where the scale of the result is; QGemm may leave it out, and gives floats then."""
        return [] if self.node.op_type == "QGemm" and not self._input(row.result) else [row.result]

    def _row(self) -> _Row | None:
        if self.node.op_type == _CONCAT:
            return _Row("Concat", tuple(range(2, len(self.inputs) - 2, 3)), 0)
        return _ROWS.get(self.node.op_type)

    def _input(self, index: int) -> str:
        return self.inputs[index] if index < len(self.inputs) else ""

    def _spelled(self, row: _Row) -> Iterator[onnx.NodeProto]:
        out = self.node.output[0]
        operands = {i: self.inputs[i] for i in row.plain}
        for place in row.data:
            operands[place] = f"{out}.operand{place}"
            coded = [self._input(place + i) for i in range(3)]
            yield self._linear(DEQUANTIZE, coded, operands[place], self._axis(place))
        if row.bias is not None and self._input(row.bias):
            operands[row.bias] = f"{out}.bias"
            yield self._linear(
                DEQUANTIZE, [self._input(row.bias), self._bias_scale(), ""], operands[row.bias], 0
            )
        inputs = [operands[i] for i in sorted(operands)]
        real = f"{out}.real" if self._result(row) else out
        plain = helper.make_node(row.op, inputs, [real], self.node.name)
        plain.attribute.extend(a for a in self.node.attribute if a.name not in _OWN)
        yield plain
        if real == out:
            return
        coded = [f"{out}.real", self._input(row.result), self._input(row.result + 1)]
        yield self._linear(QUANTIZE, coded, out, 1)

    def _axis(self, place: int) -> int:
        """Weights may have a scale for each result: filters count them first, matrices last."""
        if place == 0 or self.node.op_type == "QLinearConv":
            return 0
        return 0 if self.attributes.get("transB") else -1

    def _bias_scale(self) -> str:
        """A 32 bit bias counts in steps of the product of the two scales."""
        name = f"{self.node.output[0]}.bias_scale"
        x, w = (np.asarray(self.arrays[self.inputs[i]], np.float32) for i in (1, 4))
        self.arrays[name] = (x.reshape(()) if x.size == 1 else x) * (w.reshape(()) if w.size == 1 else w)
        return name

    def _linear(self, op: str, inputs: list[str], out: str, axis: int) -> onnx.NodeProto:
        while not inputs[-1]:
            inputs = inputs[:-1]
        return helper.make_node(op, inputs, [out], f"{self.node.name or self.node.output[0]}.{op}", axis=axis)

    def _fake(self) -> list[onnx.NodeProto]:
        """Rounded to steps, still in floats: the pair does the same."""
        limits = self.attributes.get("quant_min", 0), self.attributes.get("quant_max", 255)
        x, scale, zero, *_ = [*self.inputs, "", ""]
        if limits not in _RANGES or scale not in self.arrays or (zero and zero not in self.arrays):
            return []
        out = self.node.output[0]
        kind, points = f"{out}.zero", self.arrays.get(zero, np.zeros(()))
        self.arrays[kind] = np.asarray(points).astype(_RANGES[limits])
        steps = self._linear(QUANTIZE, [x, scale, kind], f"{out}.steps", 1)
        return [steps, self._linear(DEQUANTIZE, [f"{out}.steps", scale, kind], out, 1)]


def is_quantized_model(nodes: Sequence[onnx.NodeProto]) -> bool:
    return any(node.op_type in QUANTIZED_OPS for node in nodes)


def constants_of(
    nodes: Sequence[onnx.NodeProto], arrays: Mapping[str, Array], read: Reader
) -> dict[str, Array]:
    """What is known by name: weights, and what nodes hold or fill, also behind a Cast or an Identity."""
    known = dict(arrays)
    for node in nodes:
        if node.op_type == "Constant":
            found = _constant(node, read)
        else:
            found = _moved_constant(node, known.get(node.input[0]) if len(node.input) == 1 else None, read)
        if found is not None:
            known[node.output[0]] = found
    return known


def _moved_constant(node: onnx.NodeProto, given: Array | None, read: Reader) -> Array | None:
    """The result of a node that copies, casts or fills, where its input is known and the result small."""
    if given is None:
        return None
    if node.op_type == "Identity":
        return given
    if node.op_type == "Cast" and given.size <= _SMALL:
        return _cast(node, given)
    if node.op_type == "ConstantOfShape" and np.prod(given) <= _SMALL:
        return _filled(node, given, read)
    return None


_SMALL = 1 << 16  # elements; scales and zero points are not larger


def _constant(node: onnx.NodeProto, read: Reader) -> Array | None:
    for attribute in node.attribute:
        held = (attribute.name, attribute.type)
        if held == ("value", AttributeProto.TENSOR):
            return read(attribute.t)
        if held in (("value_float", AttributeProto.FLOAT), ("value_floats", AttributeProto.FLOATS)):
            return np.asarray(helper.get_attribute_value(attribute), np.float32)
    return None


def _filled(node: onnx.NodeProto, shape: Array, read: Reader) -> Array | None:
    """One number all over: torch's zero points of biases."""
    held = next((read(a.t) for a in node.attribute if a.type == AttributeProto.TENSOR), np.zeros(1, "f4"))
    return np.full(shape.tolist(), held.reshape(-1)[0], held.dtype) if held.size == 1 else None


def _cast(node: onnx.NodeProto, given: Array) -> Array | None:
    to = next((a.i for a in node.attribute if a.name == "to"), 0)
    try:
        return given.astype(helper.tensor_dtype_to_np_dtype(to))
    except (KeyError, ValueError):  # no such type, or no such numbers: the translator says so
        return None
