"""Activations that exporters write out: Gelu, HardSwish, HardSigmoid, Prelu, Relu6 and other clips."""

from __future__ import annotations

from math import inf

import numpy as np

from openqnn.ir import Value
from openqnn.ops import Builder
from openqnn.passes.edit import data_of
from openqnn.passes.patterns.terms import (
    ROOT_TWO,
    absolute,
    add,
    at_least,
    at_most,
    clip,
    erf,
    halved,
    maximum,
    minimum,
    mul,
    neg,
    over,
    rectified,
    relu,
    sub,
    tanh,
)
from openqnn.passes.rewrite import Any, Const, Either, Match, Number, Op, Rule, Term, op

x = Any("x")


def _spellings(term: Term) -> tuple[Op, ...]:
    """The roots that a term stands for."""
    if isinstance(term, Either):
        return tuple(root for option in term.options for root in _spellings(option))
    assert isinstance(term, Op)
    return (term,)


# -- Gelu -----------------------------------------------------------------------------------------------


def _half_product(bracket: Term) -> tuple[Op, ...]:
    """x / 2 * bracket, multiplied in any order."""
    return _spellings(halved(mul(x, bracket)) | mul(halved(x), bracket) | mul(x, halved(bracket)))


_TANH_INNER = add(x, mul(mul(mul(x, x), x), Number(0.044715))) | mul(
    x, add(Number(1), mul(mul(x, x), Number(0.044715)))
)
_TANH_ARGUMENT = mul(_TANH_INNER, Number((2 / np.pi) ** 0.5))

GELU = Rule(
    "gelu",
    _half_product(add(erf(over(x, ROOT_TWO)), Number(1))),
    rewrite=lambda m, b: b.gelu(m["x"]),
)
GELU_BY_TANH = Rule(
    "gelu",
    _half_product(add(tanh(_TANH_ARGUMENT), Number(1))),
    rewrite=lambda m, b: b.gelu(m["x"]),
    check=lambda m: "the tanh form differs from QNN's erf form by up to 5e-4, so it stays as it is",
)
GELU_BY_SIGMOID = Rule(
    "gelu",
    (mul(x, op("Sigmoid", mul(x, Number(1.702)))),),
    rewrite=lambda m, b: b.gelu(m["x"]),
    check=lambda m: "x * sigmoid(1.702 x) differs from QNN's erf form by up to 2e-2, so it stays as it is",
)

# -- clips ----------------------------------------------------------------------------------------------


def _clip_ends(m: Match) -> tuple[float, float]:
    low = m.number("low") if "low" in m.values else 0.0
    return low, m.number("high")


def _clipped(m: Match, b: Builder) -> Value:
    low, high = _clip_ends(m)
    if (low, high) == (0, 6):
        return b.relu6(m["x"])
    return b.clip(m["x"], low, high)


def _range(m: Match) -> str:
    low, high = _clip_ends(m)
    if not m["x"].dtype.is_float:
        return f"the data is {m['x'].dtype.label}: bounds are floats"
    if m.root.out.shape != m["x"].shape:
        return "a bound widens the data"
    return "" if -inf < low <= high < inf else f"{low} to {high} is no range"


CLIP = Rule(
    "clip",
    (
        *_spellings(at_most(at_least(x, None), None)),
        *_spellings(at_least(at_most(x, None), None)),
        minimum(rectified(x), Number(name="high")),
    ),
    rewrite=_clipped,
    check=_range,
)


def _why_no_relu(m: Match) -> str:
    if m["x"].dtype.is_integer and not m["x"].dtype.signed:
        return f"the data is {m['x'].dtype.label}, which Relu does not take"
    return "" if m.root.out.shape == m["x"].shape else "the zero widens the data"


RELU = Rule(
    "relu",
    (maximum(x, Number(0)),),
    rewrite=lambda m, b: b.relu(m["x"]),
    check=_why_no_relu,
)

# -- HardSigmoid and HardSwish --------------------------------------------------------------------------


def _relu6(a: Term) -> Term:
    clips_to_six = lambda n: (n.float("min_value"), n.float("max_value")) == (0, 6)
    return op("Relu6", a) | clip(a, where=clips_to_six)


_RAMP = _relu6(add(x, Number(3)))  # 0 up to -3, 6 from 3 on


def _hard_sigmoid(a: Term) -> Op:
    return op("ElementWiseNeuron", a, where=lambda n: n.enum("operation") == "HARD_SIGMOID", name="sigmoid")


def _is_swish(m: Match) -> str:
    """The slope that makes x * hard_sigmoid(x) a HardSwish."""
    node = m.named.get("sigmoid")
    if node is None or (
        np.isclose(node.float("alpha"), 1 / 6, 1e-4) and np.isclose(node.float("beta"), 0.5, 1e-6)
    ):
        return ""
    return (
        f"HardSwish has slope 1/6 and 1/2 at 0, this has {node.float('alpha'):g} and {node.float('beta'):g}"
    )


HARD_SIGMOID = Rule(
    "hard_sigmoid",
    _spellings(over(_RAMP, 6)),
    rewrite=lambda m, b: b.hard_sigmoid(m["x"], 1 / 6, 0.5),
)
HARD_SWISH = Rule(
    "hard_swish",
    _spellings(mul(x, _hard_sigmoid(x)) | over(mul(x, _RAMP), 6) | mul(over(x, 6), _RAMP)),
    rewrite=lambda m, b: b("HardSwish", m["x"]),
    check=_is_swish,
)

# -- Prelu ----------------------------------------------------------------------------------------------

_slope = Const("slope")
_MINUS = relu(neg(x))


def _prelu(factor: float) -> Rule:
    """Spellings whose constant is the slope times a factor."""
    roots = {
        1.0: (
            sub(relu(x), mul(_slope, _MINUS)),
            add(relu(x), neg(mul(_slope, _MINUS))),
            add(relu(x), mul(_slope, minimum(x, Number(0)))),
            add(relu(x), mul(_slope, halved(sub(x, absolute(x))))),
            add(relu(x), halved(mul(_slope, sub(x, absolute(x))))),
        ),
        -1.0: (add(relu(x), mul(_slope, _MINUS)),),
        2.0: (add(relu(x), mul(_slope, sub(x, absolute(x)))),),
    }[factor]
    return Rule("prelu", roots, lambda m, b: _with_slope(m, b, factor), check=_slope_fits)


def _with_slope(m: Match, b: Builder, factor: float) -> Value:
    slope = m["slope"]
    data = data_of(slope)
    value = (
        slope if factor == 1 else b.const(data * np.asarray(factor, data.dtype), name=slope.name + ".slope")
    )
    return b.prelu(m["x"], value)


def _slope_fits(m: Match) -> str:
    return "" if m.root.out.shape == m["x"].shape else "the slope widens the data"


def _is_leaky(m: Match) -> str:
    slope = m.number("slope")
    return _slope_fits(m) if 0 <= slope <= 1 else f"max(x, {slope:g} x) is no leaky relu"


LEAKY = Rule(
    "prelu",
    (maximum(x, mul(x, Number(name="slope"))),),
    rewrite=lambda m, b: b.prelu(m["x"], m["slope"]),
    check=_is_leaky,
)

PRELUS = (_prelu(1.0), _prelu(2.0), _prelu(-1.0), LEAKY)
RULES = (CLIP, RELU, GELU, GELU_BY_TANH, GELU_BY_SIGMOID, HARD_SIGMOID, HARD_SWISH, *PRELUS)
