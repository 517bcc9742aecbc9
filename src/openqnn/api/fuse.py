"""Subgraphs as custom ops, and back: part of a model becomes a node of the user's package, or a node its ops.

Both are proved before they are taken: the subgraph and what stands in for it compute the same random data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openqnn.errors import OpenQnnError, UnsupportedError, UsageError
from openqnn.frontends.custom_ops import composite_function
from openqnn.ir import Array, Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ir.subgraph import subgraph
from openqnn.ops import Builder
from openqnn.ops.custom import CustomOp, custom_op_of, custom_ops
from openqnn.ops.user_code import line_of, origin
from openqnn.passes.edit import builder_at, scalar, supplant
from openqnn.runtime.cpu.executable import CpuExecutable

SAMPLES = 3
TOLERANCE = 1e-4  # of the largest result


@dataclass(frozen=True, slots=True)
class Replaced:
    """A graph with subgraphs replaced: the tensors at which, and how far the results were on random data."""

    graph: Graph
    places: tuple[str, ...]
    error: float
    """The largest difference, as a part of the largest result."""
    samples: int = SAMPLES


@dataclass(slots=True)
class _Place:
    """One occurrence of the subgraph: what each of its values and nodes is in the graph."""

    values: dict[Value, Value] = field(default_factory=dict)
    nodes: dict[Node, Node] = field(default_factory=dict)


def fuse(
    graph: Graph,
    op: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    params: Mapping[str, float | int | str] | None = None,
    *,
    everywhere: bool = True,
) -> Replaced:
    """Replaces the subgraph between tensors, and its repeats, by nodes of a custom op, "Package::Name".

    Inputs are the op's, in order; they may be constants. `params` are numbers, or the names of constants of
    the subgraph, which may then differ from place to place. UsageError where the tensors bound no subgraph;
    UnsupportedError where the op's function computes other numbers than the subgraph.
    """
    made = clone_graph(graph)
    custom = _declared(op)
    ends = [_named(made, name) for name in outputs]
    starts = [_named(made, name) for name in inputs]
    if not ends:
        raise UsageError("no output of the subgraph is named")
    nodes = _between(starts, ends)
    wanted = dict(params or {})
    bound = {k: _named(made, v) for k, v in wanted.items() if isinstance(v, str)}
    pattern = _Pattern(starts, ends, nodes, set(bound.values()))
    found = [_Place({v: v for v in pattern.values()}, {n: n for n in nodes})]
    if everywhere:
        found += pattern.repeats(made, set(nodes))
    for place in found:
        _check_closed(made, place, ends)
    places = tuple(place.values[ends[0]].name for place in found)
    return Replaced(made, places, max(_fuse_places(made, custom, pattern, found, wanted, bound)))


def _fuse_places(
    graph: Graph,
    custom: CustomOp,
    pattern: _Pattern,
    places: Sequence[_Place],
    wanted: Mapping[str, float | int | str],
    bound: Mapping[str, Value],
) -> list[float]:
    """Replaces each place by a node with the numbers that stand there; gives the largest error of each."""
    errors: list[float] = []
    for place in places:
        numbers = {name: _number(place.values[value]) for name, value in bound.items()}
        errors.append(_fuse_place(graph, custom, place, pattern, {**wanted, **numbers}))
    return errors


def _fuse_place(
    graph: Graph, custom: CustomOp, place: _Place, pattern: _Pattern, params: Mapping[str, Any]
) -> float:
    """Fuses one occurrence; how far its results are from those before."""
    starts = [place.values[v].name for v in pattern.starts]
    ends = [place.values[v].name for v in pattern.ends]
    old = subgraph(graph, list(place.nodes.values()))
    new = clone_graph(old)
    for target in (new, graph):
        known = {v.name: v for v in target.values()}
        _put_node(target, custom, [known[n] for n in starts], [known[n] for n in ends], params)
    return _proved(old, new, custom.key, ends[0])


def expand(graph: Graph, op: str) -> Replaced:
    """Replaces every node of a custom op by the QNN ops of the composite that is declared for it.

    UsageError where none is; UnsupportedError where the composite computes other numbers than the op's
    function.
    """
    made, custom = clone_graph(graph), _declared(op)
    function = composite_function(custom.domain or custom.package, custom.declared.name)
    if function is None:
        domain = custom.domain or custom.package
        hint = f'declare it: @openqnn.composite("{domain}", "{custom.declared.name}")'
        raise UsageError(f"no composite says what {custom.key} is in QNN ops", hint=hint)
    places, error = [], 0.0
    for node in [n for n in made.nodes if custom_op_of(n) is custom]:
        names = {p: custom.attributes.get(p, p) for p in node.params}
        given = {names[p]: v for p, v in node.params.items()}
        old = subgraph(made, [node])
        new = clone_graph(old)
        for target, place in ((new, new.nodes[0]), (made, node)):
            results = _composed(function, builder_at(target, place), place, given)
            for before, after in zip(list(place.outputs), results, strict=True):
                supplant(target, before, after)
        error = max(error, _proved(old, new, custom.key, old.outputs[0].name))
        places.append(old.outputs[0].name)
    if not places:
        raise UsageError(f"the graph has no node of {custom.key}")
    return Replaced(made, tuple(places), error)


def _composed(
    function: Callable[..., Any], q: Builder, node: Node, attributes: Mapping[str, Any]
) -> list[Value]:
    """The values that the user's composite makes; what goes wrong in it is an error with its line."""
    try:
        made = function(q, *node.inputs, **attributes)
    except OpenQnnError:
        raise
    except Exception as e:
        raise UnsupportedError(
            f"{node.where}: its composite raised {type(e).__name__}: {e} (at {line_of(e)})"
        ) from e
    results = list(made) if isinstance(made, list | tuple) else [made]
    if len(results) < len(node.outputs) or not all(isinstance(r, Value) for r in results):
        raise UnsupportedError(f"{node.where}: its composite ({origin(function)}) does not give its results")
    return results


def _declared(op: str) -> CustomOp:
    for known in custom_ops():
        if op in (known.key, f"{known.package}::{known.declared.name}"):
            return known
    known_ops = ", ".join(f"{o.package}::{o.declared.name}" for o in custom_ops()) or "none"
    raise UsageError(f"no custom op '{op}' is declared", hint=f"declared are: {known_ops}")


def _named(graph: Graph, name: str) -> Value:
    found = next((v for v in graph.values() if v.name == name), None)
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(name, [v.name for v in graph.values()], 3)
        raise UsageError(
            f"the graph has no tensor '{name}'", hint=f"did you mean {' or '.join(near)}?" if near else ""
        )
    return found


def _between(starts: Sequence[Value], ends: Sequence[Value]) -> list[Node]:
    """The nodes that compute `ends` from `starts` and constants."""
    found: dict[Node, None] = {}
    waiting = list(ends)
    while waiting:
        value = waiting.pop()
        if value in starts or value.is_constant:
            continue
        if value.producer is None:
            hint = "name it as an input of the subgraph, too"
            raise UsageError(f"the subgraph reads the graph's input '{value.name}'", hint=hint)
        if value.producer not in found:
            found[value.producer] = None
            waiting += [v for v in value.producer.inputs if v is not None]
    if not found:
        raise UsageError(f"nothing lies between {_list(starts)} and {_list(ends)}")
    return list(found)


def _list(values: Sequence[Value]) -> str:
    return " and ".join(f"'{v.name}'" for v in values) or "no tensors"


def _check_closed(graph: Graph, place: _Place, ends: Sequence[Value]) -> None:
    """Nothing outside reads what the subgraph has inside."""
    shown, inside = {place.values[v] for v in ends}, set(place.nodes.values())
    for value in (v for node in inside for v in node.outputs if v not in shown):
        outside = [user for user in value.users if user not in inside]
        if outside or graph.is_output(value):
            reader = outside[0].where if outside else "the graph gives it out"
            hint = "name it as an output of the subgraph, too, if the op has several"
            raise UsageError(f"'{value.name}' inside the subgraph is read outside: {reader}", hint=hint)


def _number(value: Value) -> float:
    found = scalar(value)
    if found is None:
        raise UsageError(f"'{value.name}' is no constant number that could be a parameter")
    return found


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A subgraph to look for: operations, parameters and constants count, names and sizes do not."""

    starts: Sequence[Value]
    ends: Sequence[Value]
    nodes: Sequence[Node]
    free: set[Value]
    """Constants that become parameters, and so may have another value."""

    def values(self) -> Iterator[Value]:
        yield from self.starts
        for node in self.nodes:
            yield from (v for v in (*node.inputs, *node.outputs) if v is not None)

    def repeats(self, graph: Graph, taken: set[Node]) -> list[_Place]:
        """Other places with the same ops, that share no node."""
        found: list[_Place] = []
        first = self.ends[0]
        assert first.producer is not None
        index = first.producer.outputs.index(first)
        for node in graph.nodes:
            if node in taken or node.op != first.producer.op:
                continue
            place = _Place()
            whole = self._match(first, node.outputs[index], place) and all(
                e in place.values for e in self.ends
            )
            if whole and taken.isdisjoint(place.nodes.values()) and _is_closed(graph, place, self.ends):
                found.append(place)
                taken.update(place.nodes.values())
        return found

    def _match(self, mine: Value, theirs: Value, place: _Place) -> bool:
        if mine in place.values:
            return place.values[mine] is theirs
        place.values[mine] = theirs
        if mine in self.starts:
            return mine.rank == theirs.rank and mine.dtype is theirs.dtype
        if mine.is_constant:
            return theirs.is_constant and (mine in self.free or _same(mine, theirs))
        ours, other = mine.producer, theirs.producer
        if ours is None or other is None or not _alike(ours, other):
            return False
        place.nodes[ours] = other
        pairs = [*zip(ours.outputs, other.outputs, strict=True), *zip(ours.inputs, other.inputs, strict=True)]
        return all(self._match_operand(a, b, place) for a, b in pairs)

    def _match_operand(self, mine: Value | None, theirs: Value | None, place: _Place) -> bool:
        if mine is None or theirs is None:
            return mine is theirs
        return self._match(mine, theirs, place)


def _is_closed(graph: Graph, place: _Place, ends: Sequence[Value]) -> bool:
    try:
        _check_closed(graph, place, ends)
    except UsageError:
        return False
    return True


def _alike(a: Node, b: Node) -> bool:
    counts = (len(a.inputs), len(a.outputs)) == (len(b.inputs), len(b.outputs))
    return a.op == b.op and a.params == b.params and counts


def _same(a: Value, b: Value) -> bool:
    assert a.data is not None and b.data is not None
    return a.dtype is b.dtype and np.array_equal(a.data, b.data)


def _put_node(
    graph: Graph,
    custom: CustomOp,
    starts: Sequence[Value],
    ends: Sequence[Value],
    params: Mapping[str, Any],
) -> None:
    """Puts a node of the op in the place of what computes `ends` from `starts`."""
    last = ends[0].producer
    assert last is not None
    made = builder_at(graph, last).many(
        custom.declared.name,
        *starts,
        package=custom.package,
        shapes=[v.shape for v in ends],
        dtypes=[v.dtype for v in ends],
        **params,
    )
    for old, new in zip(ends, made, strict=True):
        supplant(graph, old, new)
    graph.sort()


def _proved(old: Graph, new: Graph, op: str, where: str) -> float:
    """The largest difference of both on random data; UnsupportedError where it is more than rounding."""
    random, worst = np.random.default_rng(0), 0.0
    runners = [CpuExecutable(graph) for graph in (old, new)]
    for _ in range(SAMPLES):
        data = {v.name: _drawn(random, v) for v in old.inputs}
        before, after = (runner.run(data) for runner in runners)
        for mine, theirs in zip(before.values(), after.values(), strict=True):
            size = max(float(np.abs(mine).max(initial=0)), 1e-30)
            difference = float(np.abs(mine.astype(np.float64) - theirs).max(initial=0)) / size
            if not difference <= TOLERANCE:
                raise UnsupportedError(
                    f"{op} does not compute what the subgraph at '{where}' does: on random data they differ"
                    f" by {difference:.3g} of the largest result",
                    hint="check the order of inputs and the parameters",
                )
            worst = max(worst, difference)
    return worst


def _drawn(random: np.random.Generator, value: Value) -> Array:
    if value.dtype.is_float:
        return random.normal(size=value.shape).astype(value.dtype.numpy)
    return random.integers(0, 2, size=value.shape).astype(value.dtype.numpy)
