"""Fixed-point graphs without bytes that only convolutions read.

Integers go through bytes between two ops, and ONNX Runtime writes these in one thread. Where whoever reads
them wants float32 again, they stay in it: limits, and a huge number that is added and taken off again, give
the very integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from openqnn.ir import Array
from openqnn.ops.onnx_writer import HUGE

BYTES = (np.uint8, np.int8)


def stay_real(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Array], outputs: Collection[str]
) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """The nodes without such bytes, and constants beyond those that there are."""
    return _Reals(nodes, constants, outputs).run()


class _Reals:
    def __init__(
        self, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Array], outputs: Collection[str]
    ) -> None:
        self.nodes, self.constants, self.outputs = nodes, constants, outputs
        self.made = {name: node for node in nodes for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in nodes:
            for name in node.input:
                self.readers[name].append(node)
        self.more: dict[str, Array] = {}
        self.zeros: dict[str, float] = {}  # zero points of bytes that stay real, by their names
        self.renamed: dict[str, str] = {}

    def run(self) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
        found: list[onnx.NodeProto] = []
        for node in self.nodes:
            source = node.input[0] if node.input else ""
            node = self._with_names(node)
            if self._is_needless(node.output[0]):
                found += self._limited(node)
            elif source in self.zeros:
                found += self._centred(node, source)
            else:
                found.append(node)
        return found, self.more

    def _with_names(self, node: onnx.NodeProto) -> onnx.NodeProto:
        names = [self.renamed.get(name, name) for name in node.input]
        if names == list(node.input):
            return node
        renamed = onnx.NodeProto()
        renamed.CopyFrom(node)
        renamed.input[:] = names
        return renamed

    def _is_needless(self, name: str) -> bool:
        """Whether a node rounds to bytes, or casts what is whole to them, and nobody reads them as such."""
        node, readers = self.made[name], self.readers[name]
        if name in self.outputs or not readers or not all(self._zero(r) is not None for r in readers):
            return False
        if node.op_type == "Cast":
            return self._is_whole(node) and all(self._zero(r) == 0 for r in readers)
        return node.op_type == "QuantizeLinear" and self._zero(node) is not None

    def _zero(self, node: onnx.NodeProto) -> float | None:
        """The zero point of a node between bytes and float32 with steps of one; None for other nodes."""
        if node.op_type == "Cast":
            return 0.0 if _target(node) == TensorProto.FLOAT else None
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.input) != 3:
            return None
        scale, zero = (self.constants.get(name) for name in node.input[1:])
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or zero.dtype not in BYTES:
            return None
        return float(zero.reshape(())) if scale.reshape(()) == 1 else None

    def _is_whole(self, node: onnx.NodeProto) -> bool:
        """Whether a huge number has been taken off what is cast to bytes."""
        source = self.made.get(node.input[0])
        if source is None or source.op_type != "Sub":
            return False
        taken = self.constants.get(source.input[1])
        return taken is not None and taken.size == 1 and float(taken.reshape(())) == HUGE

    def _limited(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        x, result = node.input[0], node.output[0]
        if node.op_type == "Cast":
            for reader in self.readers[result]:
                self.renamed[reader.output[0]] = x
            self.zeros[result] = np.nan
            return []
        zero = self._zero(node)
        assert zero is not None
        self.zeros[result] = zero
        limits = np.iinfo(self.constants[node.input[2]].dtype)
        bounds = [self._number(limit - zero) for limit in (limits.min, limits.max)]
        inside = f"{result}.inside"
        return [
            helper.make_node("Clip", [x, *bounds], [inside]),
            helper.make_node("Add", [inside, self._number(HUGE)], [result]),
        ]

    def _centred(self, node: onnx.NodeProto, source: str) -> list[onnx.NodeProto]:
        if np.isnan(self.zeros[source]):
            return []
        zero = self._zero(node)
        assert zero is not None
        taken = self._number(HUGE - self.zeros[source] + zero)
        return [helper.make_node("Sub", [source, taken], list(node.output))]

    def _number(self, value: float) -> str:
        name = f"real.{value}"
        self.more[name] = np.asarray(value, np.float32)
        return name


def _target(cast: onnx.NodeProto) -> int:
    """The type by name: graphs that ONNX Runtime wrote have another attribute before it."""
    return next(a.i for a in cast.attribute if a.name == "to")
