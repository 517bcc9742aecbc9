"""Gathers, scatters, NonZero."""

import numpy as np

from openqnn.ir import Encoding
from tests.ops.database import boolean, case, const, f, fixed, given, i, w

INT = np.int32
HALVES = Encoding.per_tensor(0.5, -3)
ROWS = ((0, 0), (1, 2))  # coordinates of the data below that are used as indices


def narrow(data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    np.put_along_axis(out := data.copy(), indices, updates, axis=1)
    return out


CASES = [
    case("Gather", f(4, 5, 3), i(2, limit=4), axis=0),
    case("Gather", f(4, 5, 3), const([[0, 4], [2, 2]], INT), axis=1),
    case("Gather", i(4, 5, limit=99), i(3, limit=5), axis=1, label="int32"),
    case("Gather", boolean(4, 5), i(3, limit=5), axis=1, label="bool"),
    case(
        "Gather",
        given(np.arange(8).reshape(2, 4), np.float16),
        i(3, limit=4),
        axis=1,
        label="half",
        xfail="libQnnCpu has no float16",
        expect=lambda x, k: np.take(x, k, 1),
    ),
    case("Gather", fixed([[1, 2], [3, 4]], 0.5, -3), i(3, limit=2), axis=0, encoding=HALVES, label="fixed"),
    case("GatherElements", f(3, 4), i(3, 2, limit=4), axis=1),
    case("GatherElements", f(3, 4), i(5, 4, limit=3), axis=0),
    case("GatherElements", i(3, 4, limit=50), i(2, 4, limit=3), label="int32"),
    case("GatherNd", f(3, 4, 5), const(ROWS, INT), batch_dims=0),
    case("GatherNd", f(2, 4, 5), i(2, 3, 1, limit=4), batch_dims=1),
    case("GatherNd", i(3, 4, limit=50), given([[2, 3], [0, 1]], INT), label="int32"),
    case("ScatterElements", f(3, 4), given([[1, 0, 2, 0]], INT), f(1, 4)),
    *(
        case(
            "ScatterElements",
            f(3, 4),
            given([[1, 0, 2, 3], [0, 2, 1, 3]], INT),
            f(2, 4),
            axis=1,
            reduction=r,
            label=r,
        )
        for r in ("ADD", "MUL", "MAX")
    ),
    case(
        "ScatterElements",
        f(3, 4),
        given([[1], [0], [3]], INT),
        f(3, 1),
        axis=1,
        label="narrow",
        expect=narrow,
        xfail="libQnnCpu takes indices that are shorter along the axis to be as long as the data",
    ),
    case("ScatterElements", i(3, 4, limit=9), given([[1, 0, 2, 0]], INT), i(1, 4, limit=9), label="int32"),
    case("ScatterNd", f(3, 4), const(ROWS, INT), f(2)),
    case("ScatterNd", f(3, 4, 2), const(ROWS, INT), f(2, 2), reduction="ADD"),
    case("ScatterNd", f(3, 4), given([[1], [1]], INT), f(2, 4), reduction="MUL"),
    case("ScatterNd", w(3, 4), const(ROWS, INT), f(2), label="static"),
    case("ScatterNd", i(3, 4, limit=9), const(ROWS, INT), i(2, limit=9), label="int32"),
    case("ScatterNd", boolean(3, 4), const(ROWS, INT), boolean(2), label="bool"),
    case("NonZero", given([[1, 0, 2], [0, 0, -3]])),
    case("NonZero", given([[1, 0, 2], [0, 4, 3]], INT), label="int32"),
    case(
        "ScatterNd",
        given(np.ones((3, 4)), np.float16),
        const(ROWS, INT),
        given([1, 2], np.float16),
        reduction="ADD",
        label="half",
        xfail="libQnnCpu has no float16",
        expect=lambda x, k, u: np.add(x, [[1, 0, 0, 0], [0, 0, 2, 0], [0] * 4]),
    ),
    case(
        "NonZero",
        given([[1, 0, 2], [0, 0, 3]]),
        shape=(5, 2),
        label="few",
        xfail="libQnnCpu wants a row for every element",
        expect=lambda x: np.array([[0, 0], [0, 2], [1, 2], [-1, -1], [-1, -1]]),
    ),
    case("NonZero", boolean(2, 3, 2), label="bool"),
]
