"""Rules: what HTP does not take or gets wrong, one op at a time, and what to put in the place.

    @rule("Softmax")
    def softmax_on_last_axis(node, b):
        # HTP: "axis has incorrect value", only the last is taken.
        ...

A rule looks at one node and gives None when HTP takes it as it is, the values that stand in for its outputs
when not, or raises Refusal where there is no way. Its comment says what the library does, as measured.

    takes("ElementWiseMod", kinds="I", axes=4)

says what the validator of an op lists, for the rules that hold for all of them. What is said of an op stands
in one module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from openqnn.ir import Node, Value
from openqnn.ops import Builder

MOST: Final = 5  # axes of a tensor
Instead: TypeAlias = "Value | Sequence[Value] | None"
RuleFunction: TypeAlias = Callable[[Node, Builder], Instead]
RULES: Final[dict[str, list[RuleFunction]]] = {}
HALF_ONLY: Final[set[RuleFunction]] = set()
FixedRule: TypeAlias = Callable[[Node, Builder, int], "Value | None"]
FIXED_RULES: Final[dict[str, FixedRule]] = {}


@dataclass(frozen=True, slots=True)
class Taken:
    """The data that an op takes: Float, Int32, Bool, and how many axes. No kinds: every operand has its own.

    `wraps`: the result of integers can leave their type.
    """

    kinds: str = "F"
    axes: int = MOST
    wraps: bool = False


TAKEN: Final[dict[str, Taken]] = {}
_GENERIC: Final = Taken("FIB")  # elementwise ops in the form whose operation is a parameter


def takes(*ops: str, kinds: str = "F", axes: int = MOST, wraps: bool = False) -> None:
    for name in ops:
        assert name not in TAKEN, f"{name} is declared twice"
        TAKEN[name] = Taken(kinds, axes, wraps)


def taken(node: Node) -> Taken:
    """What was said of the op; floats of any rank where nothing was."""
    return TAKEN.get(node.op) or (_GENERIC if "operation" in node.params else Taken())


class Refusal(Exception):
    """No way to run a node on HTP: why, and what the user can do."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def rule(*ops: str, half: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """Registers a function for those ops; rules of one op are tried in the order of registration.

    One for `half` precision only mends what that loses, and costs accuracy in fixed point.
    """

    def register(function: RuleFunction) -> RuleFunction:
        for name in ops:
            RULES.setdefault(name, []).append(function)
        if half:
            HALF_ONLY.add(function)
        return function

    return register


def fixed_rule(*ops: str) -> Callable[[FixedRule], FixedRule]:
    """Registers a function for graphs that are going to be in fixed point; it gets a node's width, too."""

    def register(function: FixedRule) -> FixedRule:
        for name in ops:
            assert name not in FIXED_RULES, f"{name} has a rule already"
            FIXED_RULES[name] = function
        return function

    return register


def again(
    b: Builder, node: Node, *inputs: Value | None, shape: Sequence[int] | None = None, **changes: object
) -> Value:
    """Repeats an op on other inputs, with some parameters changed; its first output."""
    params: dict[str, Any] = {**node.params, **changes}
    target = tuple(shape) if shape is not None else None
    return b(node.op, *inputs, dtype=node.out.dtype, shape=target, **params)
