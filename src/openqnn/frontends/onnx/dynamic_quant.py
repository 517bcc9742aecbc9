"""Products of integers whose scales are found at run time, as the products of real numbers that they mean.

A dynamically quantized model rounds each activation to 8 bits by the range of that very run, multiplies
integers and scales the sums back. The sums are beyond half precision, and the quantizer measures ranges by
itself: so the activation is taken as it was before it was rounded, and the weight with its own scales. ONNX
Runtime's fused spellings of the same mean the same.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from openqnn.errors import OpenQnnWarning
from openqnn.frontends.onnx.qoperator import DEQUANTIZE, QUANTIZE, constants_of
from openqnn.frontends.onnx.reader import OnnxModel
from openqnn.frontends.onnx.table import MICROSOFT
from openqnn.frontends.onnx.truncate import read_by
from openqnn.ir import Array

DYNAMIC = "DynamicQuantizeLinear"
PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_MOVERS = ("Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
_FUSED = ("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QAttention", "DynamicQuantizeLSTM")
DYNAMIC_OPS = frozenset({DYNAMIC, *PRODUCTS, *_FUSED})
_EXACT = 2048  # the whole numbers that half precision holds all of
_NAMES = 5  # as many as a warning lists


def float_products(
    nodes: Sequence[onnx.NodeProto],
    arrays: dict[str, Array],
    constants: dict[str, Array],
    outputs: Iterable[str],
) -> list[onnx.NodeProto]:
    """The nodes with such products in floats where all is known of them. New constants go into the tables."""
    return _Rewriting(nodes, arrays, constants, outputs).nodes()


def say_large_sums(model: OnnxModel) -> None:
    """Warns of integer products that are left: half precision cannot hold their sums."""
    nodes = [node for node in model.graph.node if node.op_type in PRODUCTS]
    if nodes:
        said = _large_sums(nodes, constants_of(model.graph.node, model.arrays, model.tensor))
        if said:
            warnings.warn(said, OpenQnnWarning, stacklevel=2)


def _large_sums(nodes: Sequence[onnx.NodeProto], constants: dict[str, Array]) -> str:
    left = [(n, _largest_sum(n, constants)) for n in nodes]
    found = [(n.name or n.output[0], most) for n, most in left if most > _EXACT]
    if not found:
        return ""
    named = ", ".join(f"'{name}'" for name, _ in found[:_NAMES])
    more = f" and {len(found) - _NAMES} more" if len(found) > _NAMES else ""
    most = max(most for _, most in found)
    return (
        f"{len(found)} products of integers stay, for what is around them is no pattern of dynamic"
        f" quantization: {named}{more}. In half precision sums above {_EXACT} are rounded and"
        f" those above 65504 are infinite; these may reach {most:.3g}. Take the model as it was before it was"
        " quantized"
    )


def _largest_sum(node: onnx.NodeProto, constants: dict[str, Array]) -> float:
    """How far a sum of such products can get; data that is not known has 8 bits."""
    for place in (1, 0):
        weight = constants.get(node.input[place]) if len(node.input) > place else None
        if weight is None:
            continue
        zero = constants.get(node.input[place + 2]) if len(node.input) > place + 2 else None
        whole = weight.astype(np.int64)
        if zero is not None:
            lined = zero.reshape(-1, *(1,) * (weight.ndim - 1)) if node.op_type == "ConvInteger" else zero
            whole = whole - lined.astype(np.int64)
        axis = -2 if node.op_type == "MatMulInteger" and place == 1 and weight.ndim > 1 else -1
        sums = np.abs(whole) if node.op_type == "MatMulInteger" else np.abs(whole).reshape(len(whole), -1)
        return float(255 * sums.sum(axis=axis).max(initial=0))
    return float("inf")


@dataclass(frozen=True, slots=True)
class _Operand:
    """One factor of a product: the real tensor and the names of its scale and zero, or a known weight."""

    real: str = ""
    scale: str = ""
    zero: str = ""
    weight: Array | None = None


class _Rewriting:
    def __init__(
        self,
        nodes: Sequence[onnx.NodeProto],
        arrays: dict[str, Array],
        constants: dict[str, Array],
        outputs: Iterable[str],
    ) -> None:
        self.source, self.arrays, self.constants = nodes, arrays, constants
        self.outputs = set(outputs)
        self.made = {out: node for node in nodes for out in node.output if out}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.ends: dict[int, list[onnx.NodeProto]] = {}  # nodes that others take the place of
        self.twins: dict[
            str, list[onnx.NodeProto]
        ] = {}  # movers of integers, and what moves the real numbers
        self.idle: set[int] = set()  # nodes that may have lost their last reader

    def nodes(self) -> list[onnx.NodeProto]:
        for node in self.source:
            if node.op_type in PRODUCTS:
                self._product(node)
            elif node.op_type == DEQUANTIZE:
                self._rounded(node)
            else:
                self._place(node, self.fused(node))
        found = [n for node in self.source for n in self.ends.get(id(node), [node])]
        return self._read(self._with_twins(found))

    def _place(self, node: onnx.NodeProto, made: list[onnx.NodeProto] | None) -> None:
        if made is not None:
            self.ends[id(node)] = made

    def _with_twins(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Each mover's twin right behind it."""
        found: list[onnx.NodeProto] = []
        for node in nodes:
            found.append(node)
            found += self.twins.get(node.output[0], []) if node.output else []
        return found

    def _read(self, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Without the nodes that nothing reads any more."""
        wanted, kept = set(self.outputs), list[onnx.NodeProto]()
        for node in reversed(nodes):
            if id(node) in self.idle and not wanted.intersection(node.output):
                continue
            kept.append(node)
            wanted.update(read_by(node))
        return kept[::-1]

    # -- operands --------------------------------------------------------------------------------------------

    def _operand(self, node: onnx.NodeProto, place: int, zero: int) -> _Operand | None:
        """What a product reads there; None where that is not known, or the zero point is another one."""
        name = node.input[place]
        said = node.input[zero] if len(node.input) > zero else ""
        weight = self.constants.get(name)
        if weight is not None:
            return _Operand(name, "", said, weight) if not said or said in self.constants else None
        found = self._real(name)
        return found if found is not None and found.zero == said else None

    def _real(self, name: str) -> _Operand | None:
        """The tensor that was rounded to these integers."""
        node = self.made.get(name)
        if node is None or not node.input:
            return None
        if node.op_type == DYNAMIC and node.output[0] == name:
            self.idle.add(id(node))
            return _Operand(node.input[0], node.output[1], node.output[2])
        if node.op_type == QUANTIZE and len(node.input) > 1:
            return self._twin(name, DEQUANTIZE, [name, *node.input[1:]], node)
        if node.op_type in _MOVERS and node.domain in ("", "ai.onnx"):
            before = self._real(node.input[0])
            if before is None:
                return None
            self.idle.add(id(node))
            moved = self._twin(name, node.op_type, [before.real, *node.input[1:]], node)
            return _Operand(moved.real, before.scale, before.zero)
        return None

    def _twin(self, name: str, op: str, inputs: list[str], node: onnx.NodeProto) -> _Operand:
        """A node that gives the real numbers of integers, right behind the one that gives these."""
        real = f"{name}.real"
        if name not in self.twins:
            twin = helper.make_node(op, inputs, [real], f"{node.name or name}.real")
            twin.attribute.extend(
                a for a in node.attribute if a.name in ("axis", "perm", "axes", "allowzero")
            )
            self.twins[name] = [twin]
        zero = node.input[2] if op == DEQUANTIZE and len(node.input) > 2 else ""
        return _Operand(real, node.input[1] if op == DEQUANTIZE else "", zero)

    # -- products and their scales ---------------------------------------------------------------------------

    def _product(self, node: onnx.NodeProto) -> None:
        if len(node.input) < 2 or not node.output:
            return
        left, right = (self._operand(node, i, i + 2) for i in (0, 1))
        found = None if left is None or right is None else self._scaled(node, left, right)
        if left is None or right is None or found is None:
            return
        end, factors, passed = found
        made = self._written(node, left, right, end.output[0], factors)
        if made is not None:
            self.ends[id(end)] = made
            self.idle.update({id(node), *passed})

    def _scaled(
        self, node: onnx.NodeProto, left: _Operand, right: _Operand
    ) -> tuple[onnx.NodeProto, list[str], set[int]] | None:
        """The node behind which the sums are real numbers, the known factors on the way, the nodes passed."""
        cast = self._only_reader(node.output[0], "Cast")
        scales = [o.scale for o in (left, right) if o.weight is None]
        if cast is None or not scales or not any(a.i in _FLOATS for a in cast.attribute):
            return None
        known, passed, end = list[str](), {id(cast)}, cast
        wanted = Counter(scales)
        while wanted or (len(scales) == 1 and not known):
            step = self._only_reader(end.output[0], "Mul")
            if step is None:
                break
            constant, dynamic = self._parted(_other(step, end.output[0]))
            if dynamic - wanted:
                break
            wanted, end = wanted - dynamic, step
            known += constant
            passed.add(id(step))
        return None if wanted else (end, known, passed)

    def _parted(self, name: str) -> tuple[list[str], Counter[str]]:
        """The factors of a tensor: those that are known, and the others."""
        factors = self._factors(name)
        known = [f for f in factors if f in self.constants]
        return known, Counter(factors) - Counter(known)

    def _only_reader(self, name: str, op: str) -> onnx.NodeProto | None:
        """The reader of a tensor that nothing else reads, if it is of that op."""
        readers = self.readers.get(name, [])
        alone = len(readers) == 1 and name not in self.outputs
        return readers[0] if alone and readers[0].op_type == op else None

    def _factors(self, name: str) -> list[str]:
        """The scales and constants whose product a tensor is."""
        node = self.made.get(name)
        if name in self.constants or node is None or node.op_type not in ("Mul", "Identity"):
            return [name]
        self.idle.add(id(node))
        return [factor for i in node.input for factor in self._factors(i)]

    def _written(
        self, node: onnx.NodeProto, left: _Operand, right: _Operand, out: str, factors: list[str]
    ) -> list[onnx.NodeProto] | None:
        """The product in floats: of two tensors, or of one and a weight with all known factors as scale."""
        names, before = [left.real, right.real], list[onnx.NodeProto]()
        weight = left if left.weight is not None else right if right.weight is not None else None
        if weight is None:
            if factors:
                return None
        else:
            place, axis = (0, -2) if weight is left else (1, -1)
            if node.op_type == "ConvInteger":
                axis = 0
            scale = self._scale(factors, node.op_type, weight, axis)
            if scale is None:
                return None
            names[place] = f"{out}.weight"
            before = [
                self._dequantize(
                    node, weight.real, scale, self.constants.get(weight.zero), axis, names[place]
                )
            ]
        product = helper.make_node(PRODUCTS[node.op_type], names, [out], node.name)
        product.attribute.extend(node.attribute)
        return [*before, product]

    def _scale(self, factors: list[str], op: str, weight: _Operand, axis: int) -> Array | None:
        """The product of known factors: one number, or one for each channel of the weight."""
        assert weight.weight is not None
        scale = np.ones((), np.float32)
        for factor in factors:
            array = np.asarray(self.constants[factor])
            if array.size > 1 and not _is_along(array, op, weight.weight, axis):
                return None
            scale = scale * (array.reshape(()) if array.size == 1 else array.reshape(-1))
        return scale

    def _dequantize(
        self, node: onnx.NodeProto, weight: str, scale: Array, zero: Array | None, axis: int, out: str,
    ) -> onnx.NodeProto:  # fmt: skip
        """A node that gives the real numbers of a weight; there are as many scales as zero points."""
        stored = self.constants[weight]
        zeros = np.zeros((), stored.dtype) if zero is None else np.asarray(zero)
        scale, zeros = (a.reshape(()) if a.size == 1 else a.reshape(-1) for a in (scale, zeros))
        scale, zeros = (np.array(a) for a in np.broadcast_arrays(scale, zeros))
        names = [f"{out}.scale", f"{out}.zero"]
        for name, array in zip(names, (scale, zeros), strict=True):
            self.arrays[name] = self.constants[name] = array
        label = f"{node.name or node.output[0]}.{DEQUANTIZE}"
        return helper.make_node(DEQUANTIZE, [weight, *names], [out], label, axis=axis % max(stored.ndim, 1))

    def _rounded(self, node: onnx.NodeProto) -> None:
        """Dequantize right behind a dynamic quantize: nothing but rounding, which goes."""
        source = self.made.get(node.input[0]) if len(node.input) > 2 else None
        if source is not None and source.op_type == DYNAMIC and list(node.input) == list(source.output):
            self.idle.add(id(source))
            self.ends[id(node)] = [
                helper.make_node("Identity", [source.input[0]], list(node.output), node.name)
            ]

    # -- ONNX Runtime's own ----------------------------------------------------------------------------------

    def fused(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        """A fused op as plain ones; None for other ops, and where something of it is not known."""
        if node.domain != MICROSOFT or node.op_type not in _FUSED or not node.output:
            return None
        words = {
            "MatMulIntegerToFloat": self._to_float,
            "DynamicQuantizeMatMul": self._dynamic_matmul,
            "QAttention": self._attention,
            "DynamicQuantizeLSTM": self._lstm,
        }
        return words[node.op_type](_padded(node))

    def _weight(self, node: onnx.NodeProto, places: Sequence[int], out: str) -> list[onnx.NodeProto] | None:
        """The matrix at these places (weight, scale, zero point), with a scale for all or for each column."""
        weight, scale, zero = (node.input[i] for i in places)
        known = all(n in self.constants for n in (weight, scale)) and (not zero or zero in self.constants)
        if not known or np.asarray(self.constants[scale]).size not in (1, self.constants[weight].shape[-1]):
            return None
        scales, zeros = np.asarray(self.constants[scale]), self.constants.get(zero)
        return [self._dequantize(node, weight, scales, zeros, -1, out)]

    def _to_float(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        data, out = self._operand(node, 0, 4), node.output[0]
        if data is None:
            return None
        if data.weight is None and data.scale != node.input[2]:
            return None
        if node.input[1] not in self.constants:
            other = self._operand(node, 1, 5)
            fits = other is not None and other.scale == node.input[3] and data.weight is None
            return self._plus(node, data.real, other.real, 6) if other is not None and fits else None
        before = self._weight(node, (1, 3, 5), f"{out}.weight")
        if before is None or data.weight is not None:
            return None
        return [*before, *self._plus(node, data.real, f"{out}.weight", 6)]

    def _dynamic_matmul(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        before = self._weight(node, (1, 2, 3), f"{node.output[0]}.weight")
        if before is None:
            return None
        return [*before, *self._plus(node, node.input[0], f"{node.output[0]}.weight", 4)]

    def _plus(self, node: onnx.NodeProto, left: str, right: str, bias: int) -> list[onnx.NodeProto]:
        """A product of matrices and the bias of a node, if it has one."""
        out, more = node.output[0], node.input[bias]
        if not more:
            return [helper.make_node("MatMul", [left, right], [out], node.name)]
        product = helper.make_node("MatMul", [left, right], [f"{out}.product"], node.name)
        return [product, helper.make_node("Add", [f"{out}.product", more], [out], f"{node.name or out}.bias")]

    def _attention(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        data, out = self._operand(node, 0, 6), node.output[0]
        before = self._weight(node, (1, 4, 7), f"{out}.weight")
        if data is None or data.scale != node.input[3] or before is None:
            return None
        inputs = [data.real, f"{out}.weight", node.input[2], node.input[5], node.input[8]]
        plain = helper.make_node("Attention", inputs, list(node.output), node.name, domain=MICROSOFT)
        plain.attribute.extend(node.attribute)
        return [*before, plain]

    def _lstm(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        """Weights are [directions, in, gates], with a scale for each direction, or for each gate of each."""
        names = list(node.input[:8])
        for place, scale in ((1, 8), (2, 10)):
            parts = [self.constants.get(node.input[i]) for i in (place, scale, scale + 1)]
            stored, scales, zeros = parts
            if stored is None or scales is None or stored.ndim != 3:
                return None
            lined = [
                a.reshape(len(stored), 1, -1) for a in (scales, zeros if zeros is not None else scales * 0)
            ]
            real = (stored.astype(np.float32) - lined[1].astype(np.float32)) * lined[0].astype(np.float32)
            names[place] = f"{node.output[0] or node.name}.weight{place}"
            self.arrays[names[place]] = self.constants[names[place]] = np.ascontiguousarray(
                real.transpose(0, 2, 1)
            )
        plain = helper.make_node("LSTM", names, list(node.output), node.name)
        plain.attribute.extend(node.attribute)
        return [plain]


def _padded(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with all inputs that its op has, empty ones where it leaves them out."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    found.input.extend([""] * (12 - len(node.input)))
    return found


def _other(node: onnx.NodeProto, name: str) -> str:
    return node.input[1] if node.input[0] == name else node.input[0]


def _is_along(array: Array, op: str, weight: Array, axis: int) -> bool:
    """Whether factors of a result are one for each channel: last of a matrix, second of an image."""
    place = weight.ndim - 1 if op == "ConvInteger" else 1
    along = array.shape[-place] if array.ndim >= place else 0
    return axis != -2 and array.size == weight.shape[axis] == along
