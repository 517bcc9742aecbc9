"""From a Python function to the C++ of a kernel, where it works on each element by itself.

The function is called with symbols in place of arrays and numbers; numpy's functions and Python's operators
write down what they would compute. Whatever cannot be written down so (loops over axes, sums, decisions
by data) makes no kernel: the user writes that in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, cast

import numpy as np

from openqnn.ops.custom import CustomOp

_BINARY: Final = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "(float({}) / {})",
    "true_divide": "(float({}) / {})", "maximum": "std::fmax({}, {})", "minimum": "std::fmin({}, {})",
    "power": "std::pow({}, {})", "float_power": "std::pow({}, {})", "arctan2": "std::atan2({}, {})",
    "hypot": "std::hypot({}, {})", "fmod": "std::fmod({}, {})", "less": "({} < {})", "greater": "({} > {})",
    "less_equal": "({} <= {})", "greater_equal": "({} >= {})", "equal": "({} == {})",
    "not_equal": "({} != {})", "fmax": "std::fmax({}, {})", "fmin": "std::fmin({}, {})",
    "logical_and": "({} && {})", "logical_or": "({} || {})", "logical_xor": "(!{} != !{})",
}  # fmt: skip
_TRUTHS: Final = {"less", "greater", "less_equal", "greater_equal", "equal", "not_equal", "isnan"}
# Python's operators between truths; of numbers they would be something else.
_OF_TRUTHS: Final = {
    "bitwise_and": "({} && {})", "bitwise_or": "({} || {})", "bitwise_xor": "({} != {})", "invert": "(!{})",
}  # fmt: skip
_UNARY: Final = {
    "negative": "(-{})", "positive": "{}", "absolute": "std::fabs({})", "fabs": "std::fabs({})",
    "square": "oppackage_square({})", "sign": "oppackage_sign({})", "isnan": "std::isnan({})",
    "logical_not": "(!{})", "erf": "std::erf({})", "expit": "(1.0f / (1.0f + std::exp(-{})))",
    "reciprocal": "(1.0f / {})", "rint": "std::nearbyint({})",
    **{name: f"std::{name}({{}})" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
        "cosh", "tanh", "floor", "ceil", "trunc",
    )},
    **{f"arc{name}": f"std::a{name}({{}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip


WHOLE: Final = "@"  # in an element's code: the result whose element is computed
MOST_CHOICES: Final = 32


class Untraceable(Exception):
    """The function does what no expression of one element says."""


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A number that is not known yet, as C++."""

    __array_priority__ = 1000

    def __init__(self, code: str, name: str = "", *, is_truth: bool = False) -> None:
        self.code, self._name, self.is_truth = code, name, is_truth

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Symbol:
        name = ufunc.__name__
        known: Mapping[str, str] = _UNARY if len(inputs) == 1 else _BINARY
        if name in _OF_TRUTHS and all(_is_truth(each) for each in inputs):
            known = _OF_TRUTHS
        if method != "__call__" or name not in known or more:
            raise Untraceable(f"np.{name}{'' if method == '__call__' else '.' + method}")
        is_truth = name in _TRUTHS or known is _OF_TRUTHS or name.startswith("logical")
        return Symbol(known[name].format(*map(_code, inputs)), is_truth=is_truth)

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

    def __iter__(self) -> Iterator[Any]:
        raise Untraceable("a loop over the elements of an array")

    def __len__(self) -> int:
        raise Untraceable("the length of an array")

    def clip(self, low: Any, high: Any) -> Symbol:
        return cast("Symbol", np.clip(cast("Any", self), low, high))

    def astype(self, dtype: Any) -> Symbol:
        kinds = {"float32": "float", "int32": "int32_t"}
        if np.dtype(dtype).name not in kinds:
            raise Untraceable(f"astype({dtype})")
        return Symbol(f"{kinds[np.dtype(dtype).name]}({self.code})")

    def __bool__(self) -> bool:
        raise Untraceable("a decision by data")

    def __float__(self) -> float:
        raise Untraceable("float(...)")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Untraceable("a conversion to an array")


def _is_truth(value: Any) -> bool:
    return value.is_truth if isinstance(value, Symbol) else isinstance(value, bool | np.bool_)


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
        cases = [(conditions, _loops(op, _traced(op, chosen))) for conditions, chosen in _cases(op)]
    except Untraceable as e:
        return "", f"its function has {e}, which is not computed element by element"
    except Exception as e:
        return "", f"its function cannot be followed: {type(e).__name__}: {e}"
    if all(lines == cases[0][1] for _, lines in cases):
        return "\n".join(cases[0][1]), ""
    made = list[str]()
    for i, (conditions, lines) in enumerate(cases):
        made += [f"{'} else ' if i else ''}if ({' && '.join(conditions)}) {{"]
        made += [f"  {line}" for line in lines]
    return "\n".join([*made, "}"]), ""


def _cases(op: CustomOp) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Every way to take the function's decisions: conditions in C++, and what parameters and inputs are then.

    Members of enumerations, truths, and what may be left out decide what a function does.
    """
    choices = dict(_choices(op))
    if np.prod([len(each) for each in choices.values()], initial=1) > MOST_CHOICES:
        raise Untraceable(f"more than {MOST_CHOICES} ways to choose {', '.join(choices)}")
    for taken in product(*choices.values()):
        yield [c for c, _ in taken], dict(zip(choices, (value for _, value in taken), strict=True))


def _choices(op: CustomOp) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    for d in op.declared.inputs:
        if not d.mandatory and not d.repeated:
            name = identifier(d.name)
            yield d.name, [(f"!{name}.given()", None), (f"{name}.given()", _element(name))]
    for d in op.declared.params:
        name = identifier(d.name)
        if d.enumeration:
            yield d.name, [(f"{name} == {i}", member) for i, member in enumerate(d.enumeration)]
        elif "BOOL" in d.datatypes[0] and d.is_scalar:
            yield d.name, [(f"{name} == 0", False), (f"{name} != 0", True)]


def _element(name: str, array: str = "") -> Symbol:
    return Symbol(f"{name}.at(i, {WHOLE})", array)


def _loops(op: CustomOp, results: Sequence[Any]) -> list[str]:
    lines = list[str]()
    for operand, result in zip(op.declared.outputs, results, strict=True):
        out = identifier(operand.name)
        lines += [f"for (size_t i = 0; i < {out}.size(); ++i) {{"]
        lines += [f"  {out}[i] = {_code(result).replace(WHOLE, out)};", "}"]
    return lines


def _traced(op: CustomOp, chosen: Mapping[str, Any]) -> list[Any]:
    assert op.function is not None
    if any(d.repeated for d in op.declared.inputs):
        raise Untraceable("inputs that are repeated")
    inputs = [
        chosen[d.name] if d.name in chosen else _element(identifier(d.name)) for d in op.declared.inputs
    ]
    params: dict[str, Any] = {}
    for d in op.declared.params:
        name = identifier(d.name)
        if not d.mandatory and not d.default:
            raise Untraceable(f"a parameter '{d.name}' that may be left out and has no default")
        params[d.name] = chosen.get(d.name, Symbol(name) if d.is_scalar else _element(name, name))
    made = op.function(*inputs, **params)
    results = list(cast("Sequence[Any]", made)) if isinstance(made, list | tuple) else [made]
    if len(results) != len(op.declared.outputs):
        raise Untraceable(f"{len(results)} results of {len(op.declared.outputs)}")
    return results


def identifier(name: str) -> str:
    """An operand's name as one of C++: in[0] is in_0."""
    return name.replace("[", "_").replace("]", "")
