"""Convolutions and their transposes, in one, two and three dimensions, and the matrix that they move over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import BIAS, WEIGHT, Kind, flag, op, result, tensor, u32
from openqnn.ops.shape_rules import declared, positive, vector, window


def per_dim(n: Node, name: str, dims: int, default: int = 1) -> tuple[int, ...]:
    """A parameter with one entry per spatial axis; the 1-D ops have a scalar instead."""
    value = n.params.get(name, default)
    return cast("tuple[int, ...]", value) if isinstance(value, tuple) else (cast(int, value),) * dims


def pads_of(n: Node, dims: int) -> tuple[tuple[int, ...], ...]:
    """pad_amount as rows (before, after), also for the 1-D ops, which keep a single row."""
    return n.rows("pad_amount") if dims > 1 else (n.ints("pad_amount"),)


def onnx_pads(rows: Sequence[Sequence[int]]) -> list[int]:
    """ONNX lists all leading pads, then all trailing ones."""
    return [r[0] for r in rows] + [r[1] for r in rows]


def _conv_shape(n: Node, out_channels: int) -> list[Shape]:
    x, w = n.x(0).shape, n.x(1).shape
    dims = len(x) - 2
    positive(n, "stride", "dilation")
    vector(n, 2, out_channels)
    stride, dilation, pads = per_dim(n, "stride", dims), per_dim(n, "dilation", dims), pads_of(n, dims)
    spatial = [window(x[i + 1], w[i], stride[i], pads[i], dilation[i]) for i in range(dims)]
    if min(spatial) <= 0:
        sizes = f"the filter {list(w[:dims])} is larger than the padded input {list(x[1:-1])}"
        raise ShapeError(f"{n.where}: {sizes}")
    return [(x[0], *spatial, out_channels)]


def conv_shape(n: Node) -> list[Shape]:
    channels, per_group, group = n.x(0).shape[-1], n.x(1).shape[-2], n.int("group")
    if per_group * group != channels:
        raise ShapeError(f"{n.where}: {channels} input channels do not fit {group} group(s) of {per_group}")
    out = n.x(1).shape[-1]
    if group == 0 or out % group:
        raise ShapeError(f"{n.where}: {out} output channels cannot be shared by {group} group(s)")
    return _conv_shape(n, out)


def depthwise_shape(n: Node) -> list[Shape]:
    channels, out = n.x(0).shape[-1], n.x(1).shape[-1]
    if n.x(1).shape[-2] != 1 or not channels or out % channels:
        raise ShapeError(f"{n.where}: the filter {list(n.x(1).shape)} does not fit {channels} channels")
    return _conv_shape(n, out)


def conv_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    dims = n.x(0).rank - 2
    group = n.int("group") if "group" in n.params else n.x(0).shape[-1]
    return b.op(
        "Conv", *x, strides=per_dim(n, "stride", dims), dilations=per_dim(n, "dilation", dims),
        pads=onnx_pads(pads_of(n, dims)), group=group,
    )  # fmt: skip


def transpose_conv_shape(n: Node) -> list[Shape]:
    x, w = n.x(0).shape, n.x(1).shape
    dims, group = len(x) - 2, n.int("group")
    positive(n, "stride", "dilation", "group")
    vector(n, 2, w[-1] * group)
    if w[-2] != x[-1] or x[-1] % group:
        raise ShapeError(f"{n.where}: the filter {list(w)} does not fit {x[-1]} channels in {group} group(s)")
    stride, dilation, pads = per_dim(n, "stride", dims), per_dim(n, "dilation", dims), pads_of(n, dims)
    extra = per_dim(n, "output_padding", dims, 0)
    reach = [dilation[i] * (w[i] - 1) + 1 for i in range(dims)]
    sizes = [(x[i + 1] - 1) * stride[i] + reach[i] - sum(pads[i]) + extra[i] for i in range(dims)]
    if min(sizes) <= 0:
        raise ShapeError(f"{n.where}: pad_amount {pads} leaves nothing of the output")
    return [(x[0], *sizes, w[-1] * group)]


def transpose_conv_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    dims = n.x(0).rank - 2
    return b.op(
        "ConvTranspose", *x, strides=per_dim(n, "stride", dims), dilations=per_dim(n, "dilation", dims),
        pads=onnx_pads(pads_of(n, dims)), output_padding=per_dim(n, "output_padding", dims, 0),
        group=n.int("group"),
    )  # fmt: skip


def conv_macs(n: Node) -> int:
    """Each output element costs one filter column."""
    w = n.x(1).shape
    return n.out.size * (n.x(1).size // w[-1])


def transpose_conv_macs(n: Node) -> int:
    """Each input element meets every filter tap of its group."""
    return n.x(0).size * (n.x(1).size // n.x(1).shape[-2])


@op
class Conv1d:
    """1-D convolution of an NWC signal by a WIO filter; stride and dilation are scalars."""

    in0 = tensor(3, layout="NWC", onnx="NCW")
    weight = tensor(3, layout="WIO", onnx="OIW", role=WEIGHT, channel_axis=2)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NWC", onnx="NCW")
    stride = u32()
    pad_amount = u32(2)
    group = u32(default=1)
    dilation = u32(default=1)
    infer = conv_shape
    lower = conv_onnx
    macs = conv_macs
    kind = Kind.CONVOLUTION


@op
class Conv2d:
    """2-D convolution of an NHWC image by an HWIO filter."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    weight = tensor(4, layout="HWIO", onnx="OIHW", role=WEIGHT, channel_axis=3)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NHWC", onnx="NCHW")
    stride = u32(2)
    pad_amount = u32(2, 2)
    group = u32(default=1)
    dilation = u32(2, default=(1, 1))
    reuse_sparse_indices = flag(False)
    infer = conv_shape
    lower = conv_onnx
    macs = conv_macs
    kind = Kind.CONVOLUTION


@op
class Conv3d:
    """3-D convolution of an NDHWC volume by a DHWIO filter."""

    in0 = tensor(5, layout="NDHWC", onnx="NCDHW")
    weight = tensor(5, layout="DHWIO", onnx="OIDHW", role=WEIGHT, channel_axis=4)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NDHWC", onnx="NCDHW")
    stride = u32(3)
    pad_amount = u32(3, 2)
    group = u32(default=1)
    dilation = u32(3, default=(1, 1, 1))
    reuse_sparse_indicies = flag(False)  # QNN spells it so
    infer = conv_shape
    lower = conv_onnx
    macs = conv_macs
    kind = Kind.CONVOLUTION


@op
class DepthWiseConv1d:
    """1-D convolution with filters of their own for every channel; stride and dilation are scalars."""

    in0 = tensor(3, layout="NWC", onnx="NCW")
    weight = tensor(3, layout="WIO", onnx="OIW", role=WEIGHT, channel_axis=2)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NWC", onnx="NCW")
    stride = u32()
    pad_amount = u32(2)
    dilation = u32(default=1)
    infer = depthwise_shape
    lower = conv_onnx
    macs = conv_macs
    kind = Kind.CONVOLUTION


@op
class DepthWiseConv2d:
    """2-D convolution with filters of their own for every channel."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    weight = tensor(4, layout="HWIO", onnx="OIHW", role=WEIGHT, channel_axis=3)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NHWC", onnx="NCHW")
    stride = u32(2)
    pad_amount = u32(2, 2)
    dilation = u32(2, default=(1, 1))
    infer = depthwise_shape
    lower = conv_onnx
    macs = conv_macs
    kind = Kind.CONVOLUTION


@op
class TransposeConv1d:
    """1-D transposed convolution; stride and output_padding are scalars."""

    in0 = tensor(3, layout="NWC", onnx="NCW")
    weight = tensor(3, layout="WIO", onnx="IOW", role=WEIGHT, channel_axis=2)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NWC", onnx="NCW")
    stride = u32()
    pad_amount = u32(2)
    group = u32(default=1)
    output_padding = u32(default=0)
    infer = transpose_conv_shape
    lower = transpose_conv_onnx
    macs = transpose_conv_macs


@op
class TransposeConv2d:
    """2-D transposed convolution; output_padding extends the bottom and the right."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    weight = tensor(4, layout="HWIO", onnx="IOHW", role=WEIGHT, channel_axis=3)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NHWC", onnx="NCHW")
    stride = u32(2)
    pad_amount = u32(2, 2)
    group = u32(default=1)
    output_padding = u32(2, default=(0, 0))
    infer = transpose_conv_shape
    lower = transpose_conv_onnx
    macs = transpose_conv_macs


@op
class TransposeConv3d:
    """3-D transposed convolution."""

    in0 = tensor(5, layout="NDHWC", onnx="NCDHW")
    weight = tensor(5, layout="DHWIO", onnx="IODHW", role=WEIGHT, channel_axis=4)
    bias = tensor(1, role=BIAS, optional=True)
    out0 = result(layout="NDHWC", onnx="NCDHW")
    stride = u32(3)
    pad_amount = u32(3, 2)
    dilation = u32(3, default=(1, 1, 1))
    group = u32(default=1)
    output_padding = u32(3, default=(0, 0, 0))
    infer = transpose_conv_shape
    lower = transpose_conv_onnx
    macs = transpose_conv_macs


# -- the matrix that a convolution multiplies ----------------------------------------------------------------


def _positions(n: Node, image: Sequence[int]) -> list[int]:
    """How many places the kernel takes along height and width of an image."""
    positive(n, "kernel_size", "stride", "dilation")
    kernel, stride, dilation = n.ints("kernel_size"), n.ints("stride"), n.ints("dilation")
    counts = [window(image[i], kernel[i], stride[i], n.rows("pad_amount")[i], dilation[i]) for i in range(2)]
    if min(counts) <= 0:
        raise ShapeError(f"{n.where}: the kernel {list(kernel)} is larger than the image {list(image)}")
    return counts


def _im2col_shape(n: Node) -> list[Shape]:
    batch, height, width, channels = n.x(0).shape
    rows, columns = _positions(n, (height, width))
    return [(batch, channels * n.ints("kernel_size")[0] * n.ints("kernel_size")[1], rows * columns)]


def _im2col_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    """One gather per image axis gives every kernel tap at every position."""
    counts = _positions(n, n.x(0).shape[1:3])
    (top, bottom), (left, right) = n.rows("pad_amount")
    data = b.op("Pad", x[0], b.ints(0, 0, top, left, 0, 0, bottom, right))
    for i, axis in enumerate((2, 4)):
        taps = np.arange(n.ints("kernel_size")[i])[:, None] * n.ints("dilation")[i]
        starts = np.arange(counts[i])[None] * n.ints("stride")[i]
        data = b.op("Gather", data, b.const(taps + starts, np.int64), axis=axis)
    return b.reshape(b.transpose(data, (0, 1, 2, 4, 3, 5)), _im2col_shape(n)[0])


def _col2im_shape(n: Node) -> list[Shape]:
    image = declared(n)[0]
    if len(image) != 4:
        raise ShapeError(f"{n.where}: the output {list(image)} is no NHWC image")
    rows, columns = _positions(n, image[1:3])
    kernel = n.ints("kernel_size")
    expected = (image[0], image[3] * kernel[0] * kernel[1], rows * columns)
    if n.x(0).shape != expected:
        got = list(n.x(0).shape)
        raise ShapeError(f"{n.where}: {got} does not fold to {list(image)}; that needs {list(expected)}")
    return [image]


def _col2im_onnx(n: Node, b: Body, x: Sequence[str]) -> str:
    return b.op(
        "Col2Im", x[0], b.ints(*n.out.shape[1:3]), b.ints(*n.ints("kernel_size")), strides=n.ints("stride"),
        dilations=n.ints("dilation"), pads=onnx_pads(n.rows("pad_amount")),
    )  # fmt: skip


@op
class Im2Col:
    """The windows of an image as columns: [batch, channel * kernel, positions], channel outermost."""

    in0 = tensor(4, layout="NHWC", onnx="NCHW")
    out0 = result()
    kernel_size = u32(2)
    stride = u32(2)
    pad_amount = u32(2, 2)
    dilation = u32(2, default=(1, 1))
    infer = _im2col_shape
    lower = _im2col_onnx


@op
class Col2Im:
    """Columns added up at their windows of an image, whose size is declared."""

    in0 = tensor(3)
    out0 = result(layout="NHWC", onnx="NCHW")
    kernel_size = u32(2)
    stride = u32(2)
    pad_amount = u32(2, 2)
    dilation = u32(2, default=(1, 1))
    infer = _col2im_shape
    lower = _col2im_onnx
