"""Matrix products."""

from __future__ import annotations

import numpy as np

from tests.ops.database import Case, Given, case, f, w

CASES: list[Case] = [
    case("MatMul", f(2, 3, 4), f(2, 4, 5)),
    case("MatMul", f(3, 4), w(4, 5), w(5), label="bias"),
    case(
        "MatMul",
        f(2, 1, 4, 3),
        f(3, 5, 4),
        transpose_in0=True,
        transpose_in1=True,
        label="transposed_broadcast",
    ),
    case("MatMul", f(1, 2, 6, 4), f(1, 2, 6, 4), transpose_in1=True, label="attention"),
    case(
        "MatMul",
        Given(f(3, 4).data.astype(np.float16)),
        Given(f(4, 5).data.astype(np.float16)),
        label="half",
        xfail="the vendor's CPU library takes no float16",
        tolerance=1e-2,
        expect=lambda a, b: a.astype(np.float32) @ b.astype(np.float32),
    ),
    case("FullyConnected", f(2, 6), w(4, 6), w(4)),
    case("FullyConnected", f(2, 6), w(4, 6), label="no_bias"),
    case("FullyConnected", f(2, 2, 3, 2), w(5, 12), w(5), label="flatten"),
    case("FullyConnected", f(2, 3, 6), w(4, 6), w(4), keep_dims=True, label="keep_dims"),
]
