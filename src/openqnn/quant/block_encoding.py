"""Weights of four bits in blocks along their input channels: low-power blockwise quantization.

The scale of a block is a small integer multiple of its channel's: a chip makes bytes of the weight, one scale
for each channel, so products cost what those of 8-bit weights do. Which weights can have them is said in the
limits of the target.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openqnn.ir import Array, Blocks, Encoding
from openqnn.qnn.net import block_axis
from openqnn.quant.encode import signed_scales
from openqnn.quant.recipe import BLOCK_WIDTH

BITS, EXPANDED = BLOCK_WIDTH, 8  # of a stored value, and of it times the multiple of its block
MULTIPLES = 1 << (EXPANDED - BITS)


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
