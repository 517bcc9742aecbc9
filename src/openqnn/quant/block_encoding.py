"""Weights of four bits in blocks along their input channels: low-power blockwise quantization.

The scale of a block is a small integer multiple of its channel's: HTP makes bytes of the weight, one scale
for each channel, so products cost what those of 8-bit weights do. It is the only form of blocks that
libQnnHtp computes with. Sizes and filters that it takes without a word and computes wrong are left out here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array, Blocks, Encoding, Node, Value
from openqnn.ops import schema_of
from openqnn.ops.schema import Role
from openqnn.qnn.net import block_axis
from openqnn.quant.encode import signed_scales
from openqnn.quant.recipe import BLOCK_UNIT, BLOCK_WIDTH

BITS, EXPANDED = BLOCK_WIDTH, 8  # of a stored value, and of it times the multiple of its block
LAYERS = ("", "OIHW")  # the weights that HTP has kernels for: plain matrices, and filters of images
MULTIPLES = 1 << (EXPANDED - BITS)


def why_no_blocks(node: Node, value: Value, axis: int | None, size: int) -> str:
    """Why a weight cannot have blocks of that size on HTP; nothing where it can."""
    declared = schema_of(node).operand(node.inputs.index(value))
    if declared.role is not Role.WEIGHT or declared.onnx not in LAYERS:
        return f"{node.op} takes no blocks"
    if declared.onnx and value.shape[:2] != (1, 1):
        return "libQnnHtp computes filters wider than 1x1 wrong: it takes the first tap alone"
    if axis is None:
        return "blocks need a scale for each output channel"
    if size % BLOCK_UNIT:
        return f"libQnnHtp computes blocks of {size} wrong, only multiples of {BLOCK_UNIT} are right"
    inputs = value.shape[block_axis(axis)]
    return f"{inputs} input channels are no multiple of {size}" if inputs % size else ""


def block_encoding(data: Array, axis: int, size: int, least_scale: Array) -> Encoding:
    """The encoding with the largest multiple for the largest block of each channel.

    Multiples of the other blocks are those that lose least.
    """
    inner = block_axis(axis)
    rows = np.moveaxis(data.astype(np.float64), (axis, inner), (0, 1))
    blocks = rows.reshape(rows.shape[0], rows.shape[1] // size, -1)
    largest = np.abs(blocks).max(axis=(1, 2))
    scales = signed_scales(largest, BITS, np.asarray(least_scale) * MULTIPLES) / MULTIPLES
    found = Blocks(inner, size, tuple(_multiples(blocks / scales[:, None, None]).ravel().tolist()))
    return Encoding(tuple(scales.tolist()), (0,) * len(scales), BITS, axis, True, found)


def _multiples(steps: NDArray[np.float64]) -> NDArray[np.int64]:
    """The multiple of each block, [channel, block], of weights in steps of their channel."""
    best, least = np.ones(steps.shape[:2], np.int64), np.full(steps.shape[:2], np.inf)
    half = 1 << (BITS - 1)
    for multiple in range(1, MULTIPLES + 1):
        stored = np.clip(np.rint(steps / multiple), -half, half - 1)
        lost = np.square(steps - stored * multiple).sum(axis=2)
        better = lost < least
        best, least = np.where(better, multiple, best), np.where(better, lost, least)
    return best
