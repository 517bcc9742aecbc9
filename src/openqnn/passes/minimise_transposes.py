"""Leaves as few transposes as possible: each node runs in the axis order in which its data already is.

One walk forward builds the graph anew. A value may be known in several orders; a transposition of the graph
costs nothing, it only says under which other order the same data is known. Where an op needs an order that
is not there, a transpose is made, once. A walk backward before it finds out which orders will be wanted, so
that a transpose goes to the side of a node where it serves more readers. What an op can do follows from its
declaration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from openqnn.ir import Graph, Node, ParamValue, Value
from openqnn.ops import Builder, schema_of
from openqnn.ops.layout import (
    Moved,
    Perm,
    compose,
    identity,
    inverse,
    is_view,
    move,
    move_view,
    permutation_of,
    permuted,
    travels,
)
from openqnn.ops.schema import Axis, Moves
from openqnn.ops.shape_rules import MOVED_LAST
from openqnn.passes.edit import aligned_shape
from openqnn.passes.explain import Explain

NAME = "minimise_transposes"

# -- what a node can do ----------------------------------------------------------------------------


def _data_rank(node: Node) -> int:
    if schema_of(node).moves is Moves.ELEMENTWISE:
        return node.out.rank
    return node.x(0).rank if node.has(0) else 0


def _named_axes(node: Node, params: dict[str, ParamValue]) -> list[int]:
    found: list[int] = []
    for param in schema_of(node).params:
        value = params.get(param.name)
        if param.axis is Axis.ONE and isinstance(value, int):
            found.append(value)
        elif param.axis is Axis.MANY and isinstance(value, tuple):
            found += [a for a in value if isinstance(a, int)]
    return found


def _is_trailing(node: Node, params: dict[str, ParamValue]) -> bool:
    """Whether the node works along its last axes. NPUs normalise along those only."""
    axes, rank = _named_axes(node, params), _data_rank(node)
    return bool(axes) and sorted(axes) == list(range(rank - len(axes), rank))


def _normalises(node: Node) -> bool:
    schema = schema_of(node)
    return schema.moves is Moves.AXES and not schema.keeps_values and node.out.shape == node.x(0).shape


def _is_by_channel(value: Value) -> bool:
    return value.encoding is not None and value.encoding.axis is not None


def moved_in_graph(node: Node, perm: Perm) -> Moved | None:
    """The node on data stored as `perm` in QNN's own terms, or None when QNN cannot say that."""
    natural, schema = identity(len(perm)), schema_of(node)
    if perm == natural:
        return Moved(node.params, identity(node.out.rank))
    if schema.on_last and perm[-1] != natural[-1]:
        return None
    if schema.moves is Moves.VIEW and any(map(_is_by_channel, _ends(node))):
        return None
    moved = move(node, perm)
    if moved is None:
        return None
    if _normalises(node) and _is_trailing(node, node.params) and not _is_trailing(node, moved.params):
        return None
    return Moved({k: v for k, v in moved.params.items() if k != MOVED_LAST}, moved.out_perm)


def _ends(node: Node) -> tuple[Value, Value]:
    return node.x(0), node.out


def absorbed(node: Node) -> Perm | None:
    """The permutation of a node that is nothing but a transposition."""
    perm = permutation_of(node)
    if perm is None:
        return None
    encoding = node.x(0).encoding
    return perm if node.out.encoding == (encoding.permuted(perm) if encoding is not None else None) else None


# -- what will be wanted ---------------------------------------------------------------------------


def _wanted_orders(graph: Graph) -> dict[Value, Counter[Perm]]:
    """For each value the orders that its readers ask for, found from the outputs back."""
    wanted: dict[Value, Counter[Perm]] = {}
    ask = lambda v, perm, count=1: wanted.setdefault(v, Counter()).update({perm: count})
    for value in graph.outputs:
        ask(value, identity(value.rank))
    for node in reversed(graph.nodes):
        perm = absorbed(node)
        if perm is not None:
            for order, count in wanted.get(node.out, Counter[Perm]()).items():
                ask(node.x(0), compose(perm, order), count)
            continue
        order = _order_for(node, wanted.get(node.out))
        for i, value in enumerate(node.inputs):
            if value is None or value.is_constant:
                continue
            if not travels(node, i):
                ask(value, identity(value.rank))
            elif order is not None and len(order) == value.rank:
                ask(value, order)
    return wanted


def _order_for(node: Node, wanted: Counter[Perm] | None) -> Perm | None:
    """The order in which a node should get its data to please most of its readers."""
    if not wanted:
        return None
    order = max(wanted, key=lambda p: wanted[p])
    if schema_of(node).moves is Moves.VIEW:
        order = move_view(node.out.shape, node.x(0).shape, order)
    if order is None or len(order) != _data_rank(node) or _folds_axes(node):
        return None
    return order if moved_in_graph(node, order) is not None else None


def _folds_axes(node: Node) -> bool:
    """Whether axes become 1, as in a reduction: what the result is asked for then says little of the data."""
    schema = schema_of(node)
    if schema.moves is not Moves.AXES or schema.keeps_values or node.out.rank != node.x(0).rank:
        return False
    return any(after == 1 != before for before, after in zip(node.x(0).shape, node.out.shape, strict=True))


# -- the walk --------------------------------------------------------------------------------------


class _Apart(Builder):
    """Makes nodes for a list of its own, not for the graph."""

    def __init__(self, graph: Graph, put: Callable[[Node], None]) -> None:
        super().__init__(graph)
        self._put = put

    def place(self, node: Node) -> None:
        self._put(node)


class _Walk:
    """Builds the new nodes beside the graph; nothing changes until `commit`."""

    def __init__(self, graph: Graph, wanted: dict[Value, Counter[Perm]], share: bool) -> None:
        self.graph = graph
        self.wanted = wanted
        self.share = share  # count on other readers to need the same transpose
        self.known: dict[Value, dict[Perm, Value]] = {v: {identity(v.rank): v} for v in graph.inputs}
        self.alias: dict[
            Value, tuple[Value, Perm]
        ] = {}  # values behind transposes: what they are an order of
        self.nodes: list[Node] = []
        self.names: list[tuple[Value, Node]] = []  # results that take the name of a transpose that is gone
        self.made: dict[Value, Node] = {}
        self.full: dict[tuple[Value, int], Value] = {}  # broadcast operands that were given all axes
        self.builder = _Apart(graph, self._add)
        for node in graph.nodes:
            perm = absorbed(node)
            if perm is not None:
                self._absorb(node, perm)
            else:
                self._place(node)
        self.outputs = self._finish()

    def _absorb(self, node: Node, perm: Perm) -> None:
        root, order = self._root(node.x(0), perm)
        self.alias[node.out] = root, order
        first = next(iter(self._orders(root).values()))
        if first in self.made and self.made[first].source == node.source:
            self.names.append((first, node))

    def _root(self, value: Value, perm: Perm) -> tuple[Value, Perm]:
        """The value that was not transposed and the order of it that equals `perm` of the given one."""
        root, order = self.alias.get(value, (value, identity(value.rank)))
        return root, compose(order, perm)

    def _orders(self, root: Value) -> dict[Perm, Value]:
        return self.known.setdefault(root, {identity(root.rank): root})

    def _has(self, value: Value, perm: Perm, exactly: bool = False) -> bool:
        root, order = self._root(value, perm)
        return any(p == order if exactly else _alike(root, p, order) for p in self._orders(root))

    def _place(self, node: Node) -> None:
        perm = self._choose(node)
        moved = moved_in_graph(node, perm)
        assert moved is not None
        stays = perm == identity(len(perm))
        if not stays and schema_of(node).moves is Moves.VIEW:
            outputs = [self._moved_view(node, perm, moved.out_perm)]
        else:
            inputs = [self._operand(node, i, perm) for i in range(len(node.inputs))]
            outputs = node.outputs if stays else [_turned(v, moved.out_perm) for v in node.outputs]
            self._add(Node(node.op, node.name, inputs, outputs, moved.params, node.source, node.package))
        for old, new in zip(node.outputs, outputs, strict=True):
            self.known[old] = {identity(old.rank) if stays else moved.out_perm: new}

    def _moved_view(self, node: Node, perm: Perm, out_perm: Perm) -> Value:
        """Whatever view it was, on moved axes it is a reshape."""
        data, like = self.get(node.x(0), perm, node.source), _turned(node.out, out_perm)
        self.builder.source, self.builder.stem = node.source, NAME
        new = self.builder.reshape(data, like.shape, like.encoding)
        new.name, self.made[new].name = like.name, node.name
        return new

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        self.made.update(dict.fromkeys(node.outputs, node))

    # -- operands ----------------------------------------------------------------------------------

    def _operand(self, node: Node, index: int, perm: Perm) -> Value | None:
        value = node.inputs[index]
        if value is None:
            return None
        if not travels(node, index) or perm == identity(len(perm)):
            return self.get(value, identity(value.rank), node.source)
        if value.rank < len(perm):
            value = self._aligned(value, len(perm), node.source)
        return self.get(value, perm, node.source)

    def _aligned(self, value: Value, rank: int, source: str) -> Value:
        """A broadcast operand with all axes, so that it can follow the permutation."""
        if (value, rank) not in self.full:
            shape = aligned_shape(value.shape, rank)
            if value.data is not None:
                full = Value(value.name, value.dtype, shape, value.encoding, value.data.reshape(shape))
            else:
                base = self.get(value, identity(value.rank), source)
                full = self._emit(base, source).reshape(base, shape, base.encoding)
            self.full[value, rank] = full
        return self.full[value, rank]

    def get(self, value: Value, perm: Perm, source: str) -> Value:
        """The value in an axis order, made where it is not there yet, for a node of that source."""
        root, order = self._root(value, perm)
        have = self._orders(root)
        if order not in have:
            have[order] = self._made(root, order, source)
        return have[order]

    def _made(self, root: Value, perm: Perm, source: str) -> Value:
        base, stored = self._source(root, perm)
        turn, shape = compose(inverse(base), perm), permuted(root.shape, perm)
        if stored.data is not None:
            encoding = root.encoding.permuted(perm) if root.encoding is not None else None
            return Value(root.name, root.dtype, shape, encoding, stored.data.transpose(turn))
        if is_view(stored.shape, turn) and (stored.encoding is None or stored.encoding.axis is None):
            return self._emit(stored, source).reshape(stored, shape, stored.encoding)
        return self._transposed(stored, turn, source)

    def _source(self, value: Value, perm: Perm) -> tuple[Perm, Value]:
        """The order to start from: one that differs by axes of size 1 only, if there is one."""
        have = self.known[value]
        near = (b for b, s in have.items() if is_view(s.shape, compose(inverse(b), perm)))
        base = next(near, next(iter(have)))
        return base, have[base]

    def _emit(self, x: Value, source: str) -> Builder:
        """For a node on `x` that is named after it."""
        self.builder.source, self.builder.stem = source, x.name
        return self.builder

    def _transposed(self, x: Value, perm: Perm, source: str) -> Value:
        out = self._emit(x, source).transpose(x, perm)
        out.encoding = x.encoding.permuted(perm) if x.encoding is not None else None
        return out

    # -- the choice of an order --------------------------------------------------------------------

    def _choose(self, node: Node) -> Perm:
        natural = identity(_data_rank(node))
        if schema_of(node).moves is Moves.FIXED:
            return natural
        candidates = dict.fromkeys(self._candidates(node, natural))
        if len(candidates) == 1:
            return natural
        costs = {p: self._cost(node, p) for p in candidates}
        possible = [p for p, cost in costs.items() if cost is not None]
        return min(possible, key=lambda p: costs[p] or (), default=natural)

    def _candidates(self, node: Node, natural: Perm) -> Iterator[Perm]:
        asked = _order_for(node, self.wanted.get(node.out))
        if asked is not None:
            yield asked
        for i, value in enumerate(node.inputs):
            if value is not None and value.data is None and travels(node, i) and value.rank == len(natural):
                root, order = self._root(value, natural)
                yield from (compose(inverse(order), p) for p in self._orders(root))
        yield natural

    def _readers(self, value: Value, perm: Perm) -> int:
        """How many will share a transpose of a value: each pays its part."""
        if len(perm) != value.rank or not self.share:
            return 1
        root, order = self._root(value, perm)
        return max(1, self.wanted.get(root, Counter[Perm]())[order])

    def _cost(self, node: Node, perm: Perm) -> tuple[float, ...] | None:
        """Transposes before and after the node, the elements that they move, and lesser wishes."""
        moved = moved_in_graph(node, perm)
        if moved is None:
            return None
        turned = [node.x(i) for i in range(len(node.inputs)) if self._must_turn(node, i, perm)]
        before = {v: 1 / self._readers(v, perm) for v in turned}
        out = node.out
        asked = [p for p in self.wanted.get(out, ()) if not _alike(out, moved.out_perm, p)]
        moves_last = _normalises(node) and not _is_trailing(node, moved.params)
        views = sum(self._needs_view(node, i, perm) for i in range(len(node.inputs)))
        count = round(sum(before.values()) + len(asked), 6)
        total = round(sum(v.size * share for v, share in before.items()) + len(asked) * out.size, 6)
        return count, total, moves_last, views, len(before)

    def _must_turn(self, node: Node, index: int, perm: Perm) -> bool:
        value = node.inputs[index]
        if value is None or value.data is not None or not travels(node, index):
            return False
        if value.rank < len(perm):
            return not is_view(aligned_shape(value.shape, len(perm)), perm)
        return not self._has(value, perm)

    def _needs_view(self, node: Node, index: int, perm: Perm) -> bool:
        """Whether an operand is there, but with axes of size 1 in other places."""
        value = node.inputs[index]
        if value is None or value.data is not None or value.rank != len(perm) or not travels(node, index):
            return False
        return self._has(value, perm) and not self._has(value, perm, exactly=True)

    # -- the end -----------------------------------------------------------------------------------

    def _finish(self) -> list[Value]:
        """The values that are now the graph's outputs; each needs a node of its own."""
        found: list[Value] = []
        for old in self.graph.outputs:
            source = old.producer.source if old.producer is not None else ""
            new = self.get(old, identity(old.rank), source)
            if new is not old and (new not in self.made or new in found or self._is_output(new)):
                new = self._transposed(new, identity(new.rank), source)
            found.append(new)
        return found

    def _is_output(self, value: Value) -> bool:
        return any(value is v for v in self.graph.outputs)

    def differs(self) -> bool:
        old = [(n.op, n.out.shape) for n in self.graph.nodes]
        return old != [(n.op, n.out.shape) for n in self.nodes]

    def commit(self) -> None:
        names = [v.name for v in self.graph.outputs]
        self._rename(names)
        self.graph.outputs = []
        for node in reversed(self.graph.nodes):
            self.graph.remove(node)
        assert not self.graph.nodes  # reading applies the removals, so that a kept node can come back
        for node in self.nodes:
            self.graph.add(node)
        self.graph.outputs = self.outputs
        self._name_constants()

    def _name_constants(self) -> None:
        """A constant that is now needed in two orders is two constants."""
        taken = {v.name for v in self.graph.values() if not v.is_constant}
        for value in self.graph.constants():
            if value.name in taken:
                value.name = self.graph.unique(value.name)
            taken.add(value.name)

    def _rename(self, names: list[str]) -> None:
        """The last value of a source node has the name that users know: it passes to what took its place."""
        for value, gone in self.names:
            node = self.made[value]
            if value.name not in names and gone.out.name not in names and node.source == gone.source:
                value.name, gone.out.name = gone.out.name, value.name
                node.name = gone.name
        for value, name in zip(self.outputs, names, strict=True):
            if value.name != name:
                holder = next((v for v in self.made if v.name == name and v is not value), None)
                if holder is not None:
                    holder.name = self.graph.unique(name)
                value.name = name
                self.made[value].name = name


def _turned(value: Value, perm: Perm) -> Value:
    encoding = value.encoding.permuted(perm) if value.encoding is not None else None
    return Value(value.name, value.dtype, permuted(value.shape, perm), encoding)


def _alike(value: Value, a: Perm, b: Perm) -> bool:
    """Whether two orders of a value are the same but for axes of size 1."""
    return a == b or [i for i in a if value.shape[i] != 1] == [i for i in b if value.shape[i] != 1]


def transposes(nodes: list[Node]) -> tuple[int, int, int]:
    """How many transposes move data, how many elements they move, and how many move none."""
    found = [(n.x(0), perm) for n in nodes if (perm := permutation_of(n)) is not None]
    real = [x.size for x, perm in found if not is_view(x.shape, perm)]
    return len(real), sum(real), len(found) - len(real)


def minimise_transposes(graph: Graph, log: Explain) -> int:
    before = transposes(list(graph.nodes))
    if not before[0] + before[2]:
        return 0
    wanted = _wanted_orders(graph)
    walk = _Walk(graph, wanted, share=True)
    after = transposes(walk.nodes)
    if after[0] > len(graph.inputs) + len(
        graph.outputs
    ):  # not plainly the best: readers may not share after all
        other = _Walk(graph, wanted, share=False)
        if transposes(other.nodes) < after:
            walk, after = other, transposes(other.nodes)
    if after > before or (after == before and not walk.differs()):
        log.decline(NAME, f"graph '{graph.name}'", f"{before[0]} transposes cannot become fewer")
        return 0
    walk.commit()
    log.apply(NAME, f"graph '{graph.name}'", f"{before[0]} transposes became {after[0]}")
    return 1
