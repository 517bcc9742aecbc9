"""Rules: a pattern of ops, a check that gives its reason, and what to put in the place.

A pattern is written as the expression that it matches, from the result back to the operands:

    x = Any("x")
    pattern = op("ElementWiseDivide", x, op("ElementWiseSquareRoot", ...))

Operands of commutative ops match in either order. The same name matches the same value. All that is
matched except the result must be private to the match: else the rule declines and says who else reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from openqnn.ir import DType, Graph, Node, Value
from openqnn.ops import Builder
from openqnn.passes.edit import alive, builder_at, is_quantized, private, scalar, supplant
from openqnn.passes.explain import Explain
from openqnn.passes.step import Change


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern found: values and nodes by their names, and all nodes with the root first."""

    values: dict[str, Value] = field(default_factory=lambda: dict[str, Value]())
    named: dict[str, Node] = field(default_factory=lambda: dict[str, Node]())
    nodes: tuple[Node, ...] = ()

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def get(self, name: str) -> Value | None:
        return self.values.get(name)

    def node(self, name: str) -> Node:
        return self.named[name]

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def number(self, name: str) -> float:
        """The single number that a constant holds."""
        found = scalar(self.values[name])
        assert found is not None
        return found


Condition: TypeAlias = Callable[[Node], bool]


class Term(ABC):
    """A part of a pattern."""

    @abstractmethod
    def match(self, value: Value, m: Match) -> Iterator[Match]:
        """The ways in which `value` fits, each with what it binds."""

    def __or__(self, other: Term) -> Term:
        return Either((self, other))


def _bound(name: str, value: Value, m: Match) -> Iterator[Match]:
    found = m.values.get(name)
    if found is None:
        yield replace(m, values={**m.values, name: value})
    elif found is value:
        yield m


@dataclass(frozen=True, slots=True)
class Any(Term):
    """Any value."""

    name: str

    def match(self, value: Value, m: Match) -> Iterator[Match]:
        return _bound(self.name, value, m)


@dataclass(frozen=True, slots=True)
class Const(Term):
    """A constant."""

    name: str

    def match(self, value: Value, m: Match) -> Iterator[Match]:
        return _bound(self.name, value, m) if value.data is not None else iter(())


@dataclass(frozen=True, slots=True)
class Number(Term):
    """A constant of a single element: a given number, or any that is then bound."""

    number: float | None = None
    name: str = ""

    def match(self, value: Value, m: Match) -> Iterator[Match]:
        found = scalar(value)
        if found is None or (self.number is not None and not close(found, self.number, value.dtype)):
            return iter(())
        return _bound(self.name, value, m) if self.name else iter((m,))


def close(found: float, wanted: float, dtype: DType = DType.FLOAT_32) -> bool:
    """Equal up to the rounding that exporters leave in written-out constants."""
    tolerance = 1e-3 if dtype in (DType.FLOAT_16, DType.BFLOAT_16) else 2e-6
    return bool(np.isclose(found, wanted, rtol=tolerance, atol=0))


@dataclass(frozen=True, slots=True)
class Op(Term):
    """The first output of a node."""

    op: str
    inputs: tuple[Term, ...] = ()
    either_order: bool = False
    where: Condition | None = None
    name: str = ""

    def match(self, value: Value, m: Match) -> Iterator[Match]:
        node = value.producer
        if node is None or node.op != self.op or node.out is not value:
            return
        if self.name in m.named:
            yield from (m,) if m.named[self.name] is node else ()
            return
        given = [v for v in node.inputs if v is not None]
        if len(given) != len(self.inputs) or (self.where is not None and not self.where(node)):
            return
        named = {**m.named, self.name: node} if self.name else m.named
        here = Match(m.values, named, (*m.nodes, node))
        yield from self._operands(self.inputs, given, here)
        if self.either_order:
            yield from self._operands(self.inputs[::-1], given, here)

    def _operands(self, terms: Sequence[Term], values: Sequence[Value], m: Match) -> Iterator[Match]:
        if not terms:
            yield m
            return
        for found in terms[0].match(values[0], m):
            yield from self._operands(terms[1:], values[1:], found)


@dataclass(frozen=True, slots=True)
class Either(Term):
    """One of several spellings."""

    options: tuple[Term, ...]

    def match(self, value: Value, m: Match) -> Iterator[Match]:
        for option in self.options:
            yield from option.match(value, m)


def op(kind: str, *inputs: Term, where: Condition | None = None, name: str = "") -> Op:
    return Op(kind, inputs, where=where, name=name)


def swappable(kind: str, *inputs: Term, name: str = "") -> Op:
    """An op whose operands may come in either order."""
    return Op(kind, inputs, either_order=True, name=name)


def find(term: Term, value: Value) -> Match | None:
    """The first way in which a value fits."""
    return next(term.match(value, Match()), None)


def _always(_: Match) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Rule:
    """`check` gives the reason to decline, if any; `rewrite` builds what stands in for the root.

    A pattern is an op, or one of several: any and every value is no root.
    """

    name: str
    patterns: tuple[Term, ...]
    rewrite: Callable[[Match, Builder], Value]
    check: Callable[[Match], str] = _always
    exact: bool = False  # the numbers stay as they are, so quantized values may take part


def _inner_use(graph: Graph, m: Match) -> str:
    for node in m.nodes[1:]:
        for value in node.outputs:
            reason = private(graph, value, m.nodes)
            if reason:
                return reason
    return ""


def _refusal(graph: Graph, rule: Rule, m: Match) -> str:
    values = [v for n in m.nodes for v in (*n.inputs, *n.outputs)]
    if not rule.exact and is_quantized(*values):
        return "a value is quantized: the rewrite would change its numbers"
    return rule.check(m) or _inner_use(graph, m)


def _heads(term: Term) -> frozenset[str] | None:
    """The ops that can produce what a term matches; None for any."""
    if isinstance(term, Op):
        return frozenset((term.op,))
    if not isinstance(term, Either):
        return None
    found = [_heads(option) for option in term.options]
    return None if None in found else frozenset().union(*(f for f in found if f is not None))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A root with the ops that its operands need, so that most nodes are passed over without matching."""

    rule: Rule
    pattern: Op
    heads: tuple[frozenset[str], ...]


def _roots(term: Term) -> Iterator[Op]:
    if isinstance(term, Either):
        for option in term.options:
            yield from _roots(option)
        return
    assert isinstance(term, Op), f"{term} is no op: a rule would be tried at every node"
    yield term


def _entries(rule: Rule) -> Iterator[_Entry]:
    for pattern in (root for term in rule.patterns for root in _roots(term)):
        heads = [_heads(term) for term in pattern.inputs]
        yield _Entry(rule, pattern, tuple(h for h in heads if h is not None))


def _try(graph: Graph, log: Explain, entry: _Entry, node: Node) -> bool:
    rule, refusal = entry.rule, ""
    for m in entry.pattern.match(node.out, Match()):
        reason = _refusal(graph, rule, m)
        if not reason:
            new = rule.rewrite(m, builder_at(graph, node))
            log.apply(rule.name, node)
            supplant(graph, node.out, new)
            return True
        refusal = refusal or reason
    if refusal:
        log.decline(rule.name, node, refusal)
    return False


def apply_rules(rules: Sequence[Rule]) -> Change:
    """A pass that tries every rule at every node, in one walk from inputs to outputs."""
    table: dict[str, list[_Entry]] = {}
    for entry in (e for rule in rules for e in _entries(rule)):
        table.setdefault(entry.pattern.op, []).append(entry)

    def run(graph: Graph, log: Explain) -> int:
        changes = 0
        for node in list(graph.nodes):
            entries = table.get(node.op)
            if entries is None or not alive(node):
                continue
            below = {v.producer.op for v in node.inputs if v is not None and v.producer is not None}
            fitting = (e for e in entries if all(not h.isdisjoint(below) for h in e.heads))
            changes += any(_try(graph, log, e, node) for e in fitting)
        return changes

    return run
