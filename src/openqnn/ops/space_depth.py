"""Ops that exchange blocks of the image, channels and batch."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import LAST, Moves, axis, enum, op, result, tensor, u32
from openqnn.ops.shape import constant_pad
from openqnn.ops.shape_rules import positive


def _shuffle_shape(n: Node) -> list[Shape]:
    positive(n, "num_groups")
    size = n.x(0).shape[n.int("axis")]
    if size % n.int("num_groups"):
        raise ShapeError(f"{n.where}: {size} channels cannot be split into {n.int('num_groups')} groups")
    return [n.x(0).shape]


def _shuffle_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    shape, a, groups = n.x(0).shape, n.int("axis"), n.int("num_groups")
    blocks = b.reshape(x[0], (*shape[:a], groups, shape[a] // groups, *shape[a + 1 :]))
    swapped = b.transpose(blocks, (*range(a), a + 1, a, *range(a + 2, len(shape) + 1)))
    return b.reshape(swapped, shape)


@op
class ChannelShuffle:
    """An axis seen as [groups, rest], with the two exchanged."""

    in0 = tensor()
    out0 = result()
    num_groups = u32()
    axis = axis(LAST)
    infer = _shuffle_shape
    lower = _shuffle_onnx
    moves = Moves.AXES
    keeps_values = True


def _divided(n: Node, total: int, parts: int, what: str) -> int:
    positive(n, "block_size")
    if total % parts:
        raise ShapeError(f"{n.where}: {what} {total} of {list(n.x(0).shape)} is no multiple of {parts}")
    return total // parts


def _depth_to_space_shape(n: Node) -> list[Shape]:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    return [(batch, height * bh, width * bw, _divided(n, channels, bh * bw, "channel count"))]


def _depth_to_space_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    (batch, height, width, _), (bh, bw) = n.x(0).shape, n.ints("block_size")
    _, out_height, out_width, channels = n.out.shape
    if n.enum("mode") == "DCR":
        blocks = b.transpose(b.reshape(x[0], (batch, bh, bw, channels, height, width)), (0, 3, 4, 1, 5, 2))
    else:
        blocks = b.transpose(b.reshape(x[0], (batch, channels, bh, bw, height, width)), (0, 1, 4, 2, 5, 3))
    return b.reshape(blocks, (batch, channels, out_height, out_width))


@op
class DepthToSpace:
    """Channels to blocks of the image; DCR has the block outermost in the channel, CRD the channel."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    block_size = u32(2)
    mode = enum("DCR", DCR=0, CRD=1)
    infer = _depth_to_space_shape
    lower = _depth_to_space_onnx
    keeps_values = True


def _space_to_depth_shape(n: Node) -> list[Shape]:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    return [(batch, _divided(n, height, bh, "height"), _divided(n, width, bw, "width"), channels * bh * bw)]


def _space_to_depth_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    blocks = b.reshape(x[0], (batch, channels, height // bh, bh, width // bw, bw))
    perm = (0, 3, 5, 1, 2, 4) if n.enum("mode") == "DCR" else (0, 1, 3, 5, 2, 4)
    return b.reshape(b.transpose(blocks, perm), (batch, channels * bh * bw, height // bh, width // bw))


@op
class SpaceToDepth:
    """Blocks of the image to channels; DCR has the block outermost in the channel, CRD the channel."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    block_size = u32(2)
    mode = enum("DCR", DCR=0, CRD=1)
    infer = _space_to_depth_shape
    lower = _space_to_depth_onnx
    keeps_values = True


def _batch_to_space_shape(n: Node) -> list[Shape]:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    (top, bottom), (left, right) = n.rows("crops")
    size = (height * bh - top - bottom, width * bw - left - right)
    if min(size) <= 0:
        raise ShapeError(f"{n.where}: crops {n.rows('crops')} leave nothing of {list(n.x(0).shape)}")
    return [(_divided(n, batch, bh * bw, "batch"), *size, channels)]


def _batch_to_space_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    images = batch // (bh * bw)
    blocks = b.transpose(b.reshape(x[0], (bh, bw, images, channels, height, width)), (2, 3, 4, 0, 5, 1))
    whole = b.reshape(blocks, (images, channels, height * bh, width * bw))
    starts = [row[0] for row in n.rows("crops")]
    ends = [start + size for start, size in zip(starts, n.out.shape[1:3], strict=True)]
    return b.op("Slice", whole, b.ints(*starts), b.ints(*ends), b.ints(2, 3))


@op
class BatchToSpace:
    """Batch to blocks of the image, then cropped."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    block_size = u32(2)
    crops = u32(2, 2, default=((0, 0), (0, 0)))
    infer = _batch_to_space_shape
    lower = _batch_to_space_onnx
    keeps_values = True


def _space_to_batch_shape(n: Node) -> list[Shape]:
    (batch, height, width, channels), (bh, bw) = n.x(0).shape, n.ints("block_size")
    rows, columns = n.rows("pad_amount")
    new_height = _divided(n, height + sum(rows), bh, "padded height")
    return [(batch * bh * bw, new_height, _divided(n, width + sum(columns), bw, "padded width"), channels)]


def _space_to_batch_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    batch, channels, (bh, bw) = n.x(0).shape[0], n.x(0).shape[-1], n.ints("block_size")
    out_batch, height, width, _ = n.out.shape
    padded = constant_pad(n, b, x[0], [(0, 0), (0, 0), *n.rows("pad_amount")], 0)
    blocks = b.transpose(b.reshape(padded, (batch, channels, height, bh, width, bw)), (3, 5, 0, 1, 2, 4))
    return b.reshape(blocks, (out_batch, channels, height, width))


@op
class SpaceToBatch:
    """Blocks of the image, padded with zeros, to batch."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result(layout="NHWC", onnx="NCHW")
    block_size = u32(2)
    pad_amount = u32(2, 2, default=((0, 0), (0, 0)))
    infer = _space_to_batch_shape
    lower = _space_to_batch_onnx
    keeps_values = True
