"""What the outside sees of a graph: layouts, colours and data types of its inputs and outputs.

A border is changed by putting the conversion right behind an input or in front of an output; the layout pass
then takes away what it can. Layouts and colours are set before the passes, data types after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from openqnn.errors import UsageError
from openqnn.ir import DType, Encoding, Given, Graph, Node, Port, Value, dtype_of
from openqnn.ops import Builder, schema_of
from openqnn.ops.layout import (
    Perm,
    compose,
    inverse,
    is_view,
    move,
    move_view,
    permutation_of,
    permuted,
    travels,
)
from openqnn.ops.schema import Moves, Role
from openqnn.passes.boundary.colours import put_in_colour
from openqnn.passes.boundary.new_ends import new_input, new_output, take_over

CHANNEL_FIRST = {3: "NCF", 4: "NCHW", 5: "NCDHW"}  # what source models have, by rank
CHANNEL_LAST = {"NCF": "NFC", "NCHW": "NHWC", "NCDHW": "NDHWC", "TNF": "NTF"}  # what QNN prefers
NONTRIVIAL = "NONTRIVIAL"
CUSTOM = "custom io"  # where an encoding came from


@dataclass(frozen=True)
class Names:
    """Some names, or all, but for a few."""

    some: frozenset[str] = frozenset()
    all: bool = False
    but: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        return (self.all or name in self.some) and name not in self.but


@dataclass(frozen=True)
class Borders:
    """What is wanted of a graph's inputs and outputs, by name.

    `source_layouts` say what the axes of the source model mean, `layouts` what they shall be in the graph.
    With `channel_last`, images become channel-last where nothing else is said, unless `keep_layout` has them.
    Those of `stored` are stored integers outside and real numbers inside, by an encoding that only a graph
    that is quantized next, and so `fixed`, finds by itself.
    """

    channel_last: bool = False
    source_layouts: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    keep_layout: Names = Names()
    colours: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    dtypes: Mapping[str, DType] = field(default_factory=dict)
    stored: Mapping[str, tuple[DType, Encoding | None]] = field(default_factory=dict)
    fixed: bool = False
    keep_dtype: Names = Names()
    keep_int64: bool = False
    plain_inputs: frozenset[str] = frozenset()  # no images, whatever they look like
    named: frozenset[str] = frozenset()  # inputs and outputs that are spoken of, even where nothing changes


def arrange_borders(graph: Graph, wanted: Borders) -> None:
    """Colours and layouts, in the graph as it was imported."""
    _check_names(graph, wanted)
    turns = [(v, *_layouts(v, wanted, _is_image_input(v))) for v in graph.inputs]
    for value, source, target in turns:
        colour = wanted.colours.get(value.name)
        flat = colour is not None and put_in_colour(graph, value, colour, source)
        if source != target and not flat:
            turn_input(graph, next(v for v in graph.inputs if v.name == value.name), source, target)
    for value in list(graph.outputs):
        source, target = _layouts(value, wanted, _is_image_output(value))
        if source != target:
            turn_output(graph, value, source, target)


def _check_names(graph: Graph, wanted: Borders) -> None:
    inputs = [v.name for v in graph.inputs]
    known = {*inputs, *(v.name for v in graph.outputs)}
    both = {*wanted.source_layouts, *wanted.layouts, *wanted.dtypes, *wanted.stored}
    both |= wanted.keep_layout.some | wanted.keep_dtype.some | wanted.named
    images = {*wanted.colours, *wanted.plain_inputs}
    for name in (*sorted(both - known), *sorted(images - {*inputs})):
        hint = f"inputs: {', '.join(inputs)}; outputs: {', '.join(v.name for v in graph.outputs)}"
        raise UsageError(f"the model has no input or output '{name}'", hint=hint)


def _layouts(value: Value, wanted: Borders, is_image: bool) -> tuple[str, str]:
    """The source's layout and the graph's; the same where nothing is to be done."""
    name, rank = value.name, value.rank
    source, target = wanted.source_layouts.get(name, ""), wanted.layouts.get(name, "")
    if not source and (target or (is_image and name not in wanted.plain_inputs)):
        source = target if target == NONTRIVIAL else CHANNEL_FIRST.get(rank, target)
    if not target:
        turned = wanted.channel_last and name not in wanted.keep_layout
        target = CHANNEL_LAST.get(source, source) if turned else source
    _check_layouts(value, source, target)
    return source, target


def _check_layouts(value: Value, source: str, target: str) -> None:
    for layout in (source, target):
        if layout not in ("", NONTRIVIAL) and len(layout) != value.rank:
            shape = list(value.shape)
            raise UsageError(
                f"layout {layout} has {len(layout)} axes, '{value.name}' {shape} has {value.rank}"
            )
    if sorted(source) != sorted(target):
        pairs = ", ".join(f"{a} and {b}" for a, b in CHANNEL_LAST.items())
        hint = f"these can be exchanged: {pairs}"
        raise UsageError(f"'{value.name}': {source} cannot become {target}", hint=hint)


def describe_layout(value: Value) -> str:
    """What the axes of an input or output of the source model are taken to mean."""
    is_image = _is_image_input(value) if value.producer is None else _is_image_output(value)
    return CHANNEL_FIRST[value.rank] if is_image else {1: "F", 2: "NF"}.get(value.rank, NONTRIVIAL)


def order(source: str, target: str) -> Perm:
    """The permutation that turns data of one layout into another."""
    return tuple(source.index(axis) for axis in target)


# -- is it an image? -----------------------------------------------------------------------------------------


def _last(rank: int) -> Perm:
    return (0, *range(2, rank), 1)


def _in_order(value: Value, perm: Perm) -> bool:
    """Whether `perm` leaves the data as it is stored."""
    return is_view(value.shape, perm)


def _is_image_input(value: Value) -> bool:
    """Whether a layout-bound op reads the input channel-last, perhaps behind ops that may move along."""
    if value.rank not in CHANNEL_FIRST:
        return False
    clear = not is_view(value.shape, _last(value.rank))  # else axes of size 1 hide which one is the channel
    waiting, seen = [(value, _last(value.rank))], {value}
    while waiting:
        at, perm = waiting.pop()
        for user in dict.fromkeys(at.users):
            operand = schema_of(user).operand(user.inputs.index(at))
            if operand.layout and operand.role is Role.ACTIVATION:
                if _in_order(at, perm) and (clear or at.shape[-1] == value.shape[1]):
                    return True
                continue
            then = _order_behind(user, at, perm)
            if then and user.out not in seen:
                seen.add(user.out)
                waiting.append((user.out, then))
    return False


def _order_behind(user: Node, value: Value, perm: Perm) -> Perm | None:
    """The order of a node's result where its input is stored as `perm`; None where that says nothing."""
    turn = permutation_of(user)
    if turn is not None:
        return compose(inverse(turn), perm)
    moved = move(user, perm) if travels(user, user.inputs.index(value)) else None
    return moved.out_perm if moved is not None else None


def _is_image_output(value: Value) -> bool:
    """Whether the output is the channel-first copy of what a layout-bound op made channel-last."""
    if value.rank not in CHANNEL_FIRST:
        return False
    waiting, seen = [(value, _last(value.rank))], {value}
    while waiting:
        at, perm = waiting.pop()
        node = at.producer
        if node is None:
            continue
        if schema_of(node).result(node.outputs.index(at)).layout:
            if _in_order(at, perm):
                return True
            continue
        for operand, behind in _operands(node, perm):
            if operand not in seen:
                seen.add(operand)
                waiting.append((operand, behind))
    return False


def _operands(node: Node, perm: Perm) -> Iterator[tuple[Value, Perm]]:
    """The data that a node would read in which order, so that its result comes in order `perm`."""
    turn = permutation_of(node)
    if turn is not None:
        yield node.x(0), compose(turn, perm)
        return
    behind: Perm | None = perm
    if schema_of(node).moves is Moves.VIEW:
        behind = move_view(node.out.shape, node.x(0).shape, perm)
    if behind is None:
        return
    data = [v for i, v in enumerate(node.inputs) if v is not None and not v.is_constant and travels(node, i)]
    data = [v for v in data if v.rank == len(behind)]  # none in front of what drops an axis
    if data and move(node, behind) is not None:
        yield from ((v, behind) for v in data)


# -- edits ---------------------------------------------------------------------------------------------------


def turn_input(graph: Graph, old: Value, source: str, target: str) -> None:
    """The input comes in layout `target`; its readers get it as in the source model."""
    perm = order(source, target)
    new, builder = new_input(graph, old, old.dtype, permuted(old.shape, perm))
    take_over(graph, old, builder.transpose(new, inverse(perm)), f"{new.name}_{source.lower()}")


def turn_output(graph: Graph, old: Value, source: str, target: str) -> None:
    """The output leaves in layout `target`."""
    inner = f"{old.name}_{source.lower()}"
    new_output(graph, old, inner, lambda b: b.transpose(old, order(source, target)))


# -- data types ----------------------------------------------------------------------------------------------


def type_borders(graph: Graph, wanted: Borders) -> None:
    """Data types of inputs and outputs, with casts to and from those that the graph computes with."""
    for old in list(graph.inputs):
        dtype, encoding = _border_type(graph, old, wanted)
        if dtype is not old.dtype:
            new, builder = new_input(graph, old, dtype, old.shape)
            new.encoding = encoding
            inner = (builder.dequantize if encoding else builder.cast)(new, old.dtype)
            take_over(graph, old, inner, f"{new.name}_{old.dtype.label}")
            _say_stored(graph, inner, dtype, encoding)
        graph.ports[old.name] = Port(dtype, old.shape)
    for old in list(graph.outputs):
        name, (dtype, encoding) = old.name, _border_type(graph, old, wanted)
        if dtype is not old.dtype:
            inner = f"{name}_{old.dtype.label}"
            new_output(graph, old, inner, lambda b, x=old, d=dtype, e=encoding: _turned(b, x, d, e))
            _say_stored(graph, old, dtype, encoding)
        graph.ports[name] = Port(dtype, old.shape)


def _say_stored(graph: Graph, inner: Value, dtype: DType, encoding: Encoding | None) -> None:
    """Where the graph is quantized after all, the tensor inside has the same steps."""
    if encoding is not None:
        said = Given(CUSTOM, encoding.bitwidth, encoding=encoding, signed=dtype.signed)
        graph.given[inner.name] = said.unsigned()


def _turned(builder: Builder, x: Value, dtype: DType, encoding: Encoding | None) -> Value:
    return builder.quantize(x, dtype, encoding) if encoding else builder.cast(x, dtype)


def _border_type(graph: Graph, value: Value, wanted: Borders) -> tuple[DType, Encoding | None]:
    if value.name in wanted.stored:
        return _stored_type(value, *wanted.stored[value.name], wanted.fixed)
    source, asked = graph.ports[value.name].dtype, wanted.dtypes.get(value.name)
    keep = value.name in wanted.keep_dtype
    if asked is None:
        keep = keep or (wanted.keep_int64 and source is DType.INT_64 and value.producer is None)
        return source if keep else value.dtype, None
    if keep and asked is not source:
        raise UsageError(
            f"'{value.name}' is {source.label} in the model: that cannot be kept and become {asked.label}"
        )
    return asked, None


def _stored_type(
    value: Value, dtype: DType, encoding: Encoding | None, fixed: bool
) -> tuple[DType, Encoding | None]:
    if not value.dtype.is_float:
        if encoding is not None:
            raise UsageError(f"'{value.name}' is {value.dtype.label}: only real numbers have a scale")
        return dtype_of(dtype.numpy), None
    if fixed:  # the quantizer stores it
        return value.dtype, None
    if encoding is None:
        hint = "give its scale and offset, QuantParam"
        raise UsageError(f"'{value.name}' shall be {dtype.numpy}, and the graph is in floats", hint=hint)
    return dtype, encoding
