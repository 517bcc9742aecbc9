"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Array, Node, Shape
from openqnn.ops.elementwise import scalar_like
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import (
    ABSENT,
    BIAS,
    LAST,
    WEIGHT,
    Kind,
    Moves,
    axes,
    axis,
    enum,
    f32,
    flag,
    i32,
    op,
    result,
    tensor,
    u32,
)
from openqnn.ops.shape_rules import along, last_axis, positive, same, vector


def _scaled(n: Node, b: Body, y: str, x: Sequence[str], shape: Shape) -> str:
    """y * gamma + beta: inputs 1 and 2, shaped to line up with the data, each of them optional."""
    for kind, operand in (("Mul", x[1]), ("Add", x[2])):
        if operand:
            y = b.op(kind, y, b.reshape(operand, shape))
    return y


def _centred(b: Body, x: str, over: Sequence[int]) -> str:
    return b.op("Sub", x, b.op("ReduceMean", x, b.ints(*over)))


def _over_rms(n: Node, b: Body, x: str, over: Sequence[int]) -> str:
    """x / sqrt(mean(x^2) + epsilon)."""
    mean = b.op("ReduceMean", b.op("Mul", x, x), b.ints(*over))
    return b.op("Div", x, b.op("Sqrt", b.op("Add", mean, scalar_like(n, b, n.float("epsilon")))))


def _ones(n: Node, b: Body, shape: Shape) -> str:
    return b.const(np.ones(shape, n.x(0).dtype.numpy))


# -- one number per channel ----------------------------------------------------------------------------------


def channel_shape(n: Node) -> list[Shape]:
    """The shape of input 0; inputs 1 and 2 hold one number per channel, the last axis."""
    if not n.x(0).shape:
        raise ShapeError(f"{n.where}: the data has no axes")
    vector(n, 1, n.x(0).shape[-1])
    vector(n, 2, n.x(0).shape[-1])
    return same(n)


def _batchnorm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """ONNX Runtime folds a BatchNormalization into a convolution before it, so that is what it gets."""
    shape, channel = n.x(0).shape, last_axis(n)
    if channel != 1 or len(shape) < 3 or not x[2]:
        return _scaled(n, b, x[0], x, along(shape, channel))
    zeros = b.const(np.zeros(shape[1], n.x(0).dtype.numpy))
    return b.op("BatchNormalization", x[0], x[1], x[2], zeros, _ones(n, b, (shape[1],)), epsilon=0.0)


@op
class Batchnorm:
    """x * scale + bias per channel: statistics are folded into the two."""

    in0 = tensor()
    scale = tensor(1, role=WEIGHT)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result()
    infer = channel_shape
    lower = _batchnorm_onnx
    moves = Moves.AXES
    on_last = True


def _instance_norm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    plain = (n.enum("mode"), n.enum("region"), n.flag("normalize_variance"))
    if x[2] and plain == ("MU_SIGMA", "ACROSS_SPATIAL", True):
        return b.op("InstanceNormalization", *x, epsilon=n.float("epsilon"))
    over = {"ACROSS_SPATIAL": (2, 3), "ACROSS_CHANNEL": (1,), "ACROSS_ALL": (1, 2, 3)}[n.enum("region")]
    y = _centred(b, x[0], over) if n.enum("mode") == "MU_SIGMA" else x[0]
    if not n.flag("normalize_variance"):
        return y
    return _scaled(n, b, _over_rms(n, b, y, over), x, (1, n.x(0).shape[-1], 1, 1))


@op
class InstanceNorm:
    """Each image by its own mean and deviation, then gamma and beta; or less its mean and no more."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    gamma = tensor(1, role=WEIGHT)
    beta = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NHWC", onnx="NCHW")
    epsilon = f32(default=1e-12)
    mode = enum("MU_SIGMA", MU_SIGMA=0, RMS=1)
    normalize_variance = flag(True)
    region = enum("ACROSS_SPATIAL", ACROSS_SPATIAL=0, ACROSS_CHANNEL=1, ACROSS_ALL=2)
    infer = channel_shape
    lower = _instance_norm_onnx


def _group_norm_shape(n: Node) -> list[Shape]:
    positive(n, "group")
    if n.x(0).shape[-1] % n.int("group"):
        channels = n.x(0).shape[-1]
        raise ShapeError(f"{n.where}: {channels} channels cannot be split into {n.int('group')} groups")
    return channel_shape(n)


def _group_norm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """An instance norm of the groups, taken as channels."""
    batch, *spatial, channels = n.x(0).shape
    group = n.int("group")
    blocks = b.reshape(x[0], (batch, group, -1))
    zeros = b.const(np.zeros(group, n.x(0).dtype.numpy))
    normed = b.op("InstanceNormalization", blocks, _ones(n, b, (group,)), zeros, epsilon=n.float("epsilon"))
    whole = b.reshape(normed, (batch, channels, *spatial))
    return _scaled(n, b, whole, x, (1, channels, *(1 for _ in spatial)))


@op
class GroupNorm:
    """Each group of channels by its own mean and deviation, then gamma and beta per channel."""

    in0 = tensor((3, 4, 5), layout="N*C", onnx="NC*")
    gamma = tensor(1, role=WEIGHT, optional=True)
    beta = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="N*C", onnx="NC*")
    epsilon = f32()
    group = u32()
    infer = _group_norm_shape
    lower = _group_norm_onnx


# -- over axes that are named --------------------------------------------------------------------------------


def _axes_shape(n: Node) -> list[Shape]:
    """The shape of input 0; gamma and beta have the dimensions of the axes."""
    shape = n.x(0).shape
    if not n.ints("axes"):
        raise ShapeError(f"{n.where}: axes is empty")
    expected = tuple(shape[a] for a in sorted(n.ints("axes")))
    for index, name in ((1, "gamma"), (2, "beta")):
        if n.has(index) and n.x(index).shape != expected:
            got = list(n.x(index).shape)
            raise ShapeError(f"{n.where}: {name} has shape {got}, the axes of the data have {list(expected)}")
    return same(n)


def _keeps_order(n: Node, perm: Sequence[int]) -> bool:
    """gamma and beta stay as they are, so the axes that they cover must stay in order."""
    places = [perm.index(a) for a in sorted(n.ints("axes"))]
    return places == sorted(places)


def _lined_up(n: Node) -> Shape:
    """The shape in which gamma and beta line up with the data."""
    return tuple(d if i in n.ints("axes") else 1 for i, d in enumerate(n.x(0).shape))


def _trailing(n: Node) -> bool:
    rank, over = n.x(0).rank, n.ints("axes")
    return sorted(over) == list(range(rank - len(over), rank))


def _layer_norm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    over = n.ints("axes")
    if not _trailing(n):
        normed = _over_rms(n, b, _centred(b, x[0], over), over)
        return _scaled(n, b, normed, x, _lined_up(n))
    gamma = x[1] or _ones(n, b, n.x(0).shape[-len(over) :])
    return b.op("LayerNormalization", x[0], gamma, x[2], axis=-len(over), epsilon=n.float("epsilon"))


def _rms_norm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """ONNX Runtime has its own op for it, under ONNX's domain, from before ONNX knew one."""
    over = n.ints("axes")
    if not _trailing(n) or len(over) > 1:
        return _scaled(n, b, _over_rms(n, b, x[0], over), x, _lined_up(n))
    gamma = x[1] or _ones(n, b, n.x(0).shape[-1:])
    normed = b.op("SimplifiedLayerNormalization", x[0], gamma, axis=-1, epsilon=n.float("epsilon"))
    return b.op("Add", normed, x[2]) if x[2] else normed


@op
class LayerNorm:
    """By mean and deviation over axes, then gamma and beta, which have the dimensions of those axes."""

    in0 = tensor()
    gamma = tensor(role=WEIGHT, optional=True)
    beta = tensor(role=BIAS, optional=True)
    out0 = result()
    epsilon = f32(default=1e-5)
    axes = axes()
    infer = _axes_shape
    lower = _layer_norm_onnx
    moves = Moves.AXES
    can_move = _keeps_order


@op
class RmsNorm:
    """By the root mean square over axes (epsilon inside the root), then gamma and beta."""

    in0 = tensor()
    gamma = tensor(role=WEIGHT, optional=True)
    beta = tensor(role=BIAS, optional=True)
    out0 = result()
    epsilon = f32(default=1e-5)
    axes = axes()
    infer = _axes_shape
    lower = _rms_norm_onnx
    moves = Moves.AXES
    can_move = _keeps_order


def _l2_norm_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    over = n.ints("axes") if "axes" in n.params else (n.int("axis"),)
    norm = b.op("ReduceL2", x[0], b.ints(*over))
    return b.op("Div", x[0], b.op("Max", norm, scalar_like(n, b, n.float("epsilon"))))


@op
class L2Norm:
    """x / max(norm of x over the axis, epsilon); `axes`, when given, replaces `axis`."""

    in0 = tensor()
    out0 = result()
    axis = axis(LAST)
    axes = axes(ABSENT)
    epsilon = f32(default=1e-12)
    infer = same
    lower = _l2_norm_onnx
    moves = Moves.AXES


# -- over neighbours -----------------------------------------------------------------------------------------


def _lrn_shape(n: Node) -> list[Shape]:
    if n.int("radius") < 0:
        raise ShapeError(f"{n.where}: radius={n.int('radius')} must not be negative")
    return same(n)


def _lrn_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """ONNX divides alpha by the number of neighbours, QNN does not."""
    size, alpha, beta, bias = 2 * n.int("radius") + 1, n.float("alpha"), n.float("beta"), n.float("bias")
    if n.enum("region") == "ACROSS_CHANNEL":
        return b.op("LRN", x[0], size=size, alpha=alpha * size, beta=beta, bias=bias)
    square, pads = b.op("Mul", x[0], x[0]), [n.int("radius")] * 4
    mean = b.op("AveragePool", square, kernel_shape=[size] * 2, pads=pads, count_include_pad=1)
    total = b.op("Add", b.op("Mul", mean, scalar_like(n, b, alpha * size * size)), scalar_like(n, b, bias))
    return b.op("Div", x[0], b.op("Pow", total, scalar_like(n, b, beta)))


@op
class Lrn:
    """x / (bias + alpha * sum of squares within the radius) ^ beta, over channels or within one."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    alpha = f32(default=1.0)
    beta = f32(default=0.5)
    bias = f32(default=1.0)
    radius = i32()
    region = enum("ACROSS_CHANNEL", ACROSS_CHANNEL=0, WITHIN_CHANNEL=1)
    infer = _lrn_shape
    lower = _lrn_onnx


# -- softmax -------------------------------------------------------------------------------------------------


def _softmax_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    scaled = x[0] if n.float("beta") == 1 else b.op("Mul", x[0], scalar_like(n, b, n.float("beta")))
    return b.op(n.op, scaled, axis=n.int("axis"))


@op
class Softmax:
    """Softmax of beta * x along an axis."""

    in0 = tensor()
    out0 = result()
    axis = axis(LAST)
    beta = f32(default=1.0)
    infer = same
    lower = _softmax_onnx
    kind = Kind.SOFTMAX
    moves = Moves.AXES
    output_range = (0.0, 1.0)


@op
class LogSoftmax:
    """Logarithm of the softmax of beta * x along an axis."""

    in0 = tensor()
    out0 = result()
    axis = axis()
    beta = f32(default=1.0)
    infer = same
    lower = _softmax_onnx
    moves = Moves.AXES


def _masked_shape(n: Node) -> list[Shape]:
    shape, mask, compressed = n.x(0).shape, n.x(1).shape, n.enum("mode") == "COMPRESSED"
    if mask != (shape[0], shape[-1]) or (compressed and shape[-2] != shape[-1]):
        raise ShapeError(f"{n.where}: the mask {list(mask)} does not fit the data {list(shape)}")
    return same(n)


def _masked_softmax_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    batch, _, _, channels = n.x(0).shape
    if n.enum("mode") == "UNCOMPRESSED":
        return b.op("Softmax", b.op("Add", x[0], b.reshape(x[1], (batch, 1, 1, channels))), axis=-1)
    keep = _same_sequence(n, b, x[1])
    lowest, zero = scalar_like(n, b, -65504.0), scalar_like(n, b, 0.0)  # the lowest that float16 has, too
    return b.op("Where", keep, b.op("Softmax", b.op("Where", keep, x[0], lowest), axis=-1), zero)


def _same_sequence(n: Node, b: Body, lengths: str) -> str:
    """[batch, 1, i, j]: whether positions i and j lie in the same of the sequences of those lengths."""
    batch, _, _, count = n.x(0).shape
    ends = b.op("CumSum", b.cast(lengths, np.int64), b.const(1, np.int64))
    place = b.const(np.arange(count).reshape(1, -1, 1), np.int64)
    over = b.cast(b.op("LessOrEqual", b.reshape(ends, (batch, 1, count)), place), np.int64)
    number = b.op("ReduceSum", over, b.ints(2), keepdims=0)  # of the sequences that end before a position
    row, column = (b.reshape(number, s) for s in ((batch, 1, count, 1), (batch, 1, 1, count)))
    inside = b.op("Less", column, b.const(count, np.int64))  # behind the last sequence there is none
    return b.op("And", b.op("Equal", row, column), inside)


@op
class MaskedSoftmax:
    """Softmax of x + mask along the last axis, or within the sequences whose lengths the mask holds."""

    in0 = tensor(4)
    mask = tensor(2)
    out0 = result()
    mode = enum("UNCOMPRESSED", UNCOMPRESSED=0, COMPRESSED=1)
    infer = _masked_shape
    lower = _masked_softmax_onnx
    output_range = (0.0, 1.0)


# -- Hadamard ------------------------------------------------------------------------------------------------


def _hadamard_shape(n: Node) -> list[Shape]:
    size = n.x(0).shape[-1] if n.x(0).shape else 0
    if size < 1 or size & (size - 1):
        raise ShapeError(f"{n.where}: the last axis of {list(n.x(0).shape)} must be a power of two")
    return same(n)


def _hadamard(bits: int, scale: float = 1.0) -> Array:
    matrix = np.full((1, 1), scale)
    for _ in range(bits):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _hadamard_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """The matrix is a Kronecker product of two small ones: work and memory grow with the root of the size."""
    shape, dtype = n.x(0).shape, n.x(0).dtype.numpy
    bits = shape[-1].bit_length() - 1
    left, right = _hadamard(bits // 2), _hadamard(bits - bits // 2, n.float("scale"))
    square = b.reshape(x[0], (*shape[:-1], len(left), len(right)))
    product = b.op("MatMul", b.const(left, dtype), b.op("MatMul", square, b.const(right, dtype)))
    return b.reshape(product, shape)


@op
class HadamardTransform:
    """The last axis times the Hadamard matrix (Sylvester's order) times scale."""

    in0 = tensor()
    out0 = result()
    scale = f32(default=1.0)
    infer = _hadamard_shape
    lower = _hadamard_onnx
