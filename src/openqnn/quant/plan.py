"""What becomes of every tensor: which nodes compute in fixed point, how wide, and what shares a range.

A node computes wholly in fixed point or wholly in floats. The width of a tensor is that of the node that
makes it. Tensors share one encoding where an op only moves values about or takes means of neighbours, and
where a clipping op is the only reader of its source: HTP then needs no second rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from openqnn.errors import UsageError
from openqnn.ir import DType, Encoding, Given, Graph, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Operand, Role
from openqnn.quant.range_analysis import clip_limits
from openqnn.quant.recipe import FLOAT, Recipe
from openqnn.targets.htp.kernels.bytes.requantize import is_between, overshoots
from openqnn.targets.htp.limits import is_from_zero

CALIBRATION, FIXED, SHARED = "calibration", "fixed range", "shared"
WIDE = 16
CUT = "calibration, as far as readers tell values apart"
DATA, PRODUCT = "data", "input scale * weight scale"


@dataclass(eq=False, slots=True)
class Group:
    """Tensors of one encoding. `origins` are those whose values have to be seen to know the range.

    Those that are `multiplied` in 16 bits have their zero in the middle, and not all steps above it.
    """

    members: list[Value]
    width: int
    origins: list[Value] = field(default_factory=lambda: list[Value]())
    symmetric: bool = False
    multiplied: bool = False
    fixed: tuple[float, float] | None = None
    given: Given | None = None

    @property
    def has_fixed_range(self) -> bool:
        """Whether the range is that of a function such as Softmax, so that nothing has to be seen."""
        return self.fixed is not None and len(self.origins) == 1


def operands(node: Node) -> Iterable[tuple[int, Value, Operand]]:
    """Every input that is there, with its declaration."""
    schema = schema_of(node)
    return ((i, v, schema.operand(i)) for i, v in enumerate(node.inputs) if v is not None)


def is_real(value: Value) -> bool:
    return value.dtype in (DType.FLOAT_32, DType.FLOAT_16)


def is_weight(value: Value, operand: Operand) -> bool:
    """A matrix operand is a weight where it is constant, and data where it is computed."""
    return value.is_constant and (operand.role is Role.WEIGHT or operand.channel_axis is not None)


def fitting(given: Given | None, operand: Operand) -> Given | None:
    """What is said of a constant, as the operand takes it: scales of norms are unsigned and whole."""
    if given is None or given.encoding is None:
        return given
    if operand.role is not Role.WEIGHT or operand.channel_axis is not None:
        return given
    return given.unsigned() if given.encoding.axis is None else replace(given, encoding=None)


def carries(node: Node) -> list[Value]:
    """The inputs whose values a node hands on unchanged; none when it computes."""
    if not schema_of(node).hands_on(node):
        return []
    return [v for _, v, o in operands(node) if is_real(v) and not v.is_constant and o.role is Role.ACTIVATION]


def is_lookup(node: Node) -> bool:
    """Whether a node hands on values of constants alone, such as rows of a table by their numbers."""
    data = [v for _, v, operand in operands(node) if operand.role is Role.ACTIVATION]
    return schema_of(node).hands_on(node) and bool(data) and all(v.is_constant for v in data)


def encloses(node: Node) -> list[Value]:
    """The inputs that all results of a node lie between: those that it hands on, or takes means of.

    HTP rounds means of neighbours in the encoding of the input first; only a clip behind them needs another.
    """
    clipped = any(schema_of(user).clips for user in node.out.users)
    means = is_between(node) and is_real(node.x(0)) and not node.x(0).is_constant and not clipped
    return [node.x(0)] if means else carries(node)


class Plan:
    """The decisions for one graph. `width` has every real tensor that a node makes, and the graph inputs."""

    def __init__(self, graph: Graph, recipe: Recipe, given: Mapping[str, Given]) -> None:
        self.graph, self.recipe, self.given = graph, recipe, given
        self.node_width: dict[Node, int] = {}
        self.width: dict[Value, int] = {}
        self._known_names((*recipe.widths, *recipe.weight_widths))
        self._widths()
        self._group: dict[Value, Group] = {}
        self._groups()

    def _known_names(self, names: Iterable[str]) -> None:
        known = {n.name for n in self.graph.nodes}
        for name in names:
            if name not in known:
                raise UsageError(f"the graph has no node '{name}' whose width could be set")

    # -- widths ----------------------------------------------------------------------------------------------

    def _widths(self) -> None:
        for node in self.graph.nodes:
            if not carries(node):
                self.node_width[node] = self._own_width(node)
        for value in self.graph.inputs:
            if is_real(value):
                self.width[value] = self._input_width(value)
        for node in self.graph.nodes:
            moved = carries(node)
            if moved:
                self.node_width[node] = self._moved_width(node, moved)
            for value in node.outputs:
                if is_real(value):
                    self.width[value] = self.node_width[node]

    def _own_width(self, node: Node) -> int:
        """Ops that work on stored integers, and ops without real data, have nothing to quantize."""
        if schema_of(node).on_stored:
            return self._stored_width(node)
        if not any(is_real(v) for v in (*node.outputs, *_inputs(node))):
            return FLOAT
        said = [self.given[v.name] for v in (*node.outputs, *_parameters(node)) if v.name in self.given]
        if any(g.floating for g in said):
            return FLOAT
        if node.name in self.recipe.widths:
            return self.recipe.widths[node.name]
        outs = [self.given[v.name].bitwidth for v in self._results(node) if v.name in self.given]
        width = outs[0] if outs else self.recipe.act_bw
        return FLOAT if _is_refused(node, width) else width

    def _stored_width(self, node: Node) -> int:
        """The model's own integers, made real: with an encoding for what comes out they stay integers."""
        said = self._encoding_of(node.out) if is_real(node.out) and node.x(0).dtype.is_fixed else None
        return FLOAT if said is None else said.bitwidth

    def _results(self, node: Node) -> list[Value]:
        """What a node makes, and what that is clipped to: both will share an encoding."""
        reader = node.out.users[0] if self._only_reader(node.out, node) else None
        clipped = reader is not None and schema_of(reader).clips
        return [*node.outputs, reader.out] if reader is not None and clipped else node.outputs

    def _moved_width(self, node: Node, moved: list[Value]) -> int:
        """Moving values about costs no precision: the width stays what it was."""
        if node.name in self.recipe.widths:
            return self.recipe.widths[node.name]
        said = self.given.get(node.out.name)
        if said is not None:
            return FLOAT if said.floating else said.bitwidth
        found = [self.width[v] for v in moved]
        return FLOAT if FLOAT in found else max(found)

    def _input_width(self, value: Value) -> int:
        said = self.given.get(value.name)
        if said is not None:
            return FLOAT if said.floating else said.bitwidth
        return max((self.node_width[n] for n in _readers(value)), default=FLOAT)

    # -- groups ----------------------------------------------------------------------------------------------

    def group(self, value: Value) -> Group | None:
        """The group of a tensor in fixed point; None for one that stays real."""
        return self._group.get(value)

    @property
    def groups(self) -> list[Group]:
        return list(dict.fromkeys(self._group.values()))

    def _groups(self) -> None:
        for value, width in self.width.items():
            if width != FLOAT:
                self._group[value] = Group([value], width, given=self._encoding_of(value))
        for node in self.graph.nodes:
            for value in encloses(node):
                if self._shares(value, node):
                    self._union(value, node.out if len(node.outputs) == 1 else None, node)
            if schema_of(node).clips and self._only_reader(node.x(0), node):
                self._union(node.x(0), node.out, node)
        for group in self.groups:
            self._describe(group)

    def _encoding_of(self, value: Value) -> Given | None:
        said = self.given.get(value.name)
        return said if said is not None and said.encoding is not None else None

    def _only_reader(self, value: Value, node: Node) -> bool:
        return len(set(value.users)) == 1 and not self.graph.is_output(value) and value.producer is not None

    def _shares(self, value: Value, node: Node) -> bool:
        """Decides which inputs share an encoding: those that something else reads too keep a finer range of
        their own.

        So do those that are clipped, unless all are to the same ends: HTP clips to the ends of an encoding.
        """
        joined = encloses(node)
        if len(joined) == 1:
            return True
        limits = [_limits(v) for v in joined]
        if _limits(value) is not None and len(set(limits)) > 1:
            return False
        current: Value | None = value
        while current is not None:
            if not self._only_reader(current, node):
                return False
            above = encloses(current.producer) if current.producer is not None else []
            current = above[0] if len(above) == 1 else None
        return True

    def _union(self, value: Value, out: Value | None, node: Node) -> None:
        for other in node.outputs if out is None else (out,):
            a, b = self._group.get(value), self._group.get(other)
            if a is None or b is None or a is b or a.width != b.width:
                continue
            if a.given is not None and b.given is not None and a.given.encoding != b.given.encoding:
                continue
            a.members += b.members
            a.given = a.given or b.given
            for member in b.members:
                self._group[member] = a

    def _is_within(self, value: Value, group: Group) -> bool:
        """Whether the value's range follows from others of the group, which its node hands on."""
        within = encloses(value.producer) if value.producer is not None else []
        return bool(within) and all(self._group.get(v) is group for v in within)

    def _describe(self, group: Group) -> None:
        for value in group.members:
            if self._is_within(value, group) or self._is_clipped(value, group):
                continue
            group.origins.append(value)
            if self.recipe.fixed_ranges:
                group.fixed = _with_output_range(group.fixed, value.producer)
        if group.given is not None and any(v.producer and is_from_zero(v.producer) for v in group.members):
            group.given = _from_zero(group.given.unsigned())
        group.multiplied = group.width == 16 and any(_is_second(v) for v in group.members)
        free = self.recipe.act.symmetric and not any(map(_is_uneven, group.members))
        group.symmetric = free or group.multiplied

    def _is_clipped(self, value: Value, group: Group) -> bool:
        """Whether all that read a tensor clip it and share its encoding, perhaps after it was moved."""
        if self.graph.is_output(value) or not value.users:
            return False
        for user in value.users:
            if any(self._group.get(v) is not group for v in user.outputs):
                return False
            moved = carries(user) and all(self._is_clipped(v, group) for v in user.outputs)
            if not schema_of(user).clips and not moved:
                return False
        return True


def _is_refused(node: Node, width: int) -> bool:
    """Whether an op cannot be of that width: it declares others, or overshoots in 16 bits."""
    taken = schema_of(node).widths
    return (taken is not None and width not in taken) or (width == WIDE and overshoots(node))


def _from_zero(given: Given) -> Given:
    """The part of a range that is not negative, in as many steps."""
    encoding = given.encoding
    if encoding is None or not encoding.offset[0]:
        return given
    last = (1 << encoding.bitwidth) - 1
    high = encoding.scale[0] * (last + encoding.offset[0])
    return (
        replace(given, encoding=Encoding.per_tensor(high / last, 0, encoding.bitwidth)) if high > 0 else given
    )


def _is_uneven(value: Value) -> bool:
    """Whether HTP would compute something else with the zero in the middle: it takes that for the start of
    the range, or clips to the ends of the range alone."""
    node = value.producer
    if node is None:
        return False
    ends = clip_limits(node)
    return is_from_zero(node) or (ends is not None and ends[0] != -ends[1])


def _inputs(node: Node) -> list[Value]:
    return [v for v in node.inputs if v is not None]


def _parameters(node: Node) -> list[Value]:
    """The weights and the bias of a layer."""
    return [v for _, v, o in operands(node) if v.is_constant and (is_weight(v, o) or o.role is Role.BIAS)]


def _readers(value: Value) -> list[Node]:
    """The nodes that compute with a tensor, looking through those that only move it."""
    found: list[Node] = []
    waiting = [value]
    while waiting:
        current = waiting.pop()
        for node in dict.fromkeys(current.users):
            if carries(node):
                waiting += node.outputs
            else:
                found.append(node)
    return found


def _limits(value: Value) -> tuple[float, float] | None:
    """The ends that a tensor was clipped to before it was moved."""
    node = value.producer
    if node is None:
        return None
    within = encloses(node)
    return _limits(within[0]) if len(within) == 1 else clip_limits(node)


def _is_second(value: Value) -> bool:
    """Whether data are multiplied with other data, as the second matrix.

    HTP does so in 16 bits only where the second has its zero in the middle.
    """
    return any(
        v is value and operand.channel_axis is not None and operand.role is Role.ACTIVATION
        for user in value.users
        for _, v, operand in operands(user)
    )


def _with_output_range(known: tuple[float, float] | None, node: Node | None) -> tuple[float, float] | None:
    """The union of a range with that which the node's op always has, if it has one."""
    schema = schema_of(node) if node is not None else None
    if schema is None or not schema.output_range or schema.clips:
        return known
    low, high = known or (0.0, 0.0)
    return min(low, schema.output_range[0]), max(high, schema.output_range[1])
