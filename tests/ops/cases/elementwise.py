"""Ops that work on each element by itself."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType
from tests.ops.database import Case, Given, boolean, case, const, f, given, i, w

BOOL = DType.BOOL_8
UNARY = ("Abs", "Atan", "Ceil", "Cos", "Exp", "Floor", "Neg", "Sign", "Sin")
BINARY = ("Add", "Divide", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract")
COMPARE = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")
LOGIC = ("And", "Or", "Xor")
SELECTED = ("ABS", "ATAN", "CEIL", "COS", "EXP", "FLOOR", "NEG", "ROUND", "SIGN", "SIN", "RECIPROCAL")
SELECTED_POSITIVE = ("LOG", "RSQRT", "SQRT")
PAIRED = (
    "ADD",
    "DIVIDE",
    "MAXIMUM",
    "MINIMUM",
    "MULTIPLY",
    "SQUARED_DIFFERENCE",
    "SUBTRACT",
    "FLOOR_DIV",
    "FMOD",
)
PAIRED_COMPARE = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")
SMALL = [[-2.5, -0.5, 0.5], [1.5, 2.5, 0.0]]
SIGNED_A, SIGNED_B = [7, -7, 7, -7, 6], [3, 3, -3, -3, 3]
HALF = "the vendor's CPU library takes no float16"


def half(*shape: int) -> Given:
    return Given(f(*shape).data.astype(np.float16))


def scalar() -> Given:
    return const([0.5])


CASES: list[Case] = [
    *(case(f"ElementWise{op}", f(2, 3, 4)) for op in UNARY),
    *(case(f"ElementWise{op}", i(2, 3, limit=9, low=-9), label="int") for op in ("Abs", "Neg", "Sign")),
    case("ElementWiseAsin", f(2, 3, low=-1, high=1)),
    case("ElementWiseLog", f(2, 3, low=0.1, high=5)),
    case("ElementWiseRsqrt", f(2, 3, low=0.1, high=5)),
    case("ElementWiseSquareRoot", f(2, 3, low=0.1, high=5)),
    case("ElementWiseRound", given(SMALL)),
    case("ElementWiseNot", boolean(2, 5)),
    case("IsNan", given([1.0, np.nan, np.inf])),
    case("IsInf", given([1.0, np.nan, np.inf, -np.inf])),
    case("IsInf", given([1.0, np.inf, -np.inf]), detect_negative=False, label="positive"),
    case("Relu", f(2, 3, 4, 5)),
    case("Relu", half(2, 3), xfail=HALF, expect=lambda x: np.maximum(x, 0), label="half"),
    case("Relu1", f(2, 9), xfail="Relu1 is unknown to it", expect=lambda x: np.clip(x, -1, 1)),
    case("Relu6", f(2, 9, low=-8, high=8)),
    case("ReluMinMax", f(2, 9), min_value=-0.5, max_value=1.0),
    case("ReluMinMax", i(2, 9, limit=20, low=-20), min_value=-3.0, max_value=5.0, label="int"),
    case("Sigmoid", f(2, 9, low=-6, high=6)),
    case("Tanh", f(2, 9)),
    case("HardSwish", f(2, 9, low=-5, high=5)),
    case("Gelu", f(2, 9)),
    case(
        "Gelu",
        half(2, 9),
        xfail=HALF,
        tolerance=1e-2,
        label="half",
        expect=lambda x: x * 0.5 * (1 + np.tanh(0.7978845 * (x + 0.044715 * x**3))),
    ),
    case("Elu", f(2, 9)),
    case("Elu", f(2, 9), alpha=0.5, label="alpha"),
    case("ElementWiseSoftplus", f(2, 9)),
    case("ElementWiseSoftplus", f(2, 9), beta=2.0, threshold=1.0, label="beta"),
    case("Logit", f(2, 9, low=0.1, high=0.9)),
    case("Prelu", f(2, 3, 4), w(4)),
    case("Prelu", f(2, 3, 4), scalar(), label="leaky"),
    case("Prelu", f(2, 3, 4), w(1, 1, 4), label="full_rank"),
    case(
        "Prelu",
        f(2, 3, 4),
        w(1, 3, 1),
        label="inner_axis",
        xfail="Prelu lays every alpha along the last axis",
        expect=lambda x, alpha: np.where(x > 0, x, alpha * x),
    ),
    *(case(f"ElementWise{op}", f(2, 3, 4), f(2, 3, 4, low=0.5)) for op in BINARY),
    *(case(f"ElementWise{op}", f(2, 1, 4), w(3, 1, low=0.5), label="broadcast") for op in BINARY),
    *(case(f"ElementWise{op}", i(2, 9, limit=9), i(2, 9, limit=9, low=1), label="int") for op in BINARY[:5]),
    case("ElementWiseDivide", given(SIGNED_A, np.int32), given(SIGNED_B, np.int32), label="signs"),
    *(case(f"ElementWise{op}", i(2, 9, limit=4), i(2, 9, limit=4)) for op in COMPARE),
    *(case(f"ElementWise{op}", f(2, 3), scalar(), label="float") for op in COMPARE),
    *(case(f"ElementWise{op}", boolean(2, 9), boolean(1, 9)) for op in LOGIC),
    case("ElementWiseFloorDiv", f(2, 9, low=-9, high=9), f(2, 9, low=0.5)),
    case("ElementWiseFmod", given([5.3, -5.3, 5.3, -5.3]), given([2, 2, -2, -2])),
    case("ElementWiseMod", given(SIGNED_A, np.int32), given(SIGNED_B, np.int32)),
    case("ElementWisePower", f(2, 9, low=0.1), f(2, 9)),
    case("ElementWisePower", f(2, 3, low=0.1), const([2.0]), label="square"),
    case("ElementWiseSelect", boolean(2, 9), f(2, 9), f(2, 9)),
    case("ElementWiseSelect", boolean(1, 9), f(2, 9), const([-1.0]), label="broadcast"),
    case("ElementWiseSelect", boolean(2, 9), i(2, 9, limit=9), i(2, 9, limit=9), label="int"),
    case("Cast", f(2, 9), dtype=DType.INT_32),
    case("Cast", i(2, 9, limit=9, low=-9), dtype=DType.FLOAT_32, label="to_float"),
    case("Cast", boolean(2, 9), dtype=DType.FLOAT_32, label="from_bool"),
    case("Cast", i(2, 9, limit=3), dtype=BOOL, label="to_bool"),
    *(case("ElementWiseUnary", f(2, 3, low=-0.9), operation=op, label=op.lower()) for op in SELECTED),
    *(case("ElementWiseUnary", f(2, 3, low=0.1), operation=op, label=op.lower()) for op in SELECTED_POSITIVE),
    case("ElementWiseUnary", f(2, 3, low=-1, high=1), operation="ASIN", label="asin"),
    case("ElementWiseUnary", boolean(2, 3), operation="NOT", label="not"),
    *(
        case(
            "ElementWiseBinary",
            f(2, 3),
            f(2, 3, low=0.5),
            operation=op,
            dtype=DType.FLOAT_32,
            label=op.lower(),
        )
        for op in PAIRED
    ),
    *(
        case("ElementWiseBinary", f(2, 3), scalar(), operation=op, dtype=BOOL, label=op.lower())
        for op in PAIRED_COMPARE
    ),
    *(
        case("ElementWiseBinary", boolean(2, 3), boolean(2, 3), operation=op, dtype=BOOL, label=op.lower())
        for op in ("AND", "OR", "XOR")
    ),
    case(
        "ElementWiseBinary", f(2, 3, low=0.1), f(2, 3), operation="POWER", dtype=DType.FLOAT_32, label="power"
    ),
    case(
        "ElementWiseBinary",
        given(SIGNED_A, np.int32),
        given(SIGNED_B, np.int32),
        operation="MOD",
        dtype=DType.INT_32,
        label="mod",
    ),
    *(
        case("ElementWiseNeuron", f(2, 9, low=-5, high=5), operation=op, label=op.lower())
        for op in ("GELU", "HARD_SWISH", "RELU", "SIGMOID", "TANH")
    ),
    case("ElementWiseNeuron", f(2, 9), operation="ELU", alpha=0.5, label="elu"),
    case("ElementWiseNeuron", f(2, 9), operation="HARD_SIGMOID", alpha=0.3, beta=0.4, label="hard_sigmoid"),
    case(
        "ElementWiseNeuron", f(2, 9), operation="RELU_MIN_MAX", min_value=-0.5, max_value=1.0, label="min_max"
    ),
    case("ElementWiseNeuron", f(2, 9), operation="SOFTPLUS", beta=2.0, threshold=5.0, label="softplus"),
]
