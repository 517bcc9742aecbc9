"""Ops that fold axes: sums, extremes and where they are, running sums, the largest few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from openqnn.errors import ShapeError
from openqnn.ir import DType, Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import (
    INDICES,
    Infer,
    Kind,
    Lower,
    Moves,
    Operand,
    OpSchema,
    Param,
    Result,
    axes,
    axis,
    flag,
    op,
    register,
    result,
    tensor,
    u32,
)  # fmt: skip
from openqnn.ops.shape_rules import last_axis, reduced, same


def _reduced_shape(n: Node) -> list[Shape]:
    if not n.ints("axes"):
        raise ShapeError(f"{n.where}: axes is empty")
    return [reduced(n.x(0).shape, n.ints("axes"), n.flag("keep_dims"))]


def reduce_onnx(n: Node, b: Body, kind: str, x: str, keep: bool) -> str:
    """ONNX gives rank 0 where QNN has [1]. A mean over an image is a pool, which is faster and more exact."""
    image = n.x(0).rank == 4 and tuple(sorted(n.ints("axes"))) == (2, 3) and n.x(0).dtype is DType.FLOAT_32
    if image and keep and kind == "ReduceMean":
        return b.op("GlobalAveragePool", x)
    folded = b.op(kind, x, b.ints(*n.ints("axes")), keepdims=int(keep))
    return folded if keep or len(n.ints("axes")) < n.x(0).rank else b.reshape(folded, (1,))


def reduction(name: str, onnx_name: str, doc: str, kind: Kind = Kind.OTHER) -> OpSchema:
    """A row: folds `axes` by an ONNX reduction."""
    lower: Lower = lambda n, b, x: reduce_onnx(n, b, onnx_name, x[0], n.flag("keep_dims"))
    params = (_named(axes(), "axes"), _named(flag(False), "keep_dims"))
    inputs, outputs = (Operand(name="in0"),), (Result(name="out0"),)
    schema = OpSchema(name, doc, inputs, outputs, params, _reduced_shape, lower, moves=Moves.AXES, kind=kind)
    return register(schema)


def _named(param: Param, name: str) -> Param:
    return replace(param, name=name)


ReduceMax = reduction("ReduceMax", "ReduceMax", "Largest value over axes.")
ReduceMean = reduction("ReduceMean", "ReduceMean", "Mean over axes.", Kind.MEAN)
ReduceMin = reduction("ReduceMin", "ReduceMin", "Smallest value over axes.")
ReduceProd = reduction("ReduceProd", "ReduceProd", "Product over axes.")
ReduceSum = reduction("ReduceSum", "ReduceSum", "Sum over axes.", Kind.MEAN)
ReduceSumSquare = reduction("ReduceSumSquare", "ReduceSumSquare", "Sum of squares over axes.")


def _moments_onnx(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    mean = reduce_onnx(n, b, "ReduceMean", x[0], keep=True)
    centred = b.op("Sub", x[0], mean)
    results = [mean, reduce_onnx(n, b, "ReduceMean", b.op("Mul", centred, centred), keep=True)]
    return results if n.flag("keep_dims") else [b.reshape(r, n.out.shape) for r in results]


@op
class Moments:
    """Mean and variance of the whole population over axes."""

    in0 = tensor()
    mean = result()
    variance = result()
    axes = axes(dtype=DType.INT_32)
    keep_dims = flag()
    infer: Infer = lambda n: _reduced_shape(n) * 2
    lower = _moments_onnx
    moves = Moves.AXES


# -- positions -----------------------------------------------------------------------------------------------


def _arg_shape(n: Node) -> list[Shape]:
    return [reduced(n.x(0).shape, (n.int("axis"),), n.flag("keep_dims"))]


def _arg_onnx(kind: str) -> Lower:
    def lower(n: Node, b: Body, x: Sequence[str]) -> str:
        found = b.op(kind, x[0], axis=n.int("axis"), keepdims=int(n.flag("keep_dims")))
        found = found if n.x(0).rank > 1 or n.flag("keep_dims") else b.reshape(found, (1,))
        return b.cast(found, n.out.dtype.numpy)

    return lower


@op
class Argmax:
    """Position of the first maximum along an axis."""

    in0 = tensor()
    out0 = result(INDICES)
    axis = axis()
    keep_dims = flag(False)
    infer = _arg_shape
    lower = _arg_onnx("ArgMax")
    moves = Moves.AXES


@op
class Argmin:
    """Position of the first minimum along an axis."""

    in0 = tensor()
    out0 = result(INDICES)
    axis = axis()
    keep_dims = flag(False)
    infer = _arg_shape
    lower = _arg_onnx("ArgMin")
    moves = Moves.AXES


def _topk_shape(n: Node) -> list[Shape]:
    shape, k = n.x(0).shape, n.int("k")
    if not shape or not 0 < k <= shape[-1]:
        raise ShapeError(f"{n.where}: k={k} does not fit the last axis of {list(shape)}")
    return [(*shape[:-1], k)] * 2


def _topk_onnx(n: Node, b: Body, x: Sequence[str]) -> list[str]:
    k, largest = b.ints(n.int("k")), int(n.flag("largest"))
    values, where = b.ops("TopK", x[0], k, count=2, axis=last_axis(n), largest=largest, sorted=1)
    return [values, b.cast(where, n.outputs[1].dtype.numpy)]


@op
class TopK:
    """The k largest (or smallest) values of the last axis in order, and their positions."""

    in0 = tensor()
    values = result()
    indices = result(INDICES)
    k = u32()
    largest = flag(True)
    infer = _topk_shape
    lower = _topk_onnx
    moves = Moves.AXES
    on_last = True


# -- running sums --------------------------------------------------------------------------------------------


def _cumsum_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    exclusive, reverse = int(n.flag("exclusive")), int(n.flag("reverse"))
    return b.op("CumSum", x[0], b.const(n.int("axis"), "int64"), exclusive=exclusive, reverse=reverse)


@op
class CumulativeSum:
    """Running sum along an axis; `exclusive` leaves the element itself out, `reverse` starts at the end."""

    in0 = tensor()
    out0 = result()
    axis = axis()
    exclusive = flag(False)
    reverse = flag(False)
    infer = same
    lower = _cumsum_onnx
    moves = Moves.AXES
