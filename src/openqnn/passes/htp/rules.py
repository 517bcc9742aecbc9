"""Rules: what HTP does not take or gets wrong, one op at a time, and what to put in the place.

    @rule("Softmax")
    def softmax_on_last_axis(node, b):
        # HTP: "axis has incorrect value", only the last is taken.
        ...

A rule looks at one node and gives None when HTP takes it as it is, the values that stand in for its outputs
when not, or raises Refusal where there is no way. Its comment says what the library does, as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from openqnn.ir import Node, Value
from openqnn.ops import Builder

Instead: TypeAlias = "Value | Sequence[Value] | None"
RuleFunction: TypeAlias = Callable[[Node, Builder], Instead]
RULES: Final[dict[str, list[RuleFunction]]] = {}


class Refusal(Exception):
    """No way to run a node on HTP: why, and what the user can do."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Problem:
    """A node that HTP cannot run."""

    op: str
    where: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" + (f"\n  hint: {self.hint}" if self.hint else "")


def rule(*ops: str) -> Callable[[RuleFunction], RuleFunction]:
    """Registers a function for those ops; rules of one op are tried in the order of registration."""

    def register(function: RuleFunction) -> RuleFunction:
        for name in ops:
            RULES.setdefault(name, []).append(function)
        return function

    return register


def again(
    b: Builder, node: Node, *inputs: Value | None, shape: Sequence[int] | None = None, **changes: object
) -> Value:
    """The same op on other inputs, with some parameters changed; its first output."""
    params: dict[str, Any] = {**node.params, **changes}
    target = tuple(shape) if shape is not None else None
    return b(node.op, *inputs, dtype=node.out.dtype, shape=target, **params)
