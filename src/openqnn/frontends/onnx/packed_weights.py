"""Weights of a few bits that ONNX Runtime packs into bytes (MatMulNBits), taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from openqnn.frontends.onnx.qoperator import DEQUANTIZE
from openqnn.frontends.onnx.reader import OnnxModel
from openqnn.frontends.onnx.table import MICROSOFT
from openqnn.ir import Array

PACKED = "MatMulNBits"
_WIDTHS = (2, 4, 8)


def unpacked_model(model: OnnxModel) -> OnnxModel:
    """The model as it is, but for weights that are packed into bytes."""
    if not any(node.op_type == PACKED for node in model.graph.node):
        return model
    arrays = dict(model.arrays)
    nodes = unpacked_weights(model.graph.node, arrays, stored=False)
    return model.with_nodes(nodes, arrays, (), model.taken)


def unpacked_weights(
    nodes: Sequence[onnx.NodeProto], arrays: dict[str, Array], *, stored: bool
) -> list[onnx.NodeProto]:
    """The nodes with such weights as matrices of their own, as integers or as real numbers."""
    found: list[onnx.NodeProto] = []
    for node in nodes:
        packed = node.op_type == PACKED and node.domain == MICROSOFT and len(node.input) >= 3
        found += (_Unpacking(node, arrays).nodes(stored) if packed else None) or [node]
    return found


class _Unpacking:
    """One product: its weight has `columns` rows of blocks, packed one behind the other."""

    def __init__(self, node: onnx.NodeProto, arrays: dict[str, Array]) -> None:
        self.node, self.arrays, self.out = node, arrays, node.output[0]
        self.inputs = [*node.input, "", "", ""]
        said = {a.name: a.i for a in node.attribute}
        self.bits, self.columns = said.get("bits", 4), said.get("N", 0)
        self.depth, self.block = said.get("K", 0), said.get("block_size", 0)
        self.blocks = -(-self.depth // max(self.block, 1))

    def nodes(self, stored: bool) -> list[onnx.NodeProto] | None:
        """Nothing where the weight is not known, or is not what the attributes say."""
        parts = self._parts()
        if parts is None:
            return None
        rows = self._integers(*parts) if stored else []
        if not rows:
            self._keep("rows", self._real(*parts))
        name = self.node.name or self.out
        turned = helper.make_node(
            "Transpose", [f"{self.out}.rows"], [f"{self.out}.weight"], f"{name}.turn", perm=[1, 0]
        )
        factors, bias = [self.inputs[0], f"{self.out}.weight"], self.inputs[5]
        if not bias:
            return [*rows, turned, helper.make_node("MatMul", factors, [self.out], self.node.name)]
        product = helper.make_node("MatMul", factors, [f"{self.out}.product"], self.node.name)
        sums = helper.make_node("Add", [f"{self.out}.product", bias], [self.out], f"{name}.bias")
        return [*rows, turned, product, sums]

    def _parts(self) -> tuple[Array, Array, Array] | None:
        """Integers, scales and zero points, the latter two of blocks."""
        packed, scales = (self.arrays.get(self.inputs[i]) for i in (1, 2))
        if packed is None or scales is None or self.bits not in _WIDTHS:
            return None
        count = self.columns * self.blocks
        if count < 1 or packed.size * 8 != count * self.block * self.bits or scales.size != count:
            return None
        zeros = self._zeros(self.inputs[3])
        if zeros is None or not self._is_in_order(self.inputs[4]):
            return None
        whole = _numbers(packed.reshape(self.columns, -1), self.bits)[:, : self.depth]
        return whole.astype(np.float64), scales.reshape(self.columns, self.blocks), zeros

    def _zeros(self, name: str) -> Array | None:
        """Packed or not; the middle where there are none."""
        if not name:
            return np.full((self.columns, self.blocks), 1 << (self.bits - 1), np.float64)
        given = self.arrays.get(name)
        if given is None or given.size % self.columns:
            return None
        rows = given.reshape(self.columns, -1)
        rows = _numbers(rows, self.bits) if given.dtype == np.uint8 else rows
        return rows[:, : self.blocks].astype(np.float64) if rows.shape[1] >= self.blocks else None

    def _is_in_order(self, name: str) -> bool:
        """Whether inputs belong to the blocks one after the other."""
        places = self.arrays.get(name) if name else np.arange(self.depth) // self.block
        return places is not None and np.array_equal(places.ravel(), np.arange(places.size) // self.block)

    def _lined(self, values: Array) -> Array:
        return np.repeat(values, self.block, axis=1)[:, : self.depth]

    def _real(self, whole: Array, scales: Array, zeros: Array) -> Array:
        return ((whole - self._lined(zeros)) * self._lined(scales)).astype(scales.dtype)

    def _integers(self, whole: Array, scales: Array, zeros: Array) -> list[onnx.NodeProto]:
        """A node that makes the numbers of signed integers; none where QNN has no such encoding."""
        middle = 1 << (self.bits - 1)
        if np.any(zeros != middle) or self.bits == min(_WIDTHS):
            return []
        kind: Any = ml_dtypes.int4 if self.bits == 4 else np.int8
        alone = self.blocks == 1
        self._keep("integers", (whole - middle).astype(np.int8).astype(kind))
        self._keep("scale", scales.reshape(-1) if alone else scales)
        self._keep("zero", np.zeros(self.columns if alone else scales.shape, kind))
        names = [f"{self.out}.{part}" for part in ("integers", "scale", "zero")]
        more: dict[str, Any] = {"axis": 0} if alone else {"axis": 1, "block_size": self.block}
        label = f"{self.node.name or self.out}.{DEQUANTIZE}"
        return [helper.make_node(DEQUANTIZE, names, [f"{self.out}.rows"], label, **more)]

    def _keep(self, part: str, array: Array) -> None:
        self.arrays[f"{self.out}.{part}"] = array


def _numbers(rows: Array, bits: int) -> Array:
    """The numbers in bytes, the low bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (rows[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*rows.shape[:-1], -1)
