"""Reductions."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType
from tests.ops.database import Case, Given, case, f, given, i

HALF = "the vendor's CPU library takes no float16"
RANK_0 = "it does not take shape [1] for a single number, and there is no rank 0"
REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare")


def half(*shape: int) -> Given:
    return Given(f(*shape).data.astype(np.float16))


CASES: list[Case] = [
    *(case(op, f(2, 3, 4, 5), axes=(1, 3), label="drop") for op in REDUCTIONS),
    *(case(op, f(2, 3, 4), axes=(2,), keep_dims=True, label="keep") for op in REDUCTIONS),
    *(case(op, f(2, 3), axes=(0, 1), label="all") for op in REDUCTIONS[:-1]),
    case("ReduceSumSquare", f(2, 3), axes=(0, 1), label="all", xfail=RANK_0, expect=lambda x: (x * x).sum()),
    case("ReduceSum", i(2, 3, 4, limit=9, low=-9), axes=(0,), label="int"),
    case("ReduceMin", i(2, 3, 4, limit=9, low=-9), axes=(1,), label="int"),
    case("ReduceSumSquare", i(2, 3, 4, limit=9, low=-9), axes=(1, 2), label="int"),
    case(
        "ReduceMean",
        half(2, 8),
        axes=(1,),
        xfail=HALF,
        label="half",
        tolerance=1e-2,
        expect=lambda x: x.astype(np.float32).mean(1),
    ),
    case("Moments", f(2, 3, 4, 5), axes=(1, 2), keep_dims=True),
    case("Moments", f(2, 3, 4), axes=(0, 2), keep_dims=False, label="drop"),
    case(
        "Moments",
        f(2, 3),
        axes=(0, 1),
        keep_dims=False,
        label="all",
        xfail=RANK_0,
        expect=lambda x: (x.mean(), x.var()),
    ),
    case("Argmax", f(2, 3, 4), axis=1),
    case("Argmax", given([[1, 3, 3], [2, 2, 1]]), axis=1, keep_dims=True, label="first_of_equals"),
    case("Argmax", i(3, 4, limit=50), axis=0, label="int"),
    case("Argmax", f(6), axis=0, label="all"),
    case("Argmin", f(2, 3, 4), axis=2),
    case("Argmin", f(2, 3, 4), axis=0, keep_dims=True, label="keep"),
    case("Argmin", i(3, 4, limit=50), axis=1, label="int"),
    case("TopK", f(2, 3, 9), k=4),
    case("TopK", f(9), k=3, largest=False, label="smallest"),
    case("TopK", given([[5, 1, 4, 2]], np.int32), k=2, label="int"),
    case("TopK", f(2, 9), k=3, dtypes=(DType.FLOAT_32, DType.UINT_32), label="unsigned_positions"),
    case("CumulativeSum", f(2, 3, 4), axis=1),
    case("CumulativeSum", f(2, 5), axis=1, exclusive=True, label="exclusive"),
    case("CumulativeSum", f(2, 5), axis=0, reverse=True, label="reverse"),
    case("CumulativeSum", i(2, 5, limit=9), axis=1, exclusive=True, reverse=True, label="int"),
]
