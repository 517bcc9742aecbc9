"""Einsum, put together from Transpose, Reshape, MatMul and sums.

Operands are taken in two at a time; every axis carries a label. An ellipsis stands for axes that get labels
of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value


@dataclass(frozen=True)
class Term:
    """A tensor and the label of each of its axes."""

    value: Value
    labels: tuple[str, ...]

    def size(self, label: str) -> int:
        return self.value.shape[self.labels.index(label)] if label in self.labels else 1


@translates("Einsum")
def einsum(t: Translation, *inputs: Value, equation: str) -> Value:
    terms, output = _parse(t, equation, inputs)
    terms = [_diagonal(t, term) for term in terms]
    result = terms[0]
    for i, term in enumerate(terms[1:], start=2):
        later = {label for other in terms[i:] for label in other.labels} | set(output)
        result = _product(t, result, term, later)
    result = _summed(t, result, set(output))
    if set(result.labels) != set(output):
        t.refuse(f"equation {equation!r}: the output has labels that no input has")
    return t.transpose(result.value, [result.labels.index(label) for label in output])


def _parse(t: Translation, equation: str, inputs: tuple[Value, ...]) -> tuple[list[Term], tuple[str, ...]]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(inputs) or any(v is None for v in inputs):
        t.refuse(f"equation {equation!r} does not fit {len(inputs)} inputs")
    terms = [Term(v, _labels(t, text, v.rank)) for text, v in zip(texts, inputs, strict=True)]
    if any(len(term.labels) != term.value.rank for term in terms):
        t.refuse(f"equation {equation!r} does not fit the ranks of the inputs")
    hidden = max((_hidden(term) for term in terms), key=len, default=())
    if arrow:
        return terms, _labels(t, right, len(hidden) + len(right.replace("...", "")))
    return terms, (*hidden, *_read_once(terms))


def _hidden(term: Term) -> tuple[str, ...]:
    """The labels that stand for "..." in a term."""
    return tuple(label for label in term.labels if label.isdigit())


def _read_once(terms: Sequence[Term]) -> list[str]:
    """The letters that occur once: the result has them, in their order, where no result is given."""
    count = Counter(label for term in terms for label in term.labels if not label.isdigit())
    return sorted(label for label, times in count.items() if times == 1)


def _labels(t: Translation, text: str, rank: int) -> tuple[str, ...]:
    """Letters, and digits for the axes of an ellipsis, counted from its end as broadcasting does."""
    head, dots, tail = text.partition("...")
    if not all(c.isalpha() for c in head + tail):
        t.refuse(f"'{text}' is no list of labels")
    hidden = max(0, rank - len(head) - len(tail)) if dots else 0
    if hidden > 9:
        t.refuse("an ellipsis over more than nine axes")
    return (*head, *(str(i) for i in range(hidden - 1, -1, -1)), *tail)


def _diagonal(t: Translation, term: Term) -> Term:
    """A label that a term has twice means the diagonal of these two axes."""
    for label in dict.fromkeys(term.labels):
        while term.labels.count(label) > 1:
            first = term.labels.index(label)
            second = term.labels.index(label, first + 1)
            rest = [i for i in range(term.value.rank) if i not in (first, second)]
            value = t.transpose(term.value, (*rest, first, second))
            *outer, rows, columns = value.shape
            if rows != columns:
                t.refuse(f"label '{label}' names axes of {rows} and {columns}")
            flat = t.reshape(value, (*outer, rows * columns))
            places = t.constant((np.arange(rows) * (columns + 1)).astype(np.int32))
            picked = t.gather(flat, places, axis=len(outer))
            term = Term(picked, (*(term.labels[i] for i in rest), label))
    return term


def _summed(t: Translation, term: Term, keep: set[str]) -> Term:
    """Without the axes that nobody needs any more."""
    drop = [i for i, label in enumerate(term.labels) if label not in keep]
    if not drop:
        return term
    value = t.reduce_sum(term.value, drop, keep_dims=False)
    return Term(value, tuple(x for x in term.labels if x in keep))


def _product(t: Translation, a: Term, b: Term, later: set[str]) -> Term:
    """One product: labels of both that nobody needs later are summed over, which is what MatMul does."""
    shared = [x for x in a.labels if x in b.labels]
    a, b = _summed(t, a, later | set(shared)), _summed(t, b, later | set(shared))
    if any(a.size(x) != b.size(x) for x in shared):
        return _broadcast_product(t, a, b, later)
    batch = [x for x in shared if x in later]
    inner = [x for x in shared if x not in later]
    rows = [x for x in a.labels if x not in shared]
    columns = [x for x in b.labels if x not in shared]
    if not inner or not a.value.dtype.is_float:
        return _broadcast_product(t, a, b, later)
    left = _matrix(t, a, batch, rows, inner)
    right = _matrix(t, b, batch, inner, columns)
    value = t.matmul(left, right)
    sizes = [max(a.size(x), b.size(x)) for x in (*batch, *rows, *columns)]
    return Term(t.reshape(value, sizes), (*batch, *rows, *columns))


def _matrix(t: Translation, term: Term, *groups: list[str]) -> Value:
    """The term with its axes in that order, each group as one axis."""
    value = t.transpose(term.value, [term.labels.index(x) for group in groups for x in group])
    return t.reshape(value, [prod(term.size(x) for x in group) for group in groups])


def _broadcast_product(t: Translation, a: Term, b: Term, later: set[str]) -> Term:
    """Element by element, then the sum: for outer products, integers and axes of 1 that broadcast."""
    labels = (*a.labels, *(x for x in b.labels if x not in a.labels))
    sides = [
        t.reshape(
            _matrix(t, term, *([x] for x in labels if x in term.labels)), [term.size(x) for x in labels]
        )
        for term in (a, b)
    ]
    return _summed(t, Term(t.mul(*sides), labels), later)
