"""Random numbers, sparse tensors, control flow, deformable convolution."""

import numpy as np

from openqnn.ir import DType
from tests.ops.database import boolean, case, const, f, given, w

INT = np.int32
FLOAT = DType.FLOAT_32
NO_SPARSE = "libQnnCpu wants tensors that are marked as sparse"
SHAPE = const([40, 50], np.uint32)
SEED = given([3.5])
PLACES = const([[0, 1], [2, 3]], INT)


def random_case(op: str, least: float, most: float, like: np.ndarray, **params: float):
    """Compared by range, mean and deviation with numbers that are known to be right."""

    def seen(outputs: list[np.ndarray]) -> list[np.ndarray]:
        x = outputs[0].astype(float)
        inside, middle = x.min() >= least and x.max() <= most, abs(x.mean() - like.mean()) < 0.1
        return [np.array([inside, middle, abs(x.std() - like.std()) < 0.1])]

    return case(
        op,
        SHAPE,
        SEED,
        shape=(40, 50),
        dtype=FLOAT,
        valid=seen,
        expect=lambda *_: like,
        label="moments",
        xfail="libQnnCpu does not have it",
        **params,
    )


def dense(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 4), values.dtype)
    out[tuple(places.T)] = values
    return out


def plain_conv(
    x: np.ndarray, offset: np.ndarray, weight: np.ndarray, mask: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """All taps moved one row down: a convolution of the lower rows, with zeros below the last."""
    x = np.pad(x, ((0, 0), (0, 1), (0, 0), (0, 0)))[:, 1:]
    rows, columns = weight.shape[:2]
    high, wide = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    taps = [
        x[:, r : r + high, c : c + wide] * mask[..., r * columns + c, None] @ weight[r, c]
        for r in range(rows)
        for c in range(columns)
    ]
    return sum(taps) + bias


ONE_DOWN = given(np.tile([1, 0] * 4, (1, 4, 3, 1)))
random = np.random.default_rng(0)

CASES = [
    random_case("RandomNormalLike", -9.0, 9.0, random.normal(size=2000)),
    random_case("RandomUniformLike", 2.0, 4.0, random.uniform(2, 4, 2000), low=2.0, high=4.0),
    case("CreateSparse", PLACES, f(2), shape=(3, 4), xfail=NO_SPARSE, expect=dense),
    case(
        "GetSparseIndices",
        given([[0, 1.5], [2, 0]]),
        shape=(3, 2),
        dtype=DType.INT_32,
        xfail=NO_SPARSE,
        expect=lambda x: np.array([[0, 1], [1, 0], [-1, -1]]),
    ),
    case(
        "GetSparseValues",
        given([[0, 1.5], [2, 0]]),
        shape=(3,),
        xfail=NO_SPARSE,
        expect=lambda x: np.array([1.5, 2, 0], np.float32),
    ),
    case("SparseToDense", given([[0, 1.5], [2, 0]]), xfail=NO_SPARSE, expect=lambda x: x),
    case("If", boolean(1), shape=(2, 2), dtype=FLOAT),
    case(
        "DeformConv2d",
        f(1, 5, 4, 3),
        ONE_DOWN,
        w(2, 2, 3, 2),
        f(1, 4, 3, 4),
        w(2),
        expect=plain_conv,
        xfail="libQnnCpu lists the op but does not know it",
    ),
]
