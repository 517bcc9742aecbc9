"""From a Python function to the C++ of a kernel, where it works on each element by itself.

The function is called with symbols in place of arrays and numbers; numpy's functions and Python's operators
write down what they would compute. Whatever cannot be written down so (loops over axes, sums, decisions
by data) makes no kernel: the user writes that in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from openqnn.ops.custom import CustomOp

_BINARY: Final = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})",
    "true_divide": "({} / {})", "maximum": "std::fmax({}, {})", "minimum": "std::fmin({}, {})",
    "power": "std::pow({}, {})", "float_power": "std::pow({}, {})", "arctan2": "std::atan2({}, {})",
    "hypot": "std::hypot({}, {})", "fmod": "std::fmod({}, {})", "less": "({} < {})", "greater": "({} > {})",
    "less_equal": "({} <= {})", "greater_equal": "({} >= {})", "equal": "({} == {})",
    "not_equal": "({} != {})", "fmax": "std::fmax({}, {})", "fmin": "std::fmin({}, {})",
}  # fmt: skip
_UNARY: Final = {
    "negative": "(-{})", "positive": "{}", "absolute": "std::fabs({})", "fabs": "std::fabs({})",
    "square": "oppackage_square({})", "reciprocal": "(1.0f / {})", "rint": "std::nearbyint({})",
    **{name: f"std::{name}({{}})" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
        "cosh", "tanh", "floor", "ceil", "trunc",
    )},
    **{f"arc{name}": f"std::a{name}({{}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip


class Untraceable(Exception):
    """The function does what no expression of one element says."""


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A number that is not known yet, as C++."""

    __array_priority__ = 1000

    def __init__(self, code: str, name: str = "") -> None:
        self.code, self._name = code, name

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Symbol:
        known = _UNARY if len(inputs) == 1 else _BINARY
        if method != "__call__" or ufunc.__name__ not in known or more:
            raise Untraceable(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}")
        return Symbol(known[ufunc.__name__].format(*map(_code, inputs)))

    def __array_function__(self, function: Callable[..., Any], _: Any, given: Any, more: Any) -> Symbol:
        name = function.__name__
        if name == "where" and len(given) == 3 and not more:
            return Symbol("({} ? {} : {})".format(*map(_code, given)))
        if name == "clip" and len(given) == 3 and not more:
            x, low, high = map(_code, given)
            return Symbol(f"std::fmin(std::fmax({x}, {low}), {high})")
        raise Untraceable(f"np.{name}")

    def __getitem__(self, index: Any) -> Symbol:
        if not self._name or not isinstance(index, int) or index < 0:
            raise Untraceable(f"an index [{index}]")
        return Symbol(f"{self._name}[{index}]")

    def astype(self, dtype: Any) -> Symbol:
        if np.dtype(dtype) != np.float32:
            raise Untraceable(f"astype({dtype})")
        return self

    def __bool__(self) -> bool:
        raise Untraceable("a decision by data")

    def __float__(self) -> float:
        raise Untraceable("float(...)")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Untraceable("a conversion to an array")


def _code(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.code
    number = float(np.float32(value)) if np.ndim(value) == 0 else None
    if number is None or not np.isfinite(number):
        raise Untraceable(f"the constant {value!r}")
    return f"{number!r}f"


def kernel_body(op: CustomOp) -> tuple[str, str]:
    """The C++ of an op's kernel, or "" and what keeps the function from being one."""
    if op.cpp:
        return op.cpp, ""
    if op.function is None:
        return "", "no Python function computes it"
    try:
        results = _traced(op)
    except Untraceable as e:
        return "", f"its function has {e}, which is not computed element by element"
    except Exception as e:
        return "", f"its function cannot be followed: {type(e).__name__}: {e}"
    lines = list[str]()
    for operand, result in zip(op.declared.outputs, results, strict=True):
        out = identifier(operand.name)
        lines += [f"for (size_t i = 0; i < {out}.size(); ++i) {{", f"  {out}[i] = {_code(result)};", "}"]
        if ".at(i, ?)" in lines[-2]:
            lines[-2] = lines[-2].replace("?", out)
    return "\n".join(lines), ""


def _traced(op: CustomOp) -> list[Any]:
    assert op.function is not None
    if any(d.repeated or not d.mandatory for d in op.declared.inputs):
        raise Untraceable("inputs that may be left out or repeated")
    inputs = [Symbol(f"{identifier(d.name)}.at(i, ?)") for d in op.declared.inputs]
    params: dict[str, Any] = {}
    for d in op.declared.params:
        if d.enumeration or "BOOL" in d.datatypes[0]:
            raise Untraceable(f"decisions by '{d.name}'")
        name = identifier(d.name)
        params[d.name] = Symbol(name) if d.is_scalar else Symbol("", name)
    made = op.function(*inputs, **params)
    results = list(cast("Sequence[Any]", made)) if isinstance(made, list | tuple) else [made]
    if len(results) != len(op.declared.outputs):
        raise Untraceable(f"{len(results)} results of {len(op.declared.outputs)}")
    return results


def identifier(name: str) -> str:
    """An operand's name as one of C++: in[0] is in_0."""
    return name.replace("[", "_").replace("]", "")
