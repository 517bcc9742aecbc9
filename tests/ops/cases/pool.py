"""Pooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openqnn.ir import DType, Encoding
from tests.ops.database import Case, case, f, fixed

ZERO = ((0, 0), (0, 0))
ONE = ((1, 1), (1, 1))
CEIL = "graphAddNode refuses rounding_mode CEIL"


def by_hand(
    fold: Callable[..., np.ndarray], kernel: int, stride: int, pads: tuple[int, int], count: int
) -> object:
    """Square windows over an NHWC image, each one taken by itself; NaN marks the padding."""

    def judge(x: np.ndarray) -> np.ndarray:
        far = kernel + pads[1] + stride
        padded = np.pad(x, ((0, 0), (pads[0], far), (pads[0], far), (0, 0)), constant_values=np.nan)
        places = [(i * stride, j * stride) for i in range(count) for j in range(count)]
        pooled = [fold(padded[:, i : i + kernel, j : j + kernel], axis=(1, 2)) for i, j in places]
        return np.stack(pooled, axis=1).reshape(x.shape[0], count, count, x.shape[-1])

    return judge


BYTES = np.arange(64).reshape(1, 4, 4, 4) * 37 % 256
WIDE = Encoding.per_tensor(0.0001, -30000, 16)

CASES: list[Case] = [
    case("PoolMax2d", f(1, 8, 8, 3), filter_size=(2, 2), stride=(2, 2), pad_amount=ZERO),
    case(
        "PoolMax2d",
        f(2, 9, 7, 3),
        filter_size=(3, 2),
        stride=(2, 1),
        pad_amount=((1, 1), (0, 1)),
        label="pads",
    ),
    case(
        "PoolMax2d",
        f(1, 8, 8, 3, high=-1),
        filter_size=(3, 3),
        stride=(2, 2),
        pad_amount=ONE,
        label="negative",
    ),
    case(
        "PoolMax2d",
        f(1, 8, 8, 2, high=-1),
        filter_size=(3, 3),
        stride=(2, 2),
        pad_amount=ZERO,
        rounding_mode="CEIL",
        xfail=CEIL,
        expect=by_hand(np.nanmax, 3, 2, (0, 0), 4),
        label="ceil",
    ),
    case(
        "PoolMax2d",
        f(1, 4, 4, 2),
        filter_size=(2, 2),
        stride=(2, 2),
        pad_amount=((2, 1), (2, 1)),
        label="wide_pads",
        valid=lambda out: [o[:, 1:, 1:] for o in out],
    ),
    case(
        "PoolMax2d",
        fixed(BYTES, 0.02, -100),
        filter_size=(3, 3),
        stride=(1, 1),
        pad_amount=ONE,
        encoding=Encoding.per_tensor(0.02, -100),
        label="stored",
    ),
    case(
        "PoolMax2d",
        fixed(BYTES * 256, 0.0001, -30000, DType.UFIXED_16),
        filter_size=(2, 2),
        stride=(2, 2),
        pad_amount=ZERO,
        encoding=WIDE,
        label="stored16",
        xfail="the vendor's CPU library pools no 16 bits",
        expect=lambda x: x.reshape(1, 2, 2, 2, 2, 4).max((2, 4)),
    ),
    case("PoolMax3d", f(1, 6, 6, 6, 2), filter_size=(2, 2, 2), stride=(2, 2, 2), pad_amount=((0, 0),) * 3),
    case(
        "PoolMax3d",
        f(1, 5, 6, 7, 2),
        filter_size=(3, 2, 3),
        stride=(1, 2, 2),
        pad_amount=((1, 1), (0, 0), (0, 1)),
    ),
    case("PoolAvg2d", f(1, 8, 8, 3), filter_size=(2, 2), stride=(2, 2), pad_amount=ZERO),
    case("PoolAvg2d", f(1, 8, 8, 3), filter_size=(3, 3), stride=(2, 2), pad_amount=ONE, label="edges"),
    case(
        "PoolAvg2d",
        f(2, 8, 8, 3),
        filter_size=(3, 3),
        stride=(1, 2),
        pad_amount=((1, 1), (1, 0)),
        count_pad_for_edges=True,
        label="count_pad",
    ),
    case(
        "PoolAvg2d",
        f(1, 8, 8, 2),
        filter_size=(3, 3),
        stride=(2, 2),
        pad_amount=ZERO,
        rounding_mode="CEIL",
        xfail=CEIL,
        expect=by_hand(np.nanmean, 3, 2, (0, 0), 4),
        label="ceil",
    ),
    case("PoolAvg2d", f(1, 7, 7, 4), filter_size=(7, 7), stride=(1, 1), pad_amount=ZERO, label="global"),
    case("PoolAvg3d", f(1, 6, 6, 6, 2), filter_size=(2, 2, 2), stride=(2, 2, 2), pad_amount=((0, 0),) * 3),
    case(
        "PoolAvg3d",
        f(1, 5, 6, 7, 2),
        filter_size=(3, 3, 3),
        stride=(2, 1, 2),
        pad_amount=((1, 1),) * 3,
        count_pad_for_edges=True,
        label="count_pad",
    ),
    case("L2Pool2d", f(1, 8, 8, 3), filter_size=(2, 2), stride=(2, 2), pad_amount=ZERO),
    case("L2Pool2d", f(1, 7, 8, 3), filter_size=(3, 3), stride=(2, 1), pad_amount=ONE, label="pads"),
]
