"""Wide layers of fixed-point graphs a few rows at a time.

Between two convolutions such a graph goes over the numbers of a layer a dozen times. Where they do not fit
into the processor's cache, each time takes twice as long. A layer, from the bytes that it reads to those that
it makes, is therefore computed in parts of some rows, and each of them stays in the cache from the first
pass to the last. With several threads for one sample that does not pay: they meet at every node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from openqnn.ir import Array, Shape
from openqnn.runtime.cpu.keep_nchwc import DOMAIN, EACH, Blocked, Held, attribute

CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
USUAL_CACHE = 1 << 20  # bytes of a processor's second cache, where it does not say
FITS, PART = 0.45, 0.2  # shares of the cache: numbers that stay in it without us, and those of a part
NODE = 16 << 10  # bytes that a pass goes over in the time that starting a node takes
HEIGHT = 2  # the axis of rows


def second_cache() -> int:
    """Bytes of the cache that a processor has for itself."""
    try:
        size = CACHE.read_text(encoding="ascii").strip()
        return int(size.removesuffix("K")) << 10
    except (OSError, ValueError):  # another system, or sizes in units that Linux has not used so far
        return USUAL_CACHE


def in_rows(
    found: Blocked, constants: Mapping[str, Array], outputs: Collection[str], block: int, cache: int
) -> Blocked:
    """Splits wide layers into tiles of rows, for a processor with so many bytes of cache."""
    return _Rows(found, constants, outputs, block, cache).run()


@dataclass(slots=True)
class _Layer:
    """Places of nodes: those that work number by number, convolutions that they start from, and whatever
    makes the numbers of these from bytes."""

    shape: Shape
    each: list[int]
    heads: list[int] = field(default_factory=lambda: list[int]())
    entering: list[int] = field(default_factory=lambda: list[int]())

    @property
    def nodes(self) -> list[int]:
        return sorted(self.each + self.heads + self.entering)


@dataclass(frozen=True, slots=True)
class _Span:
    """Rows of what a convolution reads, and how many beyond its borders."""

    start: int
    end: int
    above: int = 0
    below: int = 0


class _Rows:
    def __init__(
        self,
        found: Blocked,
        constants: Mapping[str, Array],
        outputs: Collection[str],
        block: int,
        cache: int,
    ) -> None:
        self.given, self.constants = constants, dict(found.constants)
        self.nodes, self.outputs, self.block, self.cache = found.nodes, outputs, block, cache
        self.made = {name: i for i, node in enumerate(self.nodes) for name in node.output}
        self.readers: dict[str, list[int]] = defaultdict(list)
        for i, node in enumerate(self.nodes):
            for name in node.input:
                self.readers[name].append(i)
        self.held = dict(found.held)
        for node in self.nodes:
            if _is_convolution(node) and node.input[0] in self.held and node.input[1] in self.given:
                self.held.setdefault(node.output[0], Held(self._convolved(node), TensorProto.FLOAT, True))
        self.result: list[onnx.NodeProto] = []
        self.there: set[str] = set()  # names of parts that have been cut off

    def run(self) -> Blocked:
        layers = [layer for layer in self._layers() if self._pays(layer)]
        if not layers:
            return Blocked(self.nodes, self.constants, self.held)
        inside = {i for layer in layers for i in layer.nodes}
        self.result = [node for i, node in enumerate(self.nodes) if i not in inside]
        for layer in layers:
            self._divide(layer)
        return Blocked(_sorted(self.result), self.constants, self.held)

    # -- layers ----------------------------------------------------------------------------------------------

    def _layers(self) -> Iterator[_Layer]:
        """Nodes that hang together and have as many others before them: so none waits for itself."""
        depths: list[int] = []
        of: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            each = self._is_each(node)
            before = [self.made[name] for name in node.input if name in self.made]
            depths.append(max((depths[j] for j in before), default=0) + (not each))
            if each:
                of[i] = [i]
                for j in before:
                    if j in of and depths[j] == depths[i] and of[j] is not of[i]:
                        small, large = sorted((of[i], of[j]), key=len)
                        large += small
                        of.update(dict.fromkeys(small, large))
        for members in {id(m): m for m in of.values()}.values():
            layer = _Layer(self.held[self.nodes[members[0]].output[0]].shape, sorted(members))
            self._start(layer)
            yield layer

    def _is_each(self, node: onnx.NodeProto) -> bool:
        held = self.held.get(node.output[0])
        if held is None or not held.blocked:
            return False
        if node.domain == DOMAIN:
            return self._is_line(node)
        if node.op_type not in EACH or self._is_entering(node):
            return False
        return all(self._is_single(name) or self._shape(name) == held.shape for name in node.input if name)

    def _is_line(self, node: onnx.NodeProto) -> bool:
        """Whether a convolution is a product with a number per channel, which the graph may have computed."""
        if not _is_convolution(node):
            return False
        weights = self.given.get(node.input[1], self.constants.get(node.input[1]))
        shape = self._shape(node.output[0])
        if shape is None or shape != self._shape(node.input[0]) or attribute(node, "group") != shape[1]:
            return False
        return weights is None or weights.shape[1:] == (1, 1, 1)

    def _is_entering(self, node: onnx.NodeProto) -> bool:
        """Whether a node makes numbers from bytes for convolutions alone."""
        source, readers = self.held.get(node.input[0]), self.readers[node.output[0]]
        if source is None or source.bytes != 1 or node.op_type not in ("DequantizeLinear", "Cast"):
            return False
        return all(_is_convolution(self.nodes[i]) and not self._is_line(self.nodes[i]) for i in readers)

    def _start(self, layer: _Layer) -> None:
        """Adds the convolutions that a layer alone reads, and what they alone read."""
        members = set(layer.each)
        for name in self._read(layer.each):
            head = self.made.get(name)
            if head is None or name in self.outputs or not members.issuperset(self.readers[name]):
                continue
            node = self.nodes[head]
            known = node.input[0] in self.held and all(n in self.given for n in node.input[1:])
            if _is_convolution(node) and known:
                layer.heads.append(head)
                before = self.made.get(node.input[0])
                if (
                    before is not None
                    and len(self.readers[node.input[0]]) == 1
                    and self._is_entering(self.nodes[before])
                ):
                    layer.entering.append(before)

    def _pays(self, layer: _Layer) -> bool:
        """Whether numbers in the cache save more time than it takes to cut a layer and to join it."""
        size = prod(layer.shape) * 4
        if size <= FITS * self.cache or layer.shape[1] % self.block:
            return False
        count = len(layer.nodes)
        moved = sum(self.held[name].size for name in (*self._read(layer.nodes), *self._left(layer)))
        parts = ceil(layer.shape[HEIGHT] / self._rows(layer))
        return count * size / 2 > moved + parts * (count + 4) * NODE

    def _rows(self, layer: _Layer) -> int:
        """How many rows a part has."""
        height = layer.shape[HEIGHT]
        wide = [layer.shape, *(self.held[self.nodes[i].input[0]].shape for i in layer.heads)]
        parts = ceil(max(map(prod, wide)) * 4 / (PART * self.cache))
        return ceil(height / min(parts, height))

    def _read(self, nodes: Sequence[int]) -> list[str]:
        """What nodes read from elsewhere, in the layout of what they make."""
        made = {name for i in nodes for name in self.nodes[i].output}
        read = dict[str, None]()
        for i in nodes:
            node = self.nodes[i]
            read |= dict.fromkeys(node.input[:1] if node.domain == DOMAIN else node.input)
        return [n for n in read if n in self.held and n not in made and not self._is_single(n)]

    def _left(self, layer: _Layer) -> list[str]:
        """What is read of a layer elsewhere."""
        members = set(layer.nodes)
        made = [name for i in layer.each for name in self.nodes[i].output]
        return [n for n in made if n in self.outputs or not members.issuperset(self.readers[n])]

    # -- parts -----------------------------------------------------------------------------------------------

    def _divide(self, layer: _Layer) -> None:
        height, rows = layer.shape[HEIGHT], self._rows(layer)
        left = self._left(layer)
        parts: dict[str, list[str]] = {name: [] for name in left}
        for start in range(0, height, rows):
            end = min(start + rows, height)
            self._part(layer, start, end)
            for name in left:
                part = f"{name}.rows.{start}"
                self._shaped(part, f"{part}.apart", self._apart(layer.shape, end - start))
                parts[name].append(f"{part}.apart")
        for name, joined in parts.items():
            self.result.append(helper.make_node("Concat", joined, [f"{name}.joined"], axis=HEIGHT))
            self._shaped(f"{name}.joined", name, layer.shape)

    def _part(self, layer: _Layer, start: int, end: int) -> None:
        """The nodes of a layer for some of its rows."""
        spans = {i: self._span(self.nodes[i], start, end) for i in layer.heads}
        spans |= {i: spans[self.readers[self.nodes[i].output[0]][0]] for i in layer.entering}
        names: dict[str, str] = {}
        for i in layer.nodes:
            node = onnx.NodeProto()
            node.CopyFrom(self.nodes[i])
            node.name = ""
            span = spans.get(i, _Span(start, end))
            for j, name in enumerate(node.input):
                if name in names:
                    node.input[j] = names[name]
                elif name in self.held and not self._is_single(name) and not (node.domain == DOMAIN and j):
                    node.input[j] = self._cut(name, span)
            if i in layer.heads:
                _set_borders(node, span)
            for j, name in enumerate(node.output):
                names[name] = node.output[j] = f"{name}.rows.{start}"
            self.result.append(node)

    def _cut(self, name: str, span: _Span) -> str:
        part, held, rows = f"{name}.rows.{span.start}.{span.end}", self.held[name], span.end - span.start
        if part not in self.there:
            self.there.add(part)
            if not held.blocked:
                self._slice(name, part, span)
                return part
            whole = f"{name}.apart.whole"
            if whole not in self.there:
                self.there.add(whole)
                self._shaped(name, whole, self._apart(held.shape, held.shape[HEIGHT]))
            self._slice(whole, f"{part}.apart", span)
            self._shaped(f"{part}.apart", part, (*held.shape[:2], rows, held.shape[3]))
        return part

    def _slice(self, name: str, result: str, span: _Span) -> None:
        limits = [self._ints(span.start), self._ints(span.end), self._ints(HEIGHT)]
        self.result.append(helper.make_node("Slice", [name, *limits], [result]))

    def _shaped(self, name: str, result: str, shape: Sequence[int]) -> None:
        self.result.append(helper.make_node("Reshape", [name, self._ints(*shape)], [result]))

    def _apart(self, shape: Shape, rows: int) -> Shape:
        """Blocks as they lie: each row of a block is one piece."""
        return shape[0], shape[1] // self.block, rows, shape[3] * self.block

    def _span(self, node: onnx.NodeProto, start: int, end: int) -> _Span:
        """The rows that a convolution reads for those that it makes."""
        kernel, step, wide, pads = self._geometry(node)
        first = start * step[0] - pads[0]
        last = (end - 1) * step[0] + (kernel[0] - 1) * wide[0] + 1 - pads[0]
        height = self.held[node.input[0]].shape[HEIGHT]
        return _Span(max(first, 0), min(last, height), max(-first, 0), max(last - height, 0))

    # -- what is known ---------------------------------------------------------------------------------------

    def _geometry(self, node: onnx.NodeProto) -> tuple[Shape, Sequence[int], Sequence[int], Sequence[int]]:
        """Kernel, strides, dilations and borders."""
        kernel = self.given[node.input[1]].shape[2:]
        pads = attribute(node, "pads") or (0, 0, 0, 0)
        return kernel, attribute(node, "strides") or (1, 1), attribute(node, "dilations") or (1, 1), pads

    def _convolved(self, node: onnx.NodeProto) -> Shape:
        x, weights = self.held[node.input[0]].shape, self.given[node.input[1]]
        kernel, step, wide, pads = self._geometry(node)
        sizes = (
            (x[2 + i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * wide[i] - 1) // step[i] + 1
            for i in range(2)
        )
        return x[0], len(weights), *sizes

    def _shape(self, name: str) -> Shape | None:
        return self.held[name].shape if name in self.held and self.held[name].blocked else None

    def _is_single(self, name: str) -> bool:
        array = self.given.get(name, self.constants.get(name))
        return array is not None and array.size == 1

    def _ints(self, *values: int) -> str:
        name = "ints." + ".".join(map(str, values))
        self.constants[name] = np.array(values, np.int64)
        return name


def _is_convolution(node: onnx.NodeProto) -> bool:
    return node.domain == DOMAIN and node.op_type == "Conv" and len(node.input) <= 3


def _set_borders(node: onnx.NodeProto, span: _Span) -> None:
    pads = next((a for a in node.attribute if a.name == "pads"), None)
    if pads is not None:
        pads.ints[0], pads.ints[2] = span.above, span.below


def _sorted(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Each behind those that it reads, and as soon as it can be: a part is done before the next begins."""
    made = {name: i for i, node in enumerate(nodes) for name in node.output}
    done: dict[int, onnx.NodeProto] = {}
    for last in range(len(nodes)):
        waiting = [last]
        while waiting:
            i = waiting[-1]
            before = [made[n] for n in nodes[i].input if n in made and made[n] not in done]
            if before and i not in done:
                waiting += before[::-1]
            else:
                done.setdefault(waiting.pop(), nodes[i])
    return list(done.values())
