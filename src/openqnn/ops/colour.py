"""Conversions between colour formats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import DType, Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import Lower, enum, flag, op, result, tensor
from openqnn.ops.shape_rules import declared

# Full-range BT.601 in 1/256 steps, as integer hardware has it: rows R, G, B; columns Y, U, V.
YUV_TO_RGB = np.array([[256, 0, 359], [256, -88, -183], [256, 454, 0]]) / 256
ROUNDING = 0.5  # half a level, which the integer form adds before it drops the fraction


def rgb_shape(n: Node) -> list[Shape]:
    shape = n.x(0).shape
    if shape[-1] != 4:
        raise ShapeError(f"{n.where}: {list(shape)} has no four channels")
    return [(*shape[:-1], 3)]


def argb_to_rgb(n: Node, b: Body, x: Sequence[str]) -> str:
    channels = (1, 2, 3) if n.enum("input_order") == "ARGB" else (0, 1, 2)
    return b.op("Gather", x[0], b.ints(*(channels[::-1] if n.flag("reverse_output") else channels)), axis=3)


def yuv_shape(n: Node) -> list[Shape]:
    """The declared image: the flat input does not tell height from width."""
    (shape, *_), (batch, size) = declared(n), n.x(0).shape
    fits = len(shape) == 4 and (shape[0], shape[3]) == (batch, 3) and shape[1] % 2 == shape[2] % 2 == 0
    if not fits or shape[1] * shape[2] * 3 != size * 2:
        raise ShapeError(f"{n.where}: {list(n.x(0).shape)} bytes do not make an image {list(shape)}")
    return [shape]


def yuv_to_rgb(order: str) -> Lower:
    """A full plane of Y, then pairs of U and V (in that order, or the other) for every 2x2 pixels."""

    def lower(n: Node, b: Body, x: Sequence[str]) -> str:
        batch, height, width, _ = n.out.shape
        dtype = n.x(0).dtype.numpy
        luma, chroma = b.ops("Split", x[0], b.ints(height * width, height * width // 2), count=2, axis=1)
        pairs = b.reshape(chroma, (batch, height // 2, 1, width // 2, 1, 2))
        spread = b.op("Expand", pairs, b.ints(batch, height // 2, 2, width // 2, 2, 2))
        colour = b.op("Sub", b.reshape(spread, (batch, height, width, 2)), b.const(128, dtype))
        yuv = b.op("Concat", b.reshape(luma, (batch, height, width, 1)), colour, axis=3)
        matrix = YUV_TO_RGB[:, ["YUV".index(c) for c in "Y" + order]]
        matrix = matrix[::-1] if n.enum("output_order") == "BGR" else matrix
        mixed = b.op("Add", b.op("MatMul", yuv, b.const(matrix.T, dtype)), b.const(ROUNDING, dtype))
        return b.op("Clip", mixed, b.const(0, dtype), b.const(255, dtype))

    return lower


@op
class ArgbToRgb:
    """Drops the alpha channel."""

    in0 = tensor(4)
    out0 = result()
    input_order = enum("ARGB", ARGB=0, RGBA=1)
    reverse_output = flag()
    infer = rgb_shape
    lower = argb_to_rgb
    keeps_values = True


@op
class Nv12ToRgb:
    """An image of YUV 4:2:0, U before V, as three colours of full resolution."""

    in0 = tensor(2)
    out0 = result()
    output_order = enum(dtype=DType.INT_32, RGB=0, BGR=1)
    infer = yuv_shape
    lower = yuv_to_rgb("UV")


@op
class Nv21ToRgb:
    """An image of YUV 4:2:0, V before U, as three colours of full resolution."""

    in0 = tensor(2)
    out0 = result()
    output_order = enum(dtype=DType.INT_32, RGB=0, BGR=1)
    infer = yuv_shape
    lower = yuv_to_rgb("VU")
