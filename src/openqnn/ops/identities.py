"""When a node gives back what it gets: declared with an op as `same_as`, the value that its output equals.

Shapes and types are compared by whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from openqnn.ir import Node, Value

SameAs: TypeAlias = Callable[[Node], "Value | None"]

_FEW = 65536  # elements; larger constants are not searched for being all ones or zeros


def always(n: Node) -> Value | None:
    return n.x(0)


def when(holds: Callable[[Node], bool]) -> SameAs:
    return lambda n: n.x(0) if holds(n) else None


def _filled(value: Value, number: float) -> bool:
    data = value.data
    return data is not None and 0 < data.size <= _FEW and bool(np.all(data == number))


def neutral(number: float, first_too: bool = False) -> SameAs:
    """Arithmetic with a number that changes nothing, on the right or, with `first_too`, on either side."""

    def same(n: Node) -> Value | None:
        if _filled(n.x(1), number):
            return n.x(0)
        return n.x(1) if first_too and _filled(n.x(0), number) else None

    return same


def twice(n: Node) -> Value | None:
    """An operation that undoes itself."""
    inner = n.x(0).producer
    return inner.x(0) if inner is not None and inner.op == n.op else None


def again(n: Node) -> Value | None:
    """An operation that changes nothing the second time."""
    inner = n.x(0).producer
    return n.x(0) if inner is not None and inner.op == n.op and inner.params == n.params else None
