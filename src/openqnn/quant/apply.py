"""Builds the fixed-point graph from a plan and the ranges: types, encodings, stored constants, converts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from openqnn.errors import OpenQnnWarning, UsageError
from openqnn.ir import MODEL, Array, DType, Encoding, Given, Graph, Node, Value
from openqnn.ops import Builder, schema_of
from openqnn.ops.schema import Operand, Role
from openqnn.quant.auto_widths import is_level, least_span
from openqnn.quant.block_encoding import block_encoding
from openqnn.quant.encode import activation_type, encoding, limits, parameter_type, signed_encoding
from openqnn.quant.join_integer_io import join_stored
from openqnn.quant.observe.observers import Statistics
from openqnn.quant.plan import (
    CALIBRATION,
    CUT,
    DATA,
    FIXED,
    PRODUCT,
    SHARED,
    Group,
    Plan,
    carries,
    fitting,
    is_lookup,
    is_real,
    is_weight,
    operands,
)  # fmt: skip
from openqnn.quant.range_analysis import EVERYTHING, Bounds, Range, clip_limits
from openqnn.quant.ranges import choose_range, choose_ranges, choose_rows
from openqnn.quant.recipe import BLOCK_WIDTH, FLOAT, Method
from openqnn.quant.softmax_masks import cut_constants, is_masked, told_apart
from openqnn.quant.widen_ranges import widened
from openqnn.targets.htp.kernels.bytes.requantize import is_copied
from openqnn.targets.htp.kernels.layers import near_scales
from openqnn.targets.htp.kernels.words.curves import HIGHEST
from openqnn.targets.htp.kernels.words.products import FEW_TAPS, MANY_TAPS, goes_astray, least_scale
from openqnn.targets.htp.limits import joins_layer, least_top, truncation_bias, why_no_blocks

INT16_LARGEST, INT32_LARGEST = (1 << 15) - 1, (1 << 31) - 1
NORM_WIDTH = 8  # bits of the scales of norms: HTP takes no others
# Leaves room for the products that a bias is added to. Many have just that many units: a third of a power of
# two is far from all multiples of powers of two that HTP cuts sums down to.
BIAS_LARGEST = (1 << 30) // 3
ROOM = 1.01  # above the least scale of weights: HTP compares in float32


@dataclass(slots=True)
class Applied:
    """The graph in fixed point, and for every tensor by name where its encoding came from."""

    graph: Graph
    provenance: dict[str, str] = field(default_factory=dict[str, str])


class Apply:
    """One use: it changes the plan's graph."""

    def __init__(self, plan: Plan, statistics: Mapping[str, Statistics]) -> None:
        self.plan, self.graph, self.recipe = plan, plan.graph, plan.recipe
        self.statistics = statistics
        self.provenance: dict[str, str] = {}
        self.ranges: dict[Value, Range] = {}  # chosen for the tensors that decide for their groups
        width = max(self.plan.width.values(), default=8)
        self.bounds = Bounds(self.graph, width, self._extremes, self._told_apart)
        self.whole: dict[str, str] = {}  # weights that cannot be in blocks, and why
        self.narrow: list[str] = []  # weights of filters that HTP computes wrong in 16 bits
        self.converted: dict[tuple[Value, DType, Encoding | None], Value] = {}
        self.before: dict[Value, Value] = {}  # what was converted
        self.stored: dict[tuple[Value, DType, Encoding | None], Value] = {}

    def run(self) -> Applied:
        self._choose()
        for group in self.plan.groups:
            self._group(group)
        for node in self.graph.nodes:
            cut_constants(node, self.bounds)
        for node in list(self.graph.nodes):
            if self.plan.node_width[node] != FLOAT:
                self._fixed(node)
            else:
                self._real(node)
        join_stored(self.graph)
        self._say_whole()
        self._say_narrow()
        self._say_unclipped()
        self.graph.given = {}  # the tensors have it now
        return Applied(self.graph, self.provenance | self._said_real())

    def _said_real(self) -> dict[str, str]:
        """Tensors in floating point because somebody said so: the model only has encodings."""
        given = {name: said.source for name, said in self.plan.given.items() if said.floating}
        return {
            v.name: given[v.name]
            for v in self.graph.values()
            if is_real(v) and given.get(v.name, MODEL) != MODEL
        }

    def _say_whole(self) -> None:
        if self.whole:
            name, reason = next(iter(self.whole.items()))
            message = (
                f"{len(self.whole)} weights are not in blocks of {self.recipe.block_size}: '{name}': {reason}"
            )
            warnings.warn(message, OpenQnnWarning, stacklevel=2)

    def _say_narrow(self) -> None:
        if self.narrow:
            taps = f"{FEW_TAPS + 1} to {MANY_TAPS - 1} taps (over the stride) along an axis"
            message = (
                f"{len(self.narrow)} weights have 8 bits, not 16: '{self.narrow[0]}': libQnnHtp computes"
                f" filters of {taps}, or with gaps between taps, wrong in 16"
            )
            warnings.warn(message, OpenQnnWarning, stacklevel=2)

    def _say_unclipped(self) -> None:
        """Right behind what computes, HTP clips to the ends of the encoding; in 8 bits so only from below."""
        found: list[str] = []
        for node in self.graph.nodes:
            wanted, coded = clip_limits(node), node.out.encoding if node.outputs else None
            if wanted is None or coded is None or node.x(0).producer is None:
                continue
            low, high = limits(coded, node.out.dtype.signed)
            beyond = max(high - wanted[1], wanted[0] - low) > coded.scale[0]
            if beyond and (coded.bitwidth == 16 or low > wanted[0] - coded.scale[0]):
                found.append(f"'{node.name}': [{wanted[0]:g}, {wanted[1]:g}], encoded [{low:g}, {high:g}]")
        if found:
            message = f"libQnnHtp clips {len(found)} nodes to the range of their encoding instead: {found[0]}"
            warnings.warn(message, OpenQnnWarning, stacklevel=2)

    # -- activations -----------------------------------------------------------------------------------------

    def _choose(self) -> None:
        kinds: dict[tuple[int, bool], list[Value]] = {}
        for group in self.plan.groups:
            if group.given is None and not group.has_fixed_range:
                kinds.setdefault((group.width, group.symmetric), []).extend(group.origins)
        scheme = self.recipe.act
        for (width, symmetric), values in kinds.items():
            seen = [self._seen(v) for v in values]
            found = choose_ranges(seen, scheme.method, width, symmetric, scheme.percentile)
            self.ranges |= zip(values, found, strict=True)

    def _group(self, group: Group) -> None:
        found, source = self._range(group)
        signed = group.given.signed if group.given is not None else False
        dtype = parameter_type(found.bitwidth, True) if signed else activation_type(found.bitwidth)
        for value in group.members:
            value.dtype, value.encoding = dtype, found
            self.provenance[value.name] = source if value in group.origins else f"{SHARED}: {source}"

    def _range(self, group: Group) -> tuple[Encoding, str]:
        if group.given is not None and group.given.encoding is not None:
            return group.given.encoding, group.given.source
        if group.fixed is not None and group.has_fixed_range:
            low, high = group.fixed
            return encoding(low, high, group.width, symmetric=group.symmetric), FIXED
        cut = self._is_cut(group)
        low, high = self._wide_enough(group, *self._calibrated(group, cut))
        steps = self.recipe.steps_of(group.width)
        if group.multiplied and steps is None:
            low, high = (end * INT16_LARGEST / HIGHEST for end in (low, high))
        found = encoding(low, high, group.width, symmetric=group.symmetric, steps=steps)
        return found, CUT if cut else CALIBRATION

    def _calibrated(self, group: Group, cut: bool) -> tuple[float, float]:
        """The range that calibration saw, with room beyond it where the recipe leaves some."""
        # A range that was chosen with regard to what does not count says nothing of the rest.
        low, high = self._union(group.origins, self._extremes if cut else self._chosen)
        if cut:  # before there is room left beyond it, as much as a mask is large
            low, high = self._within_reach(group, low, high)
        if not self.recipe.headroom:
            return low, high
        count, level = sum(self._seen(v).count for v in group.origins), any(map(is_level, group.origins))
        return self._within_reach(group, *widened(low, high, group.width, count, level))

    def _wide_enough(self, group: Group, low: float, high: float) -> tuple[float, float]:
        """The range with the least width that the target takes for tensors of that kind."""
        if group.width == 8:
            high = max(high, *(self._least_top(v) for v in group.origins))
        if group.width == 16:
            high = max(high, low + max(least_span(v) for v in group.origins))
        return low, high

    def _chosen(self, value: Value) -> Range:
        """The range to encode; of a table all that is in it: data to come looks up what calibration did
        not."""
        looked_up = value.producer is not None and is_lookup(value.producer)
        return self.bounds.reach(value) if looked_up else self.ranges[value]

    def _least_top(self, value: Value) -> float:
        node = value.producer
        return least_top(node, self._extremes(node.x(0))[0]) if node is not None and node.inputs else -inf

    def _within_reach(self, group: Group, low: float, high: float) -> tuple[float, float]:
        """The part of a range that values can reach, and that a reader can tell from its ends."""
        least, most = self._union(group.origins, self.bounds.reach)
        first, last = self._union(group.members, self.bounds.useful)
        return max(low, least, first), min(high, most, last)

    def _is_cut(self, group: Group) -> bool:
        """Whether values were seen that readers do not tell from the ends of the range.

        Without headroom that counts for masks alone.
        """
        first, last = self._union(group.members, self.bounds.useful)
        low, high = self._union(group.origins, self._extremes)
        return low < first if is_masked(low) else self.recipe.headroom and (low < first or last < high)

    def _told_apart(self, node: Node) -> Range | None:
        return told_apart(node, self.plan.node_width[node], self.statistics)

    def _union(self, values: Sequence[Value], range_of: Callable[[Value], Range]) -> Range:
        found = [range_of(v) for v in values]
        return min(r[0] for r in found), max(r[1] for r in found)

    def _extremes(self, value: Value) -> Range:
        """What calibration saw of a value, or of those that it holds values of."""
        group = self.plan.group(value)
        origins = [value] if group is None else group.origins
        if any(v.name not in self.statistics for v in origins):
            return EVERYTHING
        return self._union(origins, lambda v: (self.statistics[v.name].lowest, self.statistics[v.name].high))

    # -- nodes -----------------------------------------------------------------------------------------------

    def _fixed(self, node: Node) -> None:
        """Constants are stored as integers, and what comes in another width is converted."""
        width = self.plan.node_width[node]
        bias: tuple[int, Value] | None = None
        for index, value, operand in list(operands(node)):
            if operand.role is Role.BIAS and value.is_constant and is_real(value):
                bias = index, value
            elif not value.is_constant:
                self._activation(node, index, value, width)
            elif is_real(value):
                self.graph.set_input(node, index, self._parameter(node, index, value, operand, width))
        if bias is not None:
            self.graph.set_input(node, bias[0], self._bias(node, bias[1]))
        self._mend_copy(node)
        self._mend_gate(node, width)

    def _activation(self, node: Node, index: int, value: Value, width: int) -> None:
        if is_real(value):
            self.graph.set_input(node, index, self._convert(node, value, *self._fresh(value, width)))
        elif value.dtype.is_fixed and value.encoding is not None and value.encoding.bitwidth != width:
            found = self._said(value, width) or self._widened(value, value.encoding, width)
            self.graph.set_input(node, index, self._convert(node, value, activation_type(width), found))

    def _fresh(self, value: Value, width: int) -> tuple[DType, Encoding]:
        """The encoding of a real tensor that a node of fixed point reads."""
        said = self._said(value, width)
        if said is not None:
            return activation_type(width), said
        scheme = self.recipe.act
        seen = self._seen(value)
        method = scheme.method if seen.histogram is not None else Method.MIN_MAX
        low, high = choose_range(seen, method, width, scheme.symmetric, scheme.percentile)
        if self.recipe.headroom and width == 16:
            low, high = widened(low, high, width, seen.count, is_level(value))
        if is_masked(seen.lowest) and seen.lowest < self.bounds.useful(value)[0]:
            low, high = self.bounds.useful(value)[0], seen.high
        return activation_type(width), encoding(low, high, width, symmetric=scheme.symmetric)

    def _said(self, value: Value, width: int) -> Encoding | None:
        """The encoding of that width that was given for a tensor, or for what it was moved from, unsigned."""
        given = self.plan.given.get(value.name)
        if given is None and value.producer is not None and len(moved := carries(value.producer)) == 1:
            return self._said(moved[0], width)
        found = () if given is None else (given.unsigned().encoding, *given.also)
        return next((e for e in found if e is not None and e.bitwidth == width), None)

    def _seen(self, value: Value) -> Statistics:
        """What is known of a tensor; one that was not looked at is a moved or a clipped other one, or has the
        range of a function."""
        value = self.before.get(value, value)
        if value.name in self.statistics:
            return self.statistics[value.name]
        group = self.plan.group(value)
        if group is not None and group.fixed is not None and group.has_fixed_range:
            return Statistics(*group.fixed, count=value.size)
        node = value.producer
        sources = carries(node) if node is not None else []
        found = [self._seen(v) for v in sources or _clipped(value)[:1]]
        if not found:
            raise UsageError(f"nothing is known of the range of '{value.name}'", hint="give calibration data")
        low, high = min(s.low for s in found), max(s.high for s in found)
        whole = (s for s in found if (s.low, s.high) == (low, high))
        return next(whole, Statistics(low, high, count=value.size))

    def _widened(self, value: Value, found: Encoding, width: int) -> Encoding:
        """An encoding of the same range in steps of another width."""
        first = -(1 << (found.bitwidth - 1)) if value.dtype.signed else 0
        low = found.scale[0] * (first + found.offset[0])
        high = low + found.scale[0] * ((1 << found.bitwidth) - 1)
        return encoding(low, high, width, symmetric=found.symmetric)

    def _convert(self, node: Node, value: Value, dtype: DType, found: Encoding | None) -> Value:
        """The tensor in another type, made once for all that read it so."""
        key = value, dtype, found
        if key not in self.converted:
            b = Builder(self.graph, node.source, before=node)
            b.stem = f"{value.name}_{dtype.label}"
            both = value.dtype.is_fixed and dtype.is_fixed
            made = (b.convert if both else b.quantize if dtype.is_fixed else b.dequantize)(value, dtype)
            made.encoding = found
            self.converted[key], self.before[made] = made, value
            if found is not None:
                said = self.plan.given.get(value.name)
                source = CALIBRATION if said is None or said.encoding is None else said.source
                self.provenance[made.name] = f"{SHARED}: {self.provenance.get(value.name, source)}"
        return self.converted[key]

    def _real(self, node: Node) -> None:
        """A node in floating point reads floats."""
        if schema_of(node).on_stored and node.out.dtype.is_fixed:
            return
        real = DType.FLOAT_32
        for index, value, operand in list(operands(node)):
            if value in self.plan.width and value.dtype.is_fixed and operand.role is not Role.INDEX:
                self.graph.set_input(node, index, self._convert(node, value, real, None))

    def _mend_gate(self, node: Node, width: int) -> None:
        """Behind a layer HTP takes 16-bit data times their own sigmoid for one op, and computes it wrong with
        some heights and widths, but not so where the sigmoid comes first."""
        if width != 16 or not schema_of(node).commutes:
            return
        first, second = node.x(0), node.x(1)
        if second.producer is not None and first in second.producer.inputs:
            self.graph.set_input(node, 0, second)
            self.graph.set_input(node, 1, first)

    def _mend_copy(self, node: Node) -> None:
        """HTP copies stored integers here: where the encodings differ, the input is converted first. Where
        several are joined, it so copies only what is a copy itself."""
        if not schema_of(node).hands_on(node) or not node.out.dtype.is_fixed:
            return
        out, alone = node.out, len([v for v in node.inputs if v is not None]) == 1
        for index, value in enumerate(node.inputs):
            differs = value is not None and value.dtype.is_fixed and value.encoding != out.encoding
            if value is not None and differs and (alone or is_copied(value)):
                self.graph.set_input(node, index, self._convert(node, value, out.dtype, out.encoding))

    # -- constants -------------------------------------------------------------------------------------------

    def _parameter(self, node: Node, index: int, value: Value, operand: Operand, width: int) -> Value:
        given = fitting(self.plan.given.get(value.name), operand)
        narrow = given is not None and given.bitwidth < width and not is_weight(value, operand)
        if given is not None and given.encoding is not None and (not narrow or is_lookup(node)):
            return self._store(
                value, parameter_type(given.bitwidth, given.signed), given.encoding, given.source
            )
        if not is_weight(value, operand):
            out = node.out.encoding if is_lookup(node) else None  # HTP copies integers out of a table
            found = out or self._whole(value, width, symmetric=False)
            return self._store(value, activation_type(width), found, DATA)
        bits = given.bitwidth if given is not None else self._weight_width(node, width)
        if bits == 16 and goes_astray(node):
            bits = 8
            self.narrow.append(value.name)
        axis = channel_axis(node, value, operand) if self._by_channel(operand) else None
        # Norms take scales of unsigned storage only, with any zero.
        matrix = operand.channel_axis is not None
        bits = bits if matrix else min(bits, NORM_WIDTH)
        if matrix and (self.recipe.param.symmetric or axis is not None or bits == 16):
            found = self._symmetric(node, value, bits, axis)
            return self._store(value, parameter_type(bits, True), found, DATA)
        found = self._whole(value, bits, symmetric=False, steps=self.recipe.steps_of(bits))
        return self._store(value, parameter_type(bits, False), found, DATA)

    def _weight_width(self, node: Node, width: int) -> int:
        return (self.recipe.weight_widths.get(node.name) if width == 16 else None) or self.recipe.weight_bw

    def _symmetric(self, node: Node, value: Value, bits: int, axis: int | None) -> Encoding:
        assert value.data is not None
        least, size = self._least_scale(node, axis, bits), self.recipe.block_size
        if size is not None and bits == BLOCK_WIDTH:
            reason = why_no_blocks(node, value, axis, size)
            if not reason and axis is not None:
                return block_encoding(value.data, axis, size, least)
            self.whole[value.name] = reason
        bounds, x = self._bounds(value, axis, bits), node.x(0).encoding
        found = signed_encoding(bounds, bits, axis, least, self.recipe.steps_of(bits))
        if x is not None and x.bitwidth == 16 and bits == 8:
            found = replace(found, scale=tuple(near_scales(node, np.asarray(found.scale)).tolist()))
        return found

    def _by_channel(self, operand: Operand) -> bool:
        if operand.channel_axis is None:
            return False
        return self.recipe.per_channel if operand.layout else self.recipe.per_row

    def _bounds(self, value: Value, axis: int | None, bits: int) -> Array:
        """The largest magnitude that each channel has to hold."""
        assert value.data is not None
        rows = value.data.reshape(1, -1) if axis is None else _rows(value.data, axis)
        scheme = self.recipe.param
        if scheme.method in (Method.MIN_MAX, Method.ADJUSTED):
            return np.abs(rows).max(axis=1)
        low, high = choose_rows(rows, scheme.method, bits, True, scheme.percentile)
        return np.maximum(-low, high)

    def _least_scale(self, node: Node, axis: int | None, bits: int) -> Array:
        """What the scale of weights must be so that the bias, in input scale * weight scale, fits 32 bits.

        Channels that pruning left with tiny weights and a bias need it: HTP clips their bias otherwise. With
        data of 16 bits it makes huge numbers of such weights, bias or not.
        """
        x, least = node.x(0).encoding, 0.0
        if x is None:
            return np.zeros(1)
        made = [n.out.encoding for n in (node, *node.out.users) if n is node or joins_layer(n)]
        if x.bitwidth == 16:
            least = max(
                (least_scale(x.scale[0], e.scale[0], bits) for e in made if e is not None), default=0.0
            )
        bias = node.inputs[2] if node.has(2) else None
        if bias is None or bias.data is None:
            return np.full(1, least * ROOM)
        need = np.abs(bias.data.astype(np.float64)) / (x.scale[0] * BIAS_LARGEST)
        return np.maximum(need if axis is not None else need.max(initial=0.0, keepdims=True), least * ROOM)

    def _whole(
        self, value: Value, bits: int, symmetric: bool, steps: tuple[int, int] | None = None
    ) -> Encoding:
        assert value.data is not None
        scheme = self.recipe.param
        low, high = choose_rows(value.data.reshape(1, -1), scheme.method, bits, symmetric, scheme.percentile)
        return encoding(float(low[0]), float(high[0]), bits, symmetric=symmetric, steps=steps)

    def _bias(self, node: Node, value: Value) -> Value:
        """HTP adds the bias to the products: it has their scale, by channel where the weights have that."""
        given, w = self.plan.given.get(value.name), node.x(1).encoding if node.has(1) else None
        plain = w is None or w.axis is None
        if given is not None and given.encoding is not None and not (plain and given.encoding.axis == 0):
            return self._store(value, _bias_type(given), given.encoding, given.source)
        value = self._made_good(node, value)
        assert value.data is not None
        x = node.x(0).encoding
        # With a scale for each channel of the weights, HTP takes no bias of 8 bits.
        if self.recipe.bias_bw == 8 and plain:
            return self._store(value, DType.UFIXED_8, self._whole(value, 8, symmetric=False), DATA)
        scales = np.asarray(w.scale if w is not None else (1.0,)) * (x.scale[0] if x is not None else 1.0)
        axis = None if plain else 0  # of one channel, too: HTP goes by that
        largest = np.abs(value.data.astype(np.float64))
        need = (largest if axis is not None else largest.max(initial=0.0)) / INT32_LARGEST
        scales = np.maximum(scales, need)
        found = Encoding(tuple(scales.tolist()), (0,) * len(scales), 32, axis, symmetric=True)
        return self._store(value, DType.SFIXED_32, found, PRODUCT)

    def _made_good(self, node: Node, value: Value) -> Value:
        """The bias, with what HTP cuts off of 8-bit results on average."""
        lacking, out = truncation_bias(node), node.out.encoding
        if not lacking or out is None or out.bitwidth != 8 or value.data is None:
            return value
        data = value.data + np.asarray(lacking * out.scale[0], value.data.dtype)
        return Value(self.graph.unique(value.name), value.dtype, value.shape, None, data)

    def _store(self, value: Value, dtype: DType, found: Encoding, source: str) -> Value:
        """The constant in stored integers; nodes that need it in the same form share it."""
        key = value, dtype, found
        if key not in self.stored:
            assert value.data is not None
            data = found.quantize(value.data, dtype.signed).astype(dtype.numpy)
            real = any(self.plan.node_width[user] == FLOAT for user in value.users)
            first = not real and not any(k[0] is value for k in self.stored)
            name = value.name if first else self.graph.unique(value.name)
            self.stored[key] = Value(name, dtype, value.shape, found, data)
            self.provenance[name] = source
        return self.stored[key]


def _bias_type(given: Given) -> DType:
    return DType.SFIXED_32 if given.bitwidth == 32 else parameter_type(given.bitwidth, given.signed)


def _clipped(value: Value) -> list[Value]:
    """What a tensor is clipped to, perhaps after it was moved."""
    moved = [v for u in value.users if carries(u) for v in u.outputs]
    return [u.out for u in value.users if schema_of(u).clips] + [c for v in moved for c in _clipped(v)]


def _rows(data: Array, axis: int) -> Array:
    return np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)


def channel_axis(node: Node, value: Value, operand: Operand) -> int:
    """The axis of a weight that its output channels lie along."""
    assert operand.channel_axis is not None
    axis = operand.channel_axis % value.rank
    return axis - 1 if node.params.get("transpose_in1") else axis
