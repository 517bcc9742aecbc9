"""Numbers that programs compute with: sizes of dynamic axes, and what Python does to them.

Shapes are settled when a model is converted, so all of these are known then.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value

_OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "pow", "eq", "ne", "lt", "le", "gt", "ge",
        "and_", "or_", "not_", "pos", "index", "abs",
    )
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "math.sqrt": math.sqrt,
    "builtins.max": max,
    "builtins.min": min,
    "builtins.round": round,
    "builtins.abs": abs,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_int": int,
    "torch.sym_float": float,
    "torch.sym_not": operator.not_,
    "torch.sym_sqrt": math.sqrt,
    "torch.sym_ite": lambda c, a, b: a if c else b,
    "torch._sym_sqrt": math.sqrt,
    "math_ops.sym_int": int,
}
_SIZES: Final = ("torch.ops.aten.sym_size.int", "torch.ops.aten.sym_numel.default", "torch.ops.aten.size.int")
_LARGEST = 1 << 256


def _function(target: str) -> Callable[..., Any] | None:
    module, _, name = target.rpartition(".")
    if module in ("_operator", "operator"):
        return _OPERATORS.get(name)
    if target in _FUNCTIONS:
        return _FUNCTIONS[target]
    return _FUNCTIONS.get(f"torch.{name}") if name.startswith("sym_") and "aten" not in module else None


def knows(target: str) -> bool:
    return target in _SIZES or _function(target) is not None


def evaluate(t: TorchTranslation, target: str, values: Sequence[Any]) -> Any:
    """The result of Python's operators on numbers, or the size of an axis."""
    if target in _SIZES:
        x = values[0]
        if not isinstance(x, Value):
            t.refuse("the size of something that is no tensor")
        return x.size if "numel" in target else x.shape[t.axis(int(values[1]), x.rank)]
    function = _function(target)
    numbers = [t.number(v, "an operand") for v in values]
    if target.endswith(".pow") and (abs(numbers[0]) > 1 << 32 or abs(numbers[1]) > 64):
        t.refuse("a power of numbers that are too large for a size")
    assert function is not None
    try:
        result = function(*numbers)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as e:
        t.refuse(f"{target} of {numbers}: {e}")
    if isinstance(result, int) and abs(result) > _LARGEST:
        t.refuse("a number too large for a size")
    return result
