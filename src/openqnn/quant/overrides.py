"""The user's encodings: which tensor of the graph each entry of a file means, and what is wrong with it.

An entry is found by the tensor's name in the source model, or by the name that QNN's files have for it. By
channel means along the output channels of the op that reads the constant, wherever these lie in the graph.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openqnn import ir
from openqnn.errors import InputError, OpenQnnWarning
from openqnn.formats.encodings import Blocks, EncodingsFile, TensorEncoding
from openqnn.ir import MODEL, OVERRIDE, Encoding, Given, Graph, Node, Value
from openqnn.ops.schema import Operand, Role
from openqnn.qnn.net import block_axis, qnn_name
from openqnn.quant.apply import channel_axis as weight_axis
from openqnn.quant.encode import encoding
from openqnn.quant.plan import Group, Plan, is_real, is_weight, operands
from openqnn.quant.recipe import ACT_WIDTHS, BIAS_WIDTHS, WEIGHT_WIDTHS, Recipe
from openqnn.targets.htp.limits import why_no_block_form, why_no_blocks

_SHOWN = 5
_FOLDED = "the conversion has folded a factor into it: of its encoding only the width is used"
_STEPS = 2.0  # a range may be off by rounding of its ends
_CLIPPED, _EMPTY = 2.0, 8.0  # times that a constant's range may differ from its encoding's


class Status(StrEnum):
    """What is to be said of a tensor or an entry."""

    IMPOSSIBLE = "impossible"  # the tensor cannot have this encoding
    UNUSED = "unused"  # no such tensor
    MERGED = "merged"  # a tensor of the source model that the graph does not have any more
    DOUBTFUL = "doubtful"  # possible, but hardly what was meant; the detail says whether it is used
    MISSING = "missing"  # a tensor that calibration has to find an encoding for


@dataclass(frozen=True, slots=True)
class Finding:
    status: Status
    tensor: str
    detail: str
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"'{self.tensor}': {self.detail}"


@dataclass(slots=True)
class Matched:
    """What a file says of the tensors of a graph, by their names, and what is to be said of the file."""

    given: dict[str, Given] = field(default_factory=dict[str, Given])
    findings: list[Finding] = field(default_factory=lambda: list[Finding]())

    def of(self, status: Status) -> list[Finding]:
        return [f for f in self.findings if f.status is status]


def read_overrides(graph: Graph, file: EncodingsFile, path: str, source: Collection[str] = ()) -> Matched:
    """The overrides of a graph; InputError if one is impossible or none fits, warnings of other problems."""
    found = match(graph, file, source)
    impossible, unused = found.of(Status.IMPOSSIBLE), found.of(Status.UNUSED)
    if impossible:
        raise InputError(f"{path}: {_listed(impossible)}", hint=f"openqnn encodings MODEL --lint {path}")
    if file.tensors and not found.given:
        raise InputError(f"{path}: no entry is for a tensor of this model: {_listed(unused)}")
    for said in (unused, found.of(Status.DOUBTFUL)):
        if said:
            warnings.warn(f"{path}: {said[0].status.value}: {_listed(said)}", OpenQnnWarning, stacklevel=2)
    return found


def _listed(findings: list[Finding]) -> str:
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return "; ".join(map(str, findings[:_SHOWN])) + more


def match(graph: Graph, file: EncodingsFile, source: Collection[str] = ()) -> Matched:
    """Entries to tensors. `source` are all names of the source model, where the graph does not know them:
    what it has, an entry may well name."""
    values = {v.name: v for v in graph.values()}
    by_qnn_name = _unique(values)
    found = Matched()
    for name, entry in file.tensors.items():
        value = values.get(name) or by_qnn_name.get(qnn_name(name))
        if value is None:
            found.findings.append(_unknown(name, values, name in source or name in graph.merged))
            continue
        problem = _impossible(entry, value)
        if problem:
            found.findings.append(Finding(Status.IMPOSSIBLE, name, problem))
            continue
        if value.name in graph.folded and entry.scales:
            found.given[value.name] = Given(OVERRIDE, entry.bitwidth)
            found.findings.append(Finding(Status.DOUBTFUL, name, _FOLDED))
            continue
        clipped = _clipped(entry, value)
        if not clipped:
            found.given[value.name] = _given(entry, value)
        doubt = clipped or _doubt(entry, value)
        if doubt:
            found.findings.append(Finding(Status.DOUBTFUL, name, doubt))
    found.findings += _missing(graph, found.given, source)
    return found


def _unique(values: Mapping[str, Value]) -> dict[str, Value]:
    """Tensors by QNN's name for them, where that is no other's too."""
    found: dict[str, list[Value]] = {}
    for name, value in values.items():
        found.setdefault(qnn_name(name), []).append(value)
    return {name: members[0] for name, members in found.items() if len(members) == 1}


def _unknown(name: str, values: Iterable[str], in_source: bool) -> Finding:
    if in_source:
        return Finding(Status.MERGED, name, "merged into another op by the conversion")
    near = tuple(difflib.get_close_matches(name, values, 3, 0.7))
    meant = f"; near: {', '.join(near)}" if near else ""
    return Finding(Status.UNUSED, name, f"no such tensor{meant}", near)


# -- what a tensor is ----------------------------------------------------------------------------------------


def readers(value: Value) -> list[tuple[Node, Operand]]:
    """The nodes that read a tensor, with the operand that it is to each."""
    found: list[tuple[Node, Operand]] = []
    for node in dict.fromkeys(value.users):
        found += [(node, operand) for _, v, operand in operands(node) if v is value]
    return found


def channel_axis(value: Value) -> int | None:
    """The axis of a constant that its output channels lie along; None where it has none."""
    if not value.is_constant:
        return None
    for node, operand in readers(value):
        if operand.channel_axis is not None:
            return weight_axis(node, value, operand)
    return 0 if value.rank == 1 and _is_bias(value) else None


def _is_bias(value: Value) -> bool:
    return value.is_constant and any(operand.role is Role.BIAS for _, operand in readers(value))


def _is_matrix(value: Value) -> bool:
    """A constant whose stored integers are signed where its encoding is symmetric."""
    return any(is_weight(value, o) and o.channel_axis is not None for _, o in readers(value))


# -- judging -------------------------------------------------------------------------------------------------


def _impossible(entry: TensorEncoding, value: Value) -> str:
    if not is_real(value) and not value.dtype.is_fixed:
        return f"is {value.dtype.label}: integers are not quantized"
    if entry.is_float:
        return ""
    return _bad_width(entry, value) or _bad_channels(entry, value) or _bad_zero(entry, value)


def along_channels(graph: Graph, given: Mapping[str, Given]) -> dict[str, Given]:
    """What was said of weights, along their output channels in this graph: a pass may have turned some."""
    values = {v.name: v for v in graph.constants()}
    return {name: _turned(said, values.get(name)) for name, said in given.items()}


def without_whole_filters(graph: Graph) -> dict[str, Given]:
    """What is given for a graph, but for what the model says of filters as a whole, and of their biases.

    That is in the way of an encoding for each channel.
    """
    left = dict(graph.given)
    for node in graph.nodes:
        parts = list(operands(node))
        filters = [v for _, v, o in parts if o.layout and is_weight(v, o) and _is_whole(left.get(v.name))]
        biases = [v for _, v, o in parts if o.role is Role.BIAS and v.is_constant] if filters else []
        for value in (*filters, *biases):
            left.pop(value.name, None)
    return left


def _is_whole(said: Given | None) -> bool:
    encoding = None if said is None or said.source != MODEL else said.encoding
    return encoding is not None and encoding.axis is None


def _turned(said: Given, value: Value | None) -> Given:
    found = said.encoding
    axis = None if found is None or found.axis is None or value is None else channel_axis(value)
    if found is None or axis is None or axis == found.axis:
        return said
    blocks = found.blocks and replace(found.blocks, axis=block_axis(axis))
    return replace(said, encoding=replace(found, axis=axis, blocks=blocks))


def _bad_width(entry: TensorEncoding, value: Value) -> str:
    if _is_bias(value):
        what, widths = "a bias", BIAS_WIDTHS
    elif any(is_weight(value, operand) for _, operand in readers(value)):
        what, widths = "a weight", WEIGHT_WIDTHS
    else:
        what, widths = "an activation", ACT_WIDTHS
    if entry.bitwidth in widths:
        return ""
    user = value.producer or next(iter(value.users), None)
    of = f" of {user.op}" if user is not None else ""
    return f"{what}{of} cannot have {entry.bitwidth} bits, only {' or '.join(map(str, widths))}"


def _bad_channels(entry: TensorEncoding, value: Value) -> str:
    if entry.blocks is not None:
        return _bad_blocks(entry, entry.blocks, value)
    if entry.axis is None:
        return ""
    axis = channel_axis(value)
    if not value.is_constant:
        return f"{entry.channels} encodings by channel, which only constants have"
    if axis is None:
        ops = ", ".join(dict.fromkeys(node.op for node, _ in readers(value)))
        return f"{entry.channels} encodings by channel, which {ops} does not take"
    if entry.channels != value.shape[axis]:
        return f"{entry.channels} encodings for {value.shape[axis]} output channels"
    if entry.scales and not entry.centred:
        return "encodings by channel must be symmetric"
    expected = source_axis(value)
    if isinstance(entry.axis, int) and expected is not None and entry.axis % value.rank != expected:
        return f"encodings along axis {entry.axis}; its output channels are along axis {expected}"
    return ""


def _bad_blocks(entry: TensorEncoding, blocks: Blocks, value: Value) -> str:
    expanded = blocks.expanded_bits if blocks.low_power else None
    if refused := why_no_block_form(entry.bitwidth, expanded):
        return refused
    axis, users = channel_axis(value), [node for node, operand in readers(value) if is_weight(value, operand)]
    if axis is None or not users:
        return "blocks, which only weights have"
    reasons = (why_no_blocks(node, value, axis, blocks.size) for node in users)
    reason = next((r for r in reasons if r), "")
    scales, count = value.shape[axis], value.size // value.shape[axis] // blocks.size
    if reason or (len(entry.scales), len(blocks.multiples)) == (scales, scales * count):
        return reason
    have = f"{len(entry.scales)} scales and {len(blocks.multiples)} blocks"
    return f"{have} for {scales} output channels of {count} blocks each"


def source_axis(value: Value) -> int | None:
    """The axis of a constant's output channels in an ONNX model, where only one is possible."""
    if _is_bias(value):
        return 0
    layout = source_layout(value)
    return layout.index("O") if "O" in layout else None


def source_layout(value: Value) -> str:
    """The axes of a weight in an ONNX model, where only one order is possible."""
    layouts = {operand.onnx for _, operand in readers(value) if operand.channel_axis is not None}
    return layouts.pop() if len(layouts) == 1 else ""


def _bad_zero(entry: TensorEncoding, value: Value) -> str:
    if any(o != round(o) for o in entry.offsets):
        return "its zero lies between two integers, which QNN does not have"
    if entry.bitwidth == 32 and entry.scales and not entry.centred:
        return "32 bits are signed and have their zero in the middle"
    return ""


def _doubt(entry: TensorEncoding, value: Value) -> str:
    if entry.scales and entry.low:
        for (low, high), given in zip(entry.limits(), zip(entry.low, entry.high, strict=True), strict=True):
            if max(abs(low - given[0]), abs(high - given[1])) > _STEPS * max(entry.scales):
                said = f"[{low:.6g}, {high:.6g}] by scale and offset, [{given[0]:.6g}, {given[1]:.6g}] by min"
                return f"{said} and max; scale and offset are used"
    largest, bounds = _extent(entry, value)
    if len(largest) and largest.max() * _EMPTY < bounds.max():
        return f"the constant only goes up to {largest.max():.6g}, its encoding to {bounds.max():.6g}"
    return ""


def _clipped(entry: TensorEncoding, value: Value) -> str:
    """A constant far beyond its encoding is not the one that the encoding was made for.

    The conversion multiplies weights by the batch norms and factors behind them, AIMET does so to fewer.
    """
    largest, bounds = _extent(entry, value)
    beyond = largest > _CLIPPED * bounds
    if not beyond.any():
        return ""
    worst = int(np.argmax(np.where(beyond, largest, 0)))
    sizes = f"the constant goes up to {largest[worst]:.6g}, its encoding to {bounds[worst]:.6g}"
    return f"{sizes}: not used, the conversion has folded a factor into it"


def _extent(entry: TensorEncoding, value: Value) -> tuple[NDArray[Any], NDArray[Any]]:
    """The largest magnitude of a constant and of its encoding, by channel; empty for all else."""
    if value.data is None or not is_real(value) or not entry.limits() or _is_bias(value):
        return np.zeros(0), np.zeros(0)
    axis = channel_axis(value) if entry.axis is not None else None
    rows = value.data.reshape(1, -1) if axis is None else np.moveaxis(value.data, axis, 0)
    largest = np.abs(rows.reshape(len(rows), -1)).max(axis=1)
    widest = entry.blocks.largest(entry.channels) if entry.blocks is not None else 1
    return largest, np.asarray([max(-low, high) for low, high in entry.limits()]) * widest


def _missing(graph: Graph, given: Mapping[str, Given], source: Collection[str]) -> list[Finding]:
    """Tensors that the quantizer wants a range for: not those that share another's encoding.

    They go by the name of the source model, where they, or what they are moved to, have one.
    """
    plan = Plan(graph, Recipe(), given)
    lacking = [(name, "its range will come from calibration data") for name in _calibrated(plan, source)]
    for node in graph.nodes:
        weights = (v for _, v, o in operands(node) if is_weight(v, o) and is_real(v))
        if plan.node_width[node]:
            lacking += [(v.name, "its range will come from its own data") for v in weights]
    return [_lack(name, why) for name, why in dict.fromkeys(lacking) if name not in given]


def _calibrated(plan: Plan, source: Collection[str]) -> Iterator[str]:
    """The tensors whose range comes from calibration data."""
    for group in plan.groups:
        if group.given is None and not group.has_fixed_range:
            for value in group.origins or group.members[:1]:
                yield _known_name(value, group, source)


def _known_name(value: Value, group: Group, source: Collection[str]) -> str:
    first = group.members.index(value)
    return next((v.name for v in group.members[first:] if v.name in source), value.name)


def _lack(name: str, detail: str) -> Finding:
    return Finding(Status.MISSING, name, detail)


# -- from entries to encodings -------------------------------------------------------------------------------


def _given(entry: TensorEncoding, value: Value) -> Given:
    if entry.is_float:
        return Given(OVERRIDE, entry.bitwidth, floating=True)
    signed = _is_signed(entry, value)
    return Given(OVERRIDE, entry.bitwidth, encoding=_encoding(entry, value, signed), signed=signed)


def _is_signed(entry: TensorEncoding, value: Value) -> bool:
    """Activations are stored from 0 on; symmetric weights and wide biases around it."""
    if _is_bias(value):
        return entry.bitwidth == 32 or entry.axis is not None
    if not _is_matrix(value):
        return False
    middle = -(1 << (entry.bitwidth - 1))
    centred = entry.centred and (entry.symmetric or set(entry.unsigned_offsets) == {middle})
    return entry.axis is not None or centred


def with_scales(entry: TensorEncoding, symmetric: bool = False) -> TensorEncoding:
    """The entry with scale and offset where only width, smallest and largest number are given."""
    if entry.scales or not entry.low:
        return entry
    symmetric = symmetric or entry.symmetric or entry.axis is not None
    ranges = [encoding(a, b, entry.bitwidth, symmetric=symmetric) for a, b in entry.limits()]
    scales, offsets = tuple(r.scale[0] for r in ranges), tuple(r.offset[0] for r in ranges)
    made = replace(entry, scales=scales, offsets=offsets, signed=False, symmetric=symmetric)
    return made.as_signed() if symmetric else made


def _encoding(entry: TensorEncoding, value: Value, signed: bool) -> Encoding | None:
    entry = with_scales(entry, signed)
    if not entry.scales:
        return None
    # A strict range has its zero one off and one integer fewer: the same numbers around zero.
    offsets = (0,) * entry.channels if signed else tuple(int(o) for o in entry.unsigned_offsets)
    axis = channel_axis(value) if entry.axis is not None else None
    symmetric = signed or (entry.symmetric and entry.centred)
    blocks = None
    if entry.blocks is not None and axis is not None:
        blocks = ir.Blocks(block_axis(axis), entry.blocks.size, entry.blocks.by_channel())
    return Encoding(entry.scales, offsets, entry.bitwidth, axis, symmetric, blocks)
