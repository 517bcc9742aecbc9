"""Fixed-point graphs without the cost of putting numbers in order between convolutions.

ONNX Runtime's convolutions keep blocks of channels together. What a fixed-point graph does between two of
them it does number by number, in whatever order they are: ONNX Runtime optimises the graph first, and then
each such node gets a twin that works on blocks. Whoever needs the proper order gets it from the integers,
which are four times as short. Products with a number per channel become a convolution, which runs in all
threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, shape_inference

from openqnn.ir import Array, Shape

DOMAIN = "com.microsoft.nchwc"
_TAKE_CHANNELS = ("Min", "Max", "Mul", "Add", "Sub")
# One number of each input makes one of the output. Scales and limits have to be single numbers.
EACH = frozenset((
    "Floor", "Round", "Relu", "Sigmoid", "Tanh", "HardSigmoid", "Clip", "Cast", "QuantizeLinear",
    "DequantizeLinear", "Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Where",
    "QLinearAdd",
))  # fmt: skip
POOLS = frozenset(("MaxPool", "GlobalAveragePool"))  # the sums of the latter are whole and stay so
RANK = 4
BYTES = (TensorProto.UINT8, TensorProto.INT8)


@dataclass(frozen=True, slots=True)
class Line:
    """By channel, x times a number and plus another one."""

    x: str
    factor: str
    more: Array | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a value. The channels of blocked ones fill their blocks."""

    shape: Shape
    type: int
    blocked: bool

    @property
    def bytes(self) -> int:
        """How many bytes each number has."""
        return helper.tensor_dtype_to_np_dtype(self.type).itemsize

    @property
    def size(self) -> int:
        return prod(self.shape) * self.bytes


@dataclass(slots=True)
class Blocked:
    """The nodes of a graph, constants beyond its own, and what is known of values."""

    nodes: list[onnx.NodeProto]
    constants: dict[str, Array]
    held: dict[str, Held]


def keep_blocked(
    graph: onnx.GraphProto, constants: Mapping[str, Array], plain: onnx.ModelProto, block: int
) -> Blocked:
    """The nodes of an optimised graph with these constants, without the reordering that they can do without.

    `plain` is the model before it was optimised, which tells the shapes; `block` is how many channels are
    kept together.
    """
    twins = _Twins(graph, constants, plain, block)
    for node in graph.node:
        twins.add(node)
    return Blocked(twins.live(), twins.constants, twins.held())


class _Twins:
    """Walks a graph and gives nodes their twins. Names of blocks are those of their values with an ending."""

    def __init__(
        self, graph: onnx.GraphProto, given: Mapping[str, Array], plain: onnx.ModelProto, block: int
    ) -> None:
        self.block = block
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.given = given
        self.outputs = [o.name for o in graph.output]
        self.shapes, self.types = _known(plain)
        self.twins: dict[str, str] = {}
        self.lines: dict[str, Line] = {}  # by the names of the results
        self.doubled: set[str] = set()  # results that two nodes make: one as it was, and its twin
        self.bytes: dict[str, onnx.NodeProto] = {}  # what makes numbers from bytes
        self.renamed: dict[str, str] = {}

    # -- the walk --------------------------------------------------------------------------------------------

    def add(self, node: onnx.NodeProto) -> None:
        node.input[:] = [self.renamed.get(name, name) for name in node.input]
        result = node.output[0]
        if node.domain == DOMAIN and node.op_type == "ReorderInput" and self._enter(node.input[0]):
            self.renamed[result] = self.twins[node.input[0]]
            return
        if node.domain == DOMAIN:
            self._learn_blocked(node)
        elif len(node.output) == 1 and len(self.shapes.get(result, ())) == RANK:
            if node.op_type in ("DequantizeLinear", "Cast"):
                self.bytes[result] = node
            if self._twin(node):
                self.doubled.add(result)
        self.nodes.append(node)

    def _learn_blocked(self, node: onnx.NodeProto) -> None:
        """What a node of ONNX Runtime's blocked layout makes: a tensor that has a twin, or a product."""
        if node.op_type == "ReorderOutput" and not attribute(node, "channels_last"):
            self.twins[node.output[0]] = node.input[0]
        elif self._multiplies(node):
            self.lines[node.output[0]] = Line(node.input[0], node.input[1])

    def live(self) -> list[onnx.NodeProto]:
        """The nodes that are needed. Where both twins are, and for bytes, the order comes from the blocks."""
        live, found = set(self.outputs), list[onnx.NodeProto]()
        for node in reversed(self.nodes):
            result = node.output[0]
            if not any(name in live for name in node.output):
                continue
            made = [node]
            if result in self.doubled:
                twin = self.twins[result]
                if twin in live or self.types[result] in BYTES:
                    made = self._in_order(twin, result)
            for each in reversed(made):
                live.update(each.input)
            found += reversed(made)
        return found[::-1]

    def held(self) -> dict[str, Held]:
        known = {name: Held(shape, self.types[name], False) for name, shape in self.shapes.items()}
        for name, twin in self.twins.items():
            if name in self.shapes:  # it is not one of ONNX Runtime's own making
                batch, channels, *sides = self.shapes[name]
                known[twin] = Held((batch, self._filled(channels), *sides), self.types[name], True)
        return known

    def _enter(self, name: str) -> bool:
        """Whether a value is there in blocks, or can be had by ordering bytes."""
        node, shape = self.bytes.get(name), self.shapes.get(name, ())
        if (
            name not in self.twins
            and node is not None
            and shape[1] % self.block == 0
            and self._is_single(node)
        ):
            source, stored = node.input[0], f"{node.input[0]}.blocks"
            if source not in self.twins:
                split = (shape[0], shape[1] // self.block, self.block, *shape[2:])
                self.nodes += self._moved(source, stored, split, (0, 1, 3, 4, 2), shape)
                self.twins[source] = stored
            self._make(node, [self.twins[source], *node.input[1:]])
        return name in self.twins

    # -- twins -----------------------------------------------------------------------------------------------

    def _twin(self, node: onnx.NodeProto) -> bool:
        if node.op_type == "BatchNormalization":
            return self._normalization(node)
        if node.op_type in POOLS and node.input[0] in self.twins:
            self._make(node, [self.twins[node.input[0]]], DOMAIN)
        elif node.op_type == "Concat":
            return self._concat(node)
        elif node.op_type in EACH:
            return self._each(node)
        return node.output[0] in self.twins

    def _make(self, node: onnx.NodeProto, inputs: Sequence[str], domain: str | None = None) -> str:
        twin = onnx.NodeProto()
        twin.CopyFrom(node)
        name = f"{node.output[0]}.blocks"
        twin.input[:], twin.output[:], twin.name = inputs, [name], ""
        if domain is not None:
            twin.domain = domain
        self.nodes.append(twin)
        self.twins[node.output[0]] = name
        return name

    def _concat(self, node: onnx.NodeProto) -> bool:
        whole = all(name in self.twins and not self.shapes[name][1] % self.block for name in node.input)
        if whole and attribute(node, "axis") == 1:
            self._make(node, [self.twins[name] for name in node.input])
        return node.output[0] in self.twins

    def _normalization(self, node: onnx.NodeProto) -> bool:
        x, factor, more, mean, variance = node.input
        plain = not self._array(mean).any() and (self._array(variance) == 1).all()
        if x not in self.twins or not plain or attribute(node, "epsilon"):
            return False
        self._line(node.output[0], Line(self.twins[x], self._channels(factor), self._padded(more)))
        return True

    def _each(self, node: onnx.NodeProto) -> bool:
        """A twin on blocks where each operand is in blocks, a single number, or a number per channel."""
        shape = self.shapes[node.output[0]]
        kinds = [self._kind(name, shape) for name in node.input]
        if "blocks" not in kinds or None in kinds:
            return False
        if "channel" in kinds and not self._is_single(node):
            return False
        if self._as_line(node, kinds):
            return True
        if "gate" in kinds or ("channel" in kinds and node.op_type not in _TAKE_CHANNELS):
            return False
        inputs = [self.twins[n] if k == "blocks" else n for n, k in zip(node.input, kinds, strict=True)]
        if "channel" in kinds:
            self._by_channel(node, inputs, kinds, shape)
        else:
            self._make(node, inputs)
        return True

    def _kind(self, name: str, shape: Shape) -> str | None:
        if not name or self._is_scalar(name):
            return "single"
        own = self.given[name].shape if name in self.given else self.shapes.get(name, ())
        if name in self.twins and own == shape:
            return "blocks"
        if own[-3:] == (shape[1], 1, 1) and np.prod(own) == shape[1]:
            return "channel" if name in self.given else "gate"
        return None

    def _is_whole_line(self, name: str) -> bool:
        line = self.lines.get(self.twins[name])
        return line is not None and line.more is not None

    def _as_line(self, node: onnx.NodeProto, kinds: Sequence[str | None]) -> bool:
        """A product with a number per channel, and what is added to it, in one pass."""
        if len(kinds) == 1 and node.op_type == "Relu" and self._is_whole_line(node.input[0]):
            self._line(node.output[0], self.lines[self.twins[node.input[0]]], activation="Relu")
            return True
        real = self.types[node.output[0]] == TensorProto.FLOAT
        if len(kinds) != 2 or node.op_type not in ("Mul", "Add") or not real:
            return False
        x, other = (node.input[i] for i in ((0, 1) if kinds[0] == "blocks" else (1, 0)))
        kind = kinds[1] if kinds[0] == "blocks" else kinds[0]
        if node.op_type == "Mul" and kind in ("channel", "gate"):
            factor = self._channels(other) if kind == "channel" else self._gate(other)
            made = None if factor is None else Line(self.twins[x], factor)
        else:
            made = self._with_sum(node, x, other, kind)
        if made is not None:
            self._line(node.output[0], made)
        return made is not None

    def _with_sum(self, node: onnx.NodeProto, x: str, other: str, kind: str | None) -> Line | None:
        """The line that makes `x`, with a number per channel added to it; None where that is not so."""
        line = self.lines.get(self.twins[x])
        if node.op_type != "Add" or kind not in ("channel", "single") or line is None:
            return None
        if line.more is not None:
            return None
        return Line(line.x, line.factor, self._padded(other, self.shapes[x][1]))

    def _line(self, result: str, line: Line, **attributes: Any) -> None:
        name = f"{result}.blocks"
        inputs = [line.x, line.factor]
        if line.more is not None:
            inputs.append(self._keep(f"{name}.more", line.more))
        channels = self._filled(self.shapes[result][1])
        self.nodes.append(
            helper.make_node(
                "Conv", inputs, [name], domain=DOMAIN, group=channels, kernel_shape=[1, 1], **attributes
            )
        )
        self.twins[result] = name
        if not attributes:
            self.lines[name] = line

    def _gate(self, name: str) -> str | None:
        """Numbers per channel that a graph computes."""
        channels = self.shapes[name][1]
        if name not in self.twins and channels % self.block:
            return None
        source, gate = self.twins.get(name, name), f"{name}.gate"
        self.nodes.append(
            helper.make_node("Reshape", [source, self._ints(self._filled(channels), 1, 1, 1)], [gate])
        )
        return gate

    def _by_channel(
        self, node: onnx.NodeProto, inputs: list[str], kinds: Sequence[str | None], shape: Shape
    ) -> None:
        """Blocks as an axis of their own, so that numbers per channel line up with it."""
        channels, result = self._filled(shape[1]), f"{node.output[0]}.blocks"
        split = (shape[0], channels // self.block, *shape[2:], self.block)
        for i, kind in enumerate(kinds):
            if kind == "channel":
                rows = self._padded(inputs[i]).reshape(-1, 1, 1, self.block)
                wide = np.ascontiguousarray(np.broadcast_to(rows, (len(rows), 1, shape[3], self.block)))
                inputs[i] = self._keep(f"{result}.{i}", wide)
            elif kind == "blocks":
                apart = f"{result}.{i}"
                self.nodes.append(helper.make_node("Reshape", [inputs[i], self._ints(*split)], [apart]))
                inputs[i] = apart
        self.nodes += [
            helper.make_node(node.op_type, inputs, [f"{result}.apart"]),
            helper.make_node(
                "Reshape", [f"{result}.apart", self._ints(shape[0], channels, *shape[2:])], [result]
            ),
        ]
        self.twins[node.output[0]] = result

    def _multiplies(self, node: onnx.NodeProto) -> bool:
        """Whether a convolution is what ONNX Runtime makes of a product with a number per channel."""
        if node.op_type != "Conv" or len(node.input) != 2 or node.input[1] not in self.given:
            return False
        return self.given[node.input[1]].shape == (attribute(node, "group"), 1, 1, 1)

    # -- orders ----------------------------------------------------------------------------------------------

    def _in_order(self, blocks: str, result: str) -> list[onnx.NodeProto]:
        shape, filled = self.shapes[result], self._filled(self.shapes[result][1])
        if self.types[result] == TensorProto.FLOAT:
            return [helper.make_node("ReorderOutput", [blocks], [result], domain=DOMAIN, channels=shape[1])]
        whole = result if filled == shape[1] else f"{result}.filled"
        split = (shape[0], filled // self.block, *shape[2:], self.block)
        nodes = self._moved(blocks, whole, split, (0, 1, 4, 2, 3), (shape[0], filled, *shape[2:]))
        if whole != result:
            limits = [self._ints(0), self._ints(shape[1]), self._ints(1)]
            nodes.append(helper.make_node("Slice", [whole, *limits], [result]))
        return nodes

    def _moved(
        self, x: str, result: str, split: Sequence[int], perm: Sequence[int], shape: Sequence[int]
    ) -> list[onnx.NodeProto]:
        apart, moved = f"{result}.apart", f"{result}.moved"
        return [
            helper.make_node("Reshape", [x, self._ints(*split)], [apart]),
            helper.make_node("Transpose", [apart], [moved], perm=list(perm)),
            helper.make_node("Reshape", [moved, self._ints(*shape)], [result]),
        ]

    # -- constants -------------------------------------------------------------------------------------------

    def _is_scalar(self, name: str) -> bool:
        return name in self.given and self.given[name].size == 1

    def _is_single(self, node: onnx.NodeProto) -> bool:
        """Whether scale and zero point are single numbers."""
        quantizes = node.op_type in ("QuantizeLinear", "DequantizeLinear")
        return not quantizes or all(self._is_scalar(name) for name in node.input[1:])

    def _array(self, name: str) -> Array:
        return self.constants[name] if name in self.constants else self.given[name]

    def _filled(self, channels: int) -> int:
        return -(-channels // self.block) * self.block

    def _padded(self, name: str, channels: int = 1) -> Array:
        """Numbers per channel, with zeros for channels that fill up a block."""
        array = self._array(name).reshape(-1)
        each = np.broadcast_to(array, max(array.size, channels))
        return np.pad(each, (0, self._filled(each.size) - each.size))

    def _channels(self, name: str) -> str:
        return self._keep(f"{name}.channels", self._padded(name).reshape(-1, 1, 1, 1))

    def _keep(self, name: str, array: Array) -> str:
        self.constants[name] = array
        return name

    def _ints(self, *values: int) -> str:
        return self._keep("ints." + ".".join(map(str, values)), np.array(values, np.int64))


def attribute(node: onnx.NodeProto, name: str) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), None)


def _known(plain: onnx.ModelProto) -> tuple[dict[str, Shape], dict[str, int]]:
    model = onnx.ModelProto()
    model.CopyFrom(plain)
    for node in model.graph.node:
        if node.domain:  # inference does not know it; all of them here keep the shape of what they read first
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output))
    graph = shape_inference.infer_shapes(model).graph
    known = [*graph.input, *graph.value_info, *graph.output]
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in known}
    return shapes, {v.name: v.type.tensor_type.elem_type for v in known}
