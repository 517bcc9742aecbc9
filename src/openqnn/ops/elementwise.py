"""Ops that work on each element by itself: arithmetic, comparison, logic, activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from openqnn.ir import DType, Node, Shape
from openqnn.ops.identities import SameAs, again, always, neutral, twice
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import (
    ABSENT,
    FREE,
    INDEX,
    Kind,
    Lower,
    Moves,
    Operand,
    OpSchema,
    Param,
    Result,
    f32,
    flag,
    op,
    register,
    result,
    tensor,
)
from openqnn.ops.shape_rules import broadcast, same

BOOL = DType.BOOL_8


def as_onnx(kind: str, **attrs: Any) -> Lower:
    """The ONNX op of that name on the same inputs."""
    return lambda n, b, x: b.op(kind, *x, **attrs)


def unary(
    name: str,
    how: str | Lower,
    doc: str,
    dtype: DType | int = 0,
    output_range: tuple[float, float] | None = None,
    clips: bool = False,
    same_as: SameAs | None = None,
    kind: Kind = Kind.OTHER,
) -> OpSchema:
    """A row: one input, one output of the same shape and, unless said otherwise, type."""
    lower = as_onnx(how) if isinstance(how, str) else how
    operands, outs = (Operand(name="in0"),), (Result(dtype, name="out0"),)
    schema = OpSchema(name, doc, operands, outs, (), same, lower, moves=Moves.ELEMENTWISE)
    return register(replace(schema, output_range=output_range, clips=clips, same_as=same_as, kind=kind))


def binary(
    name: str,
    how: str | Lower,
    doc: str,
    dtype: DType | int = 0,
    same_as: SameAs | None = None,
    commutes: bool = False,
    kind: Kind = Kind.OTHER,
) -> OpSchema:
    """A row: two inputs that broadcast."""
    lower = as_onnx(how) if isinstance(how, str) else how
    operands = (Operand(name="in0"), Operand(name="in1"))
    outs = (Result(dtype, name="out0"),)
    schema = OpSchema(name, doc, operands, outs, (), broadcast, lower, moves=Moves.ELEMENTWISE)
    return register(replace(schema, same_as=same_as, commutes=commutes, kind=kind))


def scalar_like(n: Node, b: Body, value: float) -> str:
    """A constant of the type of input 0."""
    return b.const(value, n.x(0).dtype.numpy)


# -- one input -----------------------------------------------------------------------------------------------

Abs = unary("ElementWiseAbs", "Abs", "Absolute value.", same_as=again)
Asin = unary("ElementWiseAsin", "Asin", "Arc sine.")
Atan = unary("ElementWiseAtan", "Atan", "Arc tangent.")
Ceil = unary("ElementWiseCeil", "Ceil", "Smallest integer not below.", same_as=again)
Cos = unary("ElementWiseCos", "Cos", "Cosine.", kind=Kind.WAVE)
Exp = unary("ElementWiseExp", "Exp", "e to the power of x.")
Floor = unary("ElementWiseFloor", "Floor", "Largest integer not above.", same_as=again)
Log = unary("ElementWiseLog", "Log", "Natural logarithm.", kind=Kind.LOGARITHM)
Neg = unary("ElementWiseNeg", "Neg", "Negation.", same_as=twice, kind=Kind.NEGATION)
Not = unary("ElementWiseNot", "Not", "Logical negation.", same_as=twice)
Round = unary("ElementWiseRound", "Round", "Nearest integer, halves to even.", same_as=again)
Rsqrt = unary(
    "ElementWiseRsqrt",
    lambda n, b, x: b.op("Reciprocal", b.op("Sqrt", x[0])),
    "Reciprocal of the square root.",
    kind=Kind.ROOT,
)
Sign = unary("ElementWiseSign", "Sign", "-1, 0 or 1.")
Sin = unary("ElementWiseSin", "Sin", "Sine.", kind=Kind.WAVE)
SquareRoot = unary("ElementWiseSquareRoot", "Sqrt", "Square root.", kind=Kind.ROOT)
IsNan = unary("IsNan", "IsNaN", "True where x is not a number.", dtype=BOOL)
Relu = unary("Relu", "Relu", "Zero where negative.", clips=True, same_as=again)
Sigmoid = unary(
    "Sigmoid",
    "Sigmoid",
    "1 / (1 + e^-x).",
    output_range=(0.0, 1.0),
)
Tanh = unary("Tanh", "Tanh", "Hyperbolic tangent.", output_range=(-1.0, 1.0))
HardSwish = unary(
    "HardSwish",
    lambda n, b, x: b.op("Mul", x[0], b.op("HardSigmoid", x[0], alpha=1 / 6, beta=0.5)),
    "x * clip(x + 3, 0, 6) / 6.",
)


def clip(low: float, high: float) -> Lower:
    return lambda n, b, x: b.op("Clip", x[0], scalar_like(n, b, low), scalar_like(n, b, high))


Relu1 = unary("Relu1", clip(-1, 1), "Clip to [-1, 1].", output_range=(-1.0, 1.0), clips=True)
Relu6 = unary("Relu6", clip(0, 6), "Clip to [0, 6].", output_range=(0.0, 6.0), clips=True, same_as=again)


def gelu_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    return (
        b.op("Gelu", x[0], domain="com.microsoft") if n.x(0).dtype is DType.FLOAT_32 else b.op("Gelu", x[0])
    )


Gelu = unary(
    "Gelu",
    gelu_onnx,
    "x times the normal distribution function of x (erf form).",
)

# -- two inputs ----------------------------------------------------------------------------------------------

Add = binary(
    "ElementWiseAdd",
    "Add",
    "a + b.",
    same_as=neutral(0, first_too=True),
    kind=Kind.SUM,
)
And = binary("ElementWiseAnd", "And", "Logical and.", BOOL)
Divide = binary(
    "ElementWiseDivide",
    "Div",
    "a / b.",
    same_as=neutral(1),
    kind=Kind.QUOTIENT,
)
Equal = binary("ElementWiseEqual", "Equal", "a == b.", BOOL)
FloorDiv = binary(
    "ElementWiseFloorDiv",
    lambda n, b, x: floor_div(n, b, x),
    "floor(a / b).",
)
Fmod = binary(
    "ElementWiseFmod", lambda n, b, x: fmod(n, b, x), "Remainder of the division with the sign of b."
)
Greater = binary("ElementWiseGreater", "Greater", "a > b.", BOOL)
GreaterEqual = binary("ElementWiseGreaterEqual", "GreaterOrEqual", "a >= b.", BOOL)
Less = binary("ElementWiseLess", "Less", "a < b.", BOOL)
LessEqual = binary("ElementWiseLessEqual", "LessOrEqual", "a <= b.", BOOL)
Maximum = binary("ElementWiseMaximum", "Max", "The larger of a and b.", kind=Kind.EXTREME)
Minimum = binary("ElementWiseMinimum", "Min", "The smaller of a and b.", kind=Kind.EXTREME)
Mod = binary("ElementWiseMod", "Mod", "Integer remainder with the sign of b.")
Multiply = binary(
    "ElementWiseMultiply",
    "Mul",
    "a * b.",
    same_as=neutral(1, first_too=True),
    commutes=True,
    kind=Kind.PRODUCT,
)
NotEqual = binary("ElementWiseNotEqual", lambda n, b, x: b.op("Not", b.op("Equal", *x)), "a != b.", BOOL)
Or = binary("ElementWiseOr", "Or", "Logical or.", BOOL)
Power = binary("ElementWisePower", "Pow", "a to the power of b.", same_as=neutral(1), kind=Kind.POWER)
SquaredDifference = binary(
    "ElementWiseSquaredDifference",
    lambda n, b, x: squared_difference(b, x),
    "(a - b) squared.",
)
Subtract = binary(
    "ElementWiseSubtract",
    "Sub",
    "a - b.",
    same_as=neutral(0),
    kind=Kind.DIFFERENCE,
)
Xor = binary("ElementWiseXor", "Xor", "Logical exclusive or.", BOOL)


def floor_div(n: Node, b: Body, x: Sequence[str]) -> str:
    """Integers: ONNX divides towards zero, so one less where the remainder is not 0 and the signs differ."""
    if n.x(0).dtype.is_float:
        return b.op("Floor", b.op("Div", *x))
    rest = b.op("Mod", *x)
    return b.op("Div", b.op("Sub", x[0], rest), x[1])


def fmod(n: Node, b: Body, x: Sequence[str]) -> str:
    if not n.x(0).dtype.is_float:
        return b.op("Mod", *x)
    return b.op("Sub", x[0], b.op("Mul", b.op("Floor", b.op("Div", *x)), x[1]))


def squared_difference(b: Body, x: Sequence[str]) -> str:
    d = b.op("Sub", *x)
    return b.op("Mul", d, d)


# -- activations with parameters, and the rest ---------------------------------------------------------------


def softplus(n: Node, b: Body, x: Sequence[str]) -> str:
    beta, threshold = n.float("beta", 1.0), n.float("threshold", 20.0)
    scaled = x[0] if beta == 1 else b.op("Mul", x[0], scalar_like(n, b, beta))
    soft = b.op("Softplus", scaled)
    soft = soft if beta == 1 else b.op("Div", soft, scalar_like(n, b, beta))
    return b.op("Where", b.op("Greater", scaled, scalar_like(n, b, threshold)), x[0], soft)


def relu_min_max(n: Node, b: Body, x: Sequence[str]) -> str:
    dtype = n.x(0).dtype.numpy
    bounds = [n.float("min_value"), n.float("max_value")]
    if n.x(0).dtype.is_integer:
        info = np.iinfo(dtype.name)
        bounds = [float(np.clip(v, info.min, info.max)) for v in bounds]
    return b.op("Clip", x[0], *(b.const(np.asarray(v).astype(dtype)) for v in bounds))


def is_inf(n: Node, b: Body, x: Sequence[str]) -> str:
    negative, positive = (int(n.flag(f"detect_{which}")) for which in ("negative", "positive"))
    return b.op("IsInf", x[0], detect_negative=negative, detect_positive=positive)


def logit(n: Node, b: Body, x: Sequence[str]) -> str:
    return b.op("Log", b.op("Div", x[0], b.op("Sub", scalar_like(n, b, 1), x[0])))


@op
class Elu:
    """x where positive, alpha * (e^x - 1) elsewhere."""

    in0 = tensor()
    out0 = result()
    alpha = f32(default=1.0)
    infer = same
    lower: Lower = lambda n, b, x: b.op("Elu", x[0], alpha=n.float("alpha", 1.0))
    moves = Moves.ELEMENTWISE


@op
class ElementWiseSoftplus:
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""

    in0 = tensor()
    out0 = result()
    beta = f32(default=1.0)
    threshold = f32(default=20.0)
    infer = same
    lower = softplus
    moves = Moves.ELEMENTWISE


@op
class ReluMinMax:
    """Clip to [min_value, max_value]."""

    in0 = tensor()
    out0 = result()
    min_value = f32()
    max_value = f32()
    infer = same
    lower = relu_min_max
    moves = Moves.ELEMENTWISE
    same_as = again
    clips = True


@op
class IsInf:
    """True where x is infinite; each sign can be left out."""

    in0 = tensor()
    out0 = result(BOOL)
    detect_negative = flag(True)
    detect_positive = flag(True)
    infer = same
    lower = is_inf
    moves = Moves.ELEMENTWISE


@op
class Logit:
    """log(x / (1 - x))."""

    in0 = tensor()
    out0 = result()
    infer = same
    lower = logit
    moves = Moves.ELEMENTWISE


@op
class Prelu:
    """x where positive, alpha * x elsewhere; alpha broadcasts."""

    in0 = tensor()
    alpha = tensor()
    out0 = result()
    infer = same
    lower = as_onnx("PRelu")
    moves = Moves.ELEMENTWISE


@op
class ElementWiseSelect:
    """b where the condition holds, c elsewhere; all three broadcast."""

    in0 = tensor(dtype=BOOL)
    in1 = tensor()
    in2 = tensor()
    out0 = result(1)
    infer = broadcast
    lower = as_onnx("Where")
    moves = Moves.ELEMENTWISE
    kind = Kind.CHOICE


@op
class Cast:
    """Changes the type and keeps the numbers; floats are truncated, stored integers taken as they are."""

    in0 = tensor()
    out0 = result(FREE)
    infer = same
    lower: Lower = lambda n, b, x: b.cast(x[0], n.out.dtype.numpy)
    moves = Moves.ELEMENTWISE
    same_as = always
    on_stored = True


# -- generic forms: the operation is a parameter -------------------------------------------------------------


def _generic(table: dict[str, OpSchema | Lower]) -> Lower:
    """Lowers as the op that `operation` names; that op reads the same node."""

    def lower(n: Node, b: Body, x: Sequence[str]) -> str | Sequence[str]:
        found = table[n.enum("operation")]
        specific = found.lower if isinstance(found, OpSchema) else found
        assert specific is not None
        return specific(n, b, x)

    return lower


def _operation(table: dict[str, OpSchema | Lower]) -> Param:
    """The parameter that selects; QNN numbers the members in alphabetical order."""
    return Param(DType.UINT_32, members=tuple((member, code) for code, member in enumerate(table)))


_UNARY: dict[str, OpSchema | Lower] = {
    "ABS": Abs, "ASIN": Asin, "ATAN": Atan, "CEIL": Ceil, "COS": Cos, "EXP": Exp, "FLOOR": Floor, "LOG": Log,
    "NEG": Neg, "NOT": Not, "RECIPROCAL": as_onnx("Reciprocal"), "ROUND": Round, "RSQRT": Rsqrt, "SIGN": Sign,
    "SIN": Sin, "SQRT": SquareRoot,
}  # fmt: skip
_BINARY: dict[str, OpSchema | Lower] = {
    "ADD": Add, "AND": And, "DIVIDE": Divide, "EQUAL": Equal, "FLOOR_DIV": FloorDiv, "FMOD": Fmod,
    "GREATER": Greater, "GREATER_EQUAL": GreaterEqual, "LESS": Less, "LESS_EQUAL": LessEqual,
    "MAXIMUM": Maximum, "MINIMUM": Minimum, "MOD": Mod, "MULTIPLY": Multiply, "NOT_EQUAL": NotEqual,
    "OR": Or, "POWER": Power,
    "SQUARED_DIFFERENCE": SquaredDifference, "SUBTRACT": Subtract, "XOR": Xor,
}  # fmt: skip


def hard_sigmoid(n: Node, b: Body, x: Sequence[str]) -> str:
    return b.op("HardSigmoid", x[0], alpha=n.float("alpha", 0.2), beta=n.float("beta", 0.5))


_NEURON: dict[str, OpSchema | Lower] = {
    "ELU": Elu, "GELU": Gelu, "HARD_SIGMOID": hard_sigmoid, "HARD_SWISH": HardSwish, "RELU": Relu,
    "RELU_MIN_MAX": ReluMinMax, "SIGMOID": Sigmoid, "SOFTPLUS": ElementWiseSoftplus, "TANH": Tanh,
}  # fmt: skip


def stands_for(n: Node) -> str:
    """The op that a generic node computes, or what it calls its operation where no op has that alone; others
    stand for themselves."""
    table = {"ElementWiseUnary": _UNARY, "ElementWiseBinary": _BINARY, "ElementWiseNeuron": _NEURON}.get(n.op)
    if table is None:
        return n.op
    found = table[n.enum("operation")]
    return found.name if isinstance(found, OpSchema) else n.enum("operation")


@op
class ElementWiseUnary:
    """The one-input operation that `operation` names."""

    in0 = tensor()
    out0 = result()
    operation = _operation(_UNARY)
    infer = same
    lower = _generic(_UNARY)
    moves = Moves.ELEMENTWISE


@op
class ElementWiseBinary:
    """The two-input operation that `operation` names; comparisons and logic give booleans."""

    in0 = tensor()
    in1 = tensor()
    out0 = result(FREE)
    operation = _operation(_BINARY)
    infer = broadcast
    lower = _generic(_BINARY)
    moves = Moves.ELEMENTWISE


@op
class ElementWiseNeuron:
    """The activation that `operation` names, with the parameters that it takes."""

    in0 = tensor()
    out0 = result()
    operation = _operation(_NEURON)
    alpha = f32(default=ABSENT)
    beta = f32(default=ABSENT)
    min_value = f32(default=ABSENT)
    max_value = f32(default=ABSENT)
    threshold = f32(default=ABSENT)
    infer = same
    lower = _generic(_NEURON)
    moves = Moves.ELEMENTWISE


def _as_first_choice(n: Node) -> list[Shape]:
    return [n.x(1).shape]


@op
class ElementWiseMux:
    """Picks one of the data inputs by index."""

    in0 = tensor(role=INDEX)
    in1 = tensor(variadic=True)
    out0 = result(1)
    infer = _as_first_choice
    why_not = "what it computes is not documented"
