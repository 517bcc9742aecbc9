"""How HTP computes layers: which of its kernels a convolution, a matrix product or a batch norm goes to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.ir import Array, Node
from openqnn.ops.conv import per_dim
from openqnn.ops.onnx_writer import Body
from openqnn.ops.shape_rules import last_axis
from openqnn.runtime.cpu.arithmetic import Compute
from openqnn.targets.htp.kernels.bytes.products import product, rounded_product, smallest_factor
from openqnn.targets.htp.kernels.words import batchnorm
from openqnn.targets.htp.kernels.words.curves import is_wide
from openqnn.targets.htp.kernels.words.products import wide_product

DEPTHWISE = "DepthWiseConv2d"
BLOCK = 32  # channels that HTP keeps together
APART = 7  # powers of two between scales of weights that do not share it, one half and above being alike
SMALLEST_FACTOR = 2.0**-16  # from a product to steps of the output, in the kernels that just round


def rows(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Rows of the data times a matrix of weights."""
    return product(n, b, x, compute, channel=-1) or wide_product(n, b, x, compute, channel=-1)


def convolution(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Filters over all channels of a group."""
    return product(n, b, x, compute, channel=1) or wide_product(n, b, x, compute, channel=1)


def transposed_convolution(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Filters that spread each input over several places; in 16 bits the result is just rounded."""
    return product(n, b, x, compute, channel=1)


def depthwise(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """HTP has other kernels, which round once, for strides of two and for several filters per channel."""
    strides, several = set(per_dim(n, "stride", n.x(0).rank - 2)), n.x(1).shape[-1] != n.x(0).shape[-1]
    if is_wide(n.x(0)):
        rounds = several or (strides == {2} and n.x(1).dtype.bits <= 8 and _share_kernel(n))
        return None if rounds else wide_product(n, b, x, compute, channel=1)
    if (several or strides == {2}) and smallest_factor(n) >= SMALLEST_FACTOR:
        return rounded_product(n, b, x, compute, channel=1)
    return product(n, b, x, compute, channel=1, fuses=strides == {1})


def _share_kernel(n: Node) -> bool:
    """Whether the scales of all channels are near enough for the kernel that rounds once."""
    encoding = n.x(1).encoding
    if encoding is None or smallest_factor(n) < SMALLEST_FACTOR:
        return False
    powers = np.floor(np.log2(encoding.scale))
    return n.x(1).shape[-1] <= BLOCK or min(powers.max(), -1) - powers.min() < APART


def near_scales(n: Node, scales: Array) -> Array:
    """Scales of 8-bit weights beside 16-bit data, the least of them raised where HTP makes huge numbers.

    It does so with few channels that are too far apart for the kernel that rounds once; with more, it has
    another one.
    """
    if n.op != DEPTHWISE or set(per_dim(n, "stride", 2)) != {2} or n.x(1).shape[-1] > BLOCK:
        return scales
    return np.maximum(scales, np.exp2(np.floor(np.log2(scales.max())) - APART + 1))


def channels(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """A batch norm: in 8 bits it is a layer with one filter of one tap for each channel."""
    axis = last_axis(n)
    if axis in (1, n.x(0).rank - 1) and n.x(0).dtype.bits == batchnorm.BYTE:
        return product(n, b, x, compute, axis, channels=n.x(1).size)
    return batchnorm.batchnorm(n, b, x, compute)
