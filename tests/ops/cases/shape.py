"""Data movement."""

from __future__ import annotations

import numpy as np

from openqnn.ir import DType, Encoding
from tests.ops.database import Case, boolean, case, const, f, fixed, given, i

ROWS = ((0, 0), (1, 2), (2, 1), (0, 0))
BATCH_ROWS = ((1, 1), (0, 2), (1, 0))


BYTES = np.arange(32).reshape(1, 4, 4, 2) * 37 % 256
U8 = Encoding.per_tensor(0.02, -100)

CASES: list[Case] = [
    case("Reshape", f(2, 3, 4), shape=(4, 6)),
    case("Reshape", i(2, 3, 4, limit=9), shape=(1, 2, 3, 2, 2), label="int"),
    case("Reshape", boolean(2, 6), shape=(12,), label="bool"),
    case("Transpose", f(2, 3, 4), perm=(2, 0, 1)),
    case("Transpose", f(1, 2, 3, 4, 5), perm=(0, 4, 1, 2, 3), label="rank5"),
    case("Transpose", i(3, 4, limit=9), perm=(1, 0), label="int"),
    case("Squeeze", f(1, 3, 1, 4), axes=(0, 2)),
    case("Squeeze", f(1, 3, 1, 4), axes=(2,), label="one"),
    case("Squeeze", f(1, 3, 1, 4), label="all"),
    case("ExpandDims", f(3, 4), axis=1),
    case("ExpandDims", f(3, 4), axes=(0, 3), label="several"),
    case("Concat", f(2, 3, 4), f(2, 1, 4), f(2, 2, 4), axis=1),
    case("Concat", i(2, 3, limit=9), i(2, 4, limit=9), axis=1, label="int"),
    case("Concat", boolean(2, 3), boolean(1, 3), axis=0, label="bool"),
    case("Concat", f(1, 4, 4, 2), f(1, 4, 4, 3), axis=3, label="channels"),
    case("Split", f(2, 9, 3), axis=1, split_index=(2, 5)),
    case("Split", f(2, 4), axis=0, split_index=(1,), label="first_axis"),
    case("Split", i(6, limit=9), axis=0, split_index=(2, 4), label="int"),
    case("Pack", f(2, 3), f(2, 3), axis=0),
    case("Pack", f(2, 3), f(2, 3), f(2, 3), axis=2, label="last"),
    case("Pack", i(4, limit=9), i(4, limit=9), axis=1, label="int"),
    case("UnPack", f(3, 2, 4), axis=0),
    case("UnPack", f(2, 3, 4), axis=2, label="last"),
    case("StridedSlice", f(4, 6, 5), ranges=((1, 3, 1), (0, 6, 2), (4, 1, -1))),
    case("StridedSlice", f(4, 5), ranges=((3, -5, -1), (4, -6, -2)), label="reverse"),
    case("StridedSlice", f(4, 6), ranges=((2, 3, 1), (2, 4, 1)), begin_mask=1, end_mask=2, label="open"),
    case("StridedSlice", f(4, 6, 3), ranges=((2, 3, 1), (0, 6, 2), (1, 2, 1)), shrink_axes=5, label="shrink"),
    case(
        "StridedSlice", f(4, 6), ranges=((0, 4, 1), (0, 1, 1), (1, 3, 1)), new_axes_mask=2, label="new_axis"
    ),
    case("StridedSlice", i(4, 6, limit=9), ranges=((-3, -1, 1), (0, 6, 5)), label="int"),
    case("BatchPermutation", f(4, 2, 3), const([3, 0, 1, 2], np.int32)),
    case("BatchPermutation", f(4, 5), given([1, 2, 3, 0], np.int32), label="dynamic"),
    case("Pad", f(1, 4, 4, 2), scheme="CONSTANT", pad_amount=ROWS, pad_constant_value=1.5),
    case("Pad", f(1, 4, 4, 2), scheme="EDGE", pad_amount=ROWS, label="edge"),
    case("Pad", f(1, 4, 4, 2), scheme="MIRROR_REFLECT", pad_amount=ROWS, label="reflect"),
    case("Pad", f(1, 4, 4, 2), scheme="MIRROR_SYMMETRIC", pad_amount=ROWS, label="symmetric"),
    case(
        "Pad",
        f(3, 4, 5),
        scheme="MIRROR_REFLECT",
        pad_amount=BATCH_ROWS,
        label="reflect_outer",
        xfail="mirror pads of the first of three axes are wrong",
        expect=lambda x: np.pad(x, BATCH_ROWS, mode="reflect"),
    ),
    case(
        "Pad",
        i(3, 4, limit=9),
        scheme="CONSTANT",
        pad_amount=((1, 0), (0, 2)),
        label="int",
        xfail="Pad of integers fails finalize",
        expect=lambda x: np.pad(x, ((1, 0), (0, 2))),
    ),
    case(
        "Pad",
        fixed(BYTES, 0.02, -100),
        scheme="CONSTANT",
        pad_amount=ROWS,
        pad_constant_value=1.0,
        encoding=U8,
        label="stored",
    ),
    case(
        "StridedSlice",
        fixed(BYTES, 0.02, -100),
        ranges=((0, 1, 1), (3, 0, -1), (1, 4, 2), (0, 2, 1)),
        encoding=U8,
        label="stored",
    ),
    case("Concat", fixed(BYTES, 0.02, -100), fixed(BYTES, 0.02, -100), axis=3, encoding=U8, label="stored"),
    case("Tile", f(2, 3), multiples=(2, 3)),
    case("Tile", i(2, 3, limit=9), multiples=(1, 2), label="int"),
    case("Tile", boolean(2, 2), multiples=(2, 1), label="bool"),
    case("Shape", f(2, 3, 4)),
    case("Shape", i(2, 3, 4, limit=9), start=1, end=3, label="part"),
    case("ConstantOfShape", const([2, 3], np.uint32), value=1.5, shape=(2, 3), dtype=DType.FLOAT_32),
    case("ConstantOfShape", const([4], np.uint32), value=2.0, dtype=DType.FLOAT_32, label="static"),
    case("ConstantOfShape", const([4], np.uint32), value=7, dtype=DType.INT_32, label="int"),
    case("OneHot", i(2, 3, limit=4), depth=4, axis=2, dtype=DType.FLOAT_32),
    case(
        "OneHot",
        i(3, limit=5),
        depth=5,
        axis=0,
        on_value=2.0,
        off_value=-1.0,
        dtype=DType.FLOAT_32,
        label="values",
    ),
    case(
        "OneHot",
        i(3, limit=4),
        depth=4,
        axis=1,
        dtype=DType.INT_32,
        label="int",
        xfail="OneHot writes the bit pattern of a float into integers",
        expect=lambda x: np.eye(4, dtype=np.int32)[x],
    ),
    case("OneHot", given([0, 7, 2], np.int32), depth=4, axis=1, dtype=DType.FLOAT_32, label="outside"),
]
