"""A single-operator model, or several, for every builtin TFLite operator that the frontend claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.frontends.tflite.build import T, const

CHANCE = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """An operator with its inputs; `quantized` says which of the results' encodings TFLite fixes.

    "free": any scale of the result; "same": that of the first input; or (scale, zero point); "" for operators
    that TFLite does not have in integers. `low` and `high` are the range of float inputs.
    """

    op: str
    inputs: Sequence[T | None]
    kind: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    outputs: Sequence[str] = ("float32",)
    quantized: Any = ""
    low: float = -1.0
    high: float = 1.0
    note: str = ""
    weights: tuple[int, int] = (-1, 0)  # the input that is a weight, and its channel axis

    @property
    def id(self) -> str:
        return f"{self.op}-{self.note}" if self.note else self.op


def r(*shape: int, low: float = -1.0, high: float = 1.0) -> T:
    return const(CHANCE.uniform(low, high, shape).astype(np.float32))


def x(*shape: int, dtype: str = "float32") -> T:
    return T(tuple(shape), dtype)


LOGISTIC = (1 / 256, -128)
TANH = (1 / 128, 0)


def elementwise() -> Iterator[Case]:
    a, b = x(2, 3, 4, 5), x(2, 3, 4, 5)
    for op, kind in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        yield Case(op, [a, b], kind, quantized="free")
        yield Case(op, [a, x(4, 1)], kind, quantized="free", note="broadcast")
        yield Case(op, [a, r(5)], kind, quantized="free", note="constant")
        yield Case(op, [a, b], kind, {"fusedActivationFunction": 1}, quantized="free", note="relu")
        yield Case(op, [a, b], kind, {"fusedActivationFunction": 3}, note="relu6", high=8.0)
        yield Case(op, [a, b], kind, {"fusedActivationFunction": 2}, note="relu_n1_to_1", high=2.0)
        yield Case(op, [x(2, 3, dtype="int32")] * 2, kind, outputs=("int32",), note="int32")
    yield Case("DIV", [a, b], "DivOptions", low=0.5, high=2.0)
    yield Case(
        "DIV",
        [x(6, dtype="int32"), const([3, -3, 7, 2, 5, -2])],
        "DivOptions",
        outputs=("int32",),
        note="int32",
    )
    for op in ("MAXIMUM", "MINIMUM"):
        yield Case(op, [a, b], "MaximumMinimumOptions", quantized="same")
        yield Case(op, [a, x(5)], "MaximumMinimumOptions", note="broadcast")
    for op in ("ABS", "CEIL", "COS", "EXP", "FLOOR", "NEG", "ROUND", "SIN", "SQUARE", "SIGN"):
        more = {"ABS": "same", "EXP": "free"}.get(op, "")  # of integers, LiteRT negates the least to itself
        yield Case(op, [a], quantized=more, low=-3.0, high=3.0)
    for op in ("LOG", "SQRT", "RSQRT"):
        yield Case(op, [a], low=0.05, high=4.0, quantized="free" if op != "SQRT" else "")


def comparisons() -> Iterator[Case]:
    for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        yield Case(op, [x(3, 4), x(4)], f"{op.title().replace('_', '')}Options", outputs=("bool",))
        yield Case(
            op,
            [x(3, 4, dtype="int32"), x(4, dtype="int32")],
            f"{op.title().replace('_', '')}Options",
            outputs=("bool",),
            note="int32",
        )
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        yield Case(op, [x(3, 4, dtype="bool"), x(3, 4, dtype="bool")], outputs=("bool",))
    yield Case("LOGICAL_NOT", [x(3, 4, dtype="bool")], outputs=("bool",))


def more_arithmetic() -> Iterator[Case]:
    a, b = x(2, 3, 4, 5), x(2, 3, 4, 5)
    yield Case("SQUARED_DIFFERENCE", [a, x(4, 5)], "SquaredDifferenceOptions", quantized="free")
    yield Case("POW", [a, x(5)], "PowOptions", low=0.1, high=2.0)
    yield Case("POW", [a, const(np.float32(2.0))], "PowOptions", note="square")
    yield Case("POW", [a, const(np.float32(0.5))], "PowOptions", note="root", low=0.1)
    yield Case("FLOOR_DIV", [a, b], "FloorDivOptions", low=0.3, high=5.0)
    yield Case(
        "FLOOR_DIV",
        [x(6, dtype="int32"), const([3, -3, 7, 2, 5, -2])],
        "FloorDivOptions",
        outputs=("int32",),
        note="int32",
    )
    yield Case(
        "FLOOR_MOD",
        [x(6, dtype="int32"), const([3, -3, 7, 2, 5, -2])],
        "FloorModOptions",
        outputs=("int32",),
        note="int32",
    )
    yield Case("FLOOR_MOD", [a, const(np.float32(0.7))], "FloorModOptions", low=-3.0, high=3.0)
    yield Case("ATAN2", [a, b], "ATan2Options")
    yield Case("ADD_N", [a, b, x(2, 3, 4, 5)], "AddNOptions")
    yield Case("CAST", [a], "CastOptions", {"inDataType": 0, "outDataType": 2}, ("int32",), low=-9, high=9)
    yield Case(
        "CAST",
        [x(3, 4, dtype="int32")],
        "CastOptions",
        {"inDataType": 2, "outDataType": 0},
        note="from int32",
    )
    yield Case("CAST", [a], "CastOptions", {"inDataType": 0, "outDataType": 6}, ("bool",), note="to bool")
    yield Case(
        "CAST", [x(3, 4, dtype="bool")], "CastOptions", {"inDataType": 6, "outDataType": 0}, note="from bool"
    )
    yield Case("SELECT", [x(2, 3, dtype="bool"), x(2, 3), x(2, 3)], "SelectOptions")
    yield Case("SELECT", [x(2, dtype="bool"), x(2, 3), x(2, 3)], "SelectOptions", note="rows")
    yield Case("SELECT_V2", [x(3, dtype="bool"), x(2, 3), x(2, 1)], "SelectV2Options")
    yield Case("ZEROS_LIKE", [a], "ZerosLikeOptions")


def activations() -> Iterator[Case]:
    a = x(2, 5, 4, 6)
    yield Case("RELU", [a], quantized="free")
    yield Case("RELU6", [a], low=-8, high=8, quantized="free")
    yield Case("RELU_N1_TO_1", [a], low=-2, high=2, quantized="free")
    yield Case("RELU_0_TO_1", [a], low=-2, high=2)
    yield Case("LOGISTIC", [a], low=-6, high=6, quantized=LOGISTIC)
    yield Case("TANH", [a], low=-3, high=3, quantized=TANH)
    yield Case("ELU", [a], low=-3, high=3, quantized="free")
    yield Case("LEAKY_RELU", [a], "LeakyReluOptions", {"alpha": 0.2}, quantized="free")
    yield Case("PRELU", [a, r(1, 1, 6, low=0.05, high=0.5)], quantized="free")
    yield Case("PRELU", [a, r(5, 4, 6)], note="everywhere")
    yield Case("HARD_SWISH", [a], low=-5, high=5, quantized="free")
    yield Case("GELU", [a], "GeluOptions", low=-3, high=3, quantized="free")
    yield Case("GELU", [a], "GeluOptions", {"approximate": True}, low=-3, high=3, note="tanh")
    yield Case("SOFTMAX", [x(3, 10)], "SoftmaxOptions", {"beta": 1.0}, low=-4, high=4, quantized=LOGISTIC)
    yield Case("SOFTMAX", [x(2, 3, 4, 6)], "SoftmaxOptions", {"beta": 0.5}, note="beta")
    yield Case("LOG_SOFTMAX", [x(3, 10)], "LogSoftmaxOptions", quantized=(16 / 256, 127))
    yield Case("L2_NORMALIZATION", [x(3, 10)], "L2NormOptions", quantized=TANH)
    yield Case(
        "LOCAL_RESPONSE_NORMALIZATION",
        [a],
        "LocalResponseNormalizationOptions",
        {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.75},
    )


def layers() -> Iterator[Case]:
    same = {"strideW": 1, "strideH": 1, "padding": 0}
    valid = {"strideW": 2, "strideH": 2, "padding": 1}
    image = x(1, 9, 8, 4)
    conv = "Conv2DOptions"
    w = (1, 0)
    yield Case("CONV_2D", [image, r(6, 3, 3, 4), r(6)], conv, same, quantized="free", weights=w)
    yield Case(
        "CONV_2D",
        [image, r(6, 3, 2, 4), r(6)],
        conv,
        valid | {"fusedActivationFunction": 1},
        quantized="free",
        weights=w,
        note="stride relu",
    )
    yield Case(
        "CONV_2D",
        [image, r(6, 3, 3, 4), r(6)],
        conv,
        same | {"dilationWFactor": 2, "dilationHFactor": 2, "fusedActivationFunction": 3},
        weights=w,
        note="dilated",
        quantized="free",
    )
    yield Case("CONV_2D", [image, r(6, 3, 3, 2), r(6)], conv, same, note="groups", weights=w)


def other_convolutions() -> Iterator[Case]:
    same = {"strideW": 1, "strideH": 1, "padding": 0}
    valid = {"strideW": 2, "strideH": 2, "padding": 1}
    image, w = x(1, 9, 8, 4), (1, 0)
    deep = "DepthwiseConv2DOptions"
    d = (1, 3)
    yield Case(
        "DEPTHWISE_CONV_2D",
        [image, r(1, 3, 3, 4), r(4)],
        deep,
        same | {"depthMultiplier": 1},
        quantized="free",
        weights=d,
    )
    yield Case(
        "DEPTHWISE_CONV_2D",
        [image, r(1, 3, 3, 8), r(8)],
        deep,
        valid | {"depthMultiplier": 2},
        note="twice",
        quantized="free",
        weights=d,
    )
    yield Case(
        "DEPTHWISE_CONV_2D",
        [x(1, 9, 8, 1), r(1, 3, 3, 5), r(5)],
        deep,
        same | {"depthMultiplier": 5},
        note="one channel",
        weights=d,
    )
    t = "TransposeConvOptions"
    yield Case(
        "TRANSPOSE_CONV",
        [const([1, 18, 16, 3]), r(3, 3, 3, 4), image],
        t,
        {"strideW": 2, "strideH": 2, "padding": 0},
        quantized="free",
        weights=w,
    )
    yield Case(
        "TRANSPOSE_CONV",
        [const([1, 19, 17, 3]), r(3, 3, 3, 4), image, r(3)],
        t,
        {"strideW": 2, "strideH": 2, "padding": 1},
        note="valid",
        weights=w,
    )
    yield Case(
        "CONV_3D",
        [x(1, 5, 6, 7, 3), r(2, 3, 3, 3, 4), r(4)],
        "Conv3DOptions",
        {"strideW": 1, "strideH": 1, "strideD": 1, "padding": 0},
    )
    yield Case(
        "CONV_3D_TRANSPOSE",
        [const([1, 10, 12, 14, 4]), r(2, 2, 2, 4, 3), x(1, 5, 6, 7, 3)],
        "Conv3DOptions",
        {"strideW": 2, "strideH": 2, "strideD": 2, "padding": 0},
    )


def products() -> Iterator[Case]:
    w = (1, 0)
    full = "FullyConnectedOptions"
    yield Case("FULLY_CONNECTED", [x(3, 10), r(7, 10), r(7)], full, quantized="free", weights=w)
    yield Case(
        "FULLY_CONNECTED",
        [x(2, 3, 10), r(7, 10), None],
        full,
        {"keepNumDims": True},
        note="kept",
        weights=w,
        quantized="free",
    )
    yield Case("FULLY_CONNECTED", [x(3, 10), x(7, 10), None], full, note="no constant")
    mm = "BatchMatMulOptions"
    yield Case("BATCH_MATMUL", [x(2, 3, 4, 5), x(2, 3, 5, 6)], mm, quantized="free")
    yield Case("BATCH_MATMUL", [x(2, 5, 4), x(2, 6, 5)], mm, {"adjX": True, "adjY": True}, note="turned")
    yield Case("BATCH_MATMUL", [x(2, 3, 4, 5), r(5, 6)], mm, note="constant")


def pools() -> Iterator[Case]:
    image = x(1, 9, 8, 4)
    pool = {"strideW": 2, "strideH": 2, "filterWidth": 3, "filterHeight": 2}
    for op, quantized in (("MAX_POOL_2D", "same"), ("AVERAGE_POOL_2D", "same"), ("L2_POOL_2D", "")):
        for padding in (0, 1):
            yield Case(
                op,
                [image],
                "Pool2DOptions",
                pool | {"padding": padding},
                quantized=quantized,
                note=["same", "valid"][padding],
            )


def shapes() -> Iterator[Case]:
    a = x(2, 3, 4, 5)
    yield Case("RESHAPE", [a, const([6, -1])], "ReshapeOptions", {"newShape": [6, -1]}, quantized="same")
    yield Case("SQUEEZE", [x(1, 3, 1, 5)], "SqueezeOptions", {"squeezeDims": [2]}, quantized="same")
    yield Case("EXPAND_DIMS", [x(3, 5), const(1)], "ExpandDimsOptions", quantized="same")
    yield Case("TRANSPOSE", [a, const([2, 0, 3, 1])], "TransposeOptions", quantized="same")
    yield Case("CONCATENATION", [a, x(2, 3, 4, 2)], "ConcatenationOptions", {"axis": -1}, quantized="same")
    yield Case("PACK", [x(3, 4), x(3, 4)], "PackOptions", {"valuesCount": 2, "axis": 1}, quantized="same")
    yield Case(
        "UNPACK", [x(3, 2, 4)], "UnpackOptions", {"num": 2, "axis": 1}, ("float32",) * 2, quantized="same"
    )
    yield Case("SPLIT", [const(2), a], "SplitOptions", {"numSplits": 2}, ("float32",) * 2)
    yield Case(
        "SPLIT_V", [a, const([1, 3, 1]), const(3)], "SplitVOptions", {"numSplits": 3}, ("float32",) * 3
    )
    yield Case("SLICE", [a, const([0, 1, 0, 2]), const([2, 2, -1, 1])], "SliceOptions", quantized="same")
    s = "StridedSliceOptions"
    yield Case(
        "STRIDED_SLICE",
        [a, const([0, 0, 0, 0]), const([2, 3, 4, 5]), const([1, 2, 1, 2])],
        s,
        quantized="same",
    )
    yield Case(
        "STRIDED_SLICE",
        [a, const([0, -1, 3]), const([1, -4, 0]), const([1, -1, -2])],
        s,
        {"endMask": 2, "shrinkAxisMask": 1},
        note="backwards",
    )
    yield Case(
        "STRIDED_SLICE",
        [a, const([0, 0, 1]), const([0, 0, 4]), const([1, 1, 1])],
        s,
        {"ellipsisMask": 1, "newAxisMask": 2},
        note="ellipsis",
    )


def more_shapes() -> Iterator[Case]:
    a = x(2, 3, 4, 5)
    yield Case("REVERSE_V2", [a, const([1])], "ReverseV2Options")
    yield Case(
        "REVERSE_SEQUENCE",
        [x(3, 5, 2), const([2, 5, 0])],
        "ReverseSequenceOptions",
        {"seqDim": 1, "batchDim": 0},
    )
    yield Case("TILE", [x(2, 3), const([2, 3])], "TileOptions", quantized="same")
    yield Case("BROADCAST_TO", [x(3, 1), const([2, 3, 4])], "BroadcastToOptions")
    yield Case("FILL", [const([2, 3]), x()], "FillOptions", note="run time")
    yield Case("PAD", [a, const([[0, 0], [1, 2], [0, 1], [3, 0]])], "PadOptions", quantized="same")
    yield Case("PADV2", [a, const([[0, 0], [1, 2], [0, 1], [0, 0]]), const(np.float32(0.5))], "PadV2Options")
    yield Case(
        "MIRROR_PAD", [x(3, 4), const([[1, 2], [3, 1]])], "MirrorPadOptions", {"mode": 0}, quantized="same"
    )
    yield Case(
        "MIRROR_PAD", [x(3, 4), const([[1, 2], [3, 1]])], "MirrorPadOptions", {"mode": 1}, note="symmetric"
    )
    yield Case("DILATE", [x(3, 4), const([2, 3]), const(np.float32(0.25))], "DilateOptions")
    yield Case("DEPTH_TO_SPACE", [x(1, 3, 4, 8)], "DepthToSpaceOptions", {"blockSize": 2}, quantized="same")
    yield Case("SPACE_TO_DEPTH", [x(1, 4, 6, 3)], "SpaceToDepthOptions", {"blockSize": 2}, quantized="same")
    blocks = const([2, 3])
    yield Case(
        "SPACE_TO_BATCH_ND",
        [x(1, 3, 4, 2), blocks, const([[0, 1], [1, 1]])],
        "SpaceToBatchNDOptions",
        quantized="same",
    )
    yield Case(
        "SPACE_TO_BATCH_ND", [x(1, 4, 2), const([2]), const([[0, 0]])], "SpaceToBatchNDOptions", note="signal"
    )
    yield Case(
        "BATCH_TO_SPACE_ND",
        [x(6, 2, 2, 2), blocks, const([[0, 1], [1, 1]])],
        "BatchToSpaceNDOptions",
        quantized="same",
    )
    yield Case("MATRIX_DIAG", [x(2, 3)], "MatrixDiagOptions")
    yield Case("MATRIX_SET_DIAG", [x(2, 3, 4), x(2, 3)], "MatrixSetDiagOptions")
    yield Case("SHAPE", [a], "ShapeOptions", {"outType": 2}, ("int32",))
    yield Case("RANK", [a], "RankOptions", {}, ("int32",))
    yield Case("RANGE", [const(np.float32(1)), const(np.float32(9)), const(np.float32(2))], "RangeOptions")


def indices() -> Iterator[Case]:
    a = x(3, 4, 5)
    yield Case("GATHER", [a, const([2, 0])], "GatherOptions", {"axis": 1}, quantized="same")
    yield Case(
        "GATHER",
        [a, const([[2, 0], [1, 1], [3, 0]])],
        "GatherOptions",
        {"axis": 1, "batchDims": 1},
        note="batch",
    )
    yield Case("GATHER", [a, const(1)], "GatherOptions", {"axis": 0}, note="single")
    yield Case("GATHER_ND", [a, const([[0, 1], [2, 3]])], "GatherNdOptions")
    yield Case("EMBEDDING_LOOKUP", [const([2, 0, 1]), r(3, 6)])
    yield Case("SCATTER_ND", [const([[1], [3], [1]]), x(3, 4), const([5, 4])], "ScatterNdOptions")
    yield Case("DYNAMIC_UPDATE_SLICE", [x(4, 5), x(2, 2), const([1, 3])], "DynamicUpdateSliceOptions")
    yield Case("DYNAMIC_UPDATE_SLICE", [x(4, 5), x(2, 2), x(2, dtype="int32")], note="place of run time")
    yield Case(
        "BUCKETIZE", [x(4, 5)], "BucketizeOptions", {"boundaries": [-0.5, 0.0, 0.25, 0.75]}, ("int32",)
    )
    for function, start in ((1, 0.0), (3, np.finfo(np.float32).max), (4, np.finfo(np.float32).min)):
        rows = [const(v, "int64") for v in ([1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1])]
        yield Case(
            "REDUCE_WINDOW", [x(2, 6, 7, 3), const(np.float32(start)), *rows], "ReduceWindowOptions",
            {"reduceFunction": function}, note=f"kind {function}",
        )  # fmt: skip
    yield Case(
        "ONE_HOT",
        [const([0, 2, 1]), const(3), const(np.float32(2)), const(np.float32(-1))],
        "OneHotOptions",
        {"axis": -1},
    )
    yield Case("TOPK_V2", [x(3, 10), const(4)], "TopKV2Options", {}, ("float32", "int32"))
    yield Case("ARG_MAX", [a, const(1)], "ArgMaxOptions", {"outputType": 2}, ("int32",))
    yield Case("ARG_MIN", [a, const(-1)], "ArgMinOptions", {"outputType": 2}, ("int32",))
    yield Case("CUMSUM", [a, const(1)], "CumsumOptions", {"exclusive": True, "reverse": True})
    yield Case(
        "SPARSE_TO_DENSE",
        [const([[0, 1], [2, 0]]), const([3, 2]), r(2), const(np.float32(0.5))],
        "SparseToDenseOptions",
    )
    yield Case("SEGMENT_SUM", [x(4, 3), const([0, 0, 1, 2])], "SegmentSumOptions")
    for what in ("Sum", "Prod", "Max", "Min"):
        op, kind = f"UNSORTED_SEGMENT_{what.upper()}", f"UnsortedSegment{what}Options"
        yield Case(op, [x(4, 3), const([2, 0, 1, 2]), const(3)], kind)


def reductions() -> Iterator[Case]:
    a = x(2, 3, 4, 5)
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        quantized = "same" if op in ("REDUCE_MAX", "REDUCE_MIN") else "free" if op != "REDUCE_PROD" else ""
        yield Case(op, [a, const([1, 2])], "ReducerOptions", {"keepDims": False}, quantized=quantized)
        yield Case(op, [a, const([-1])], "ReducerOptions", {"keepDims": True}, note="kept")
        yield Case(op, [x(2, 3), const([0, 1])], "ReducerOptions", {"keepDims": False}, note="all")
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        yield Case(op, [x(3, 4, dtype="bool"), const([1])], "ReducerOptions", {"keepDims": False}, ("bool",))


def images() -> Iterator[Case]:
    a = x(1, 5, 6, 3)
    for op, kind in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        for size in ([10, 12], [3, 9]):
            for align, half in ((False, False), (True, False), (False, True)):
                yield Case(
                    op,
                    [a, const(size)],
                    kind,
                    {"alignCorners": align, "halfPixelCenters": half},
                    quantized="same",
                    note=f"{size} {align} {half}",
                )


def quantization() -> Iterator[Case]:
    yield Case("FAKE_QUANT", [x(3, 4)], "FakeQuantOptions", {"min": -0.6, "max": 0.8, "numBits": 8})


FAMILIES = (
    elementwise, comparisons, more_arithmetic, activations, layers, other_convolutions, products, pools,
    shapes, more_shapes, indices, reductions, images, quantization,
)  # fmt: skip
CASES = [case for family in FAMILIES for case in family()]
