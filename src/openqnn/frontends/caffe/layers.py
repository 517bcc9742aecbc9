"""Layers with weights, and windows: convolution, inner product, pooling, resizing.

They share ONNX's translators: both frameworks are channel-first and count pads and windows alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from openqnn.frontends.caffe.table import translates
from openqnn.frontends.onnx import conv as onnx_conv
from openqnn.frontends.onnx import pool as onnx_pool
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

LARGEST_ZOOM = 1 << 10


def spatial(
    t: Translation, x: Value, listed: list[int] | None, h: int | None, w: int | None, default: int
) -> list[int]:
    """One number for every spatial axis: given by one for all, one each, or by height and width."""
    dims = x.rank - 2
    if h is not None or w is not None:
        found = [default if h is None else h, default if w is None else w]
    else:
        found = list(listed or [default])
        found = found * dims if len(found) == 1 else found
    if len(found) != dims or min(found) < 0:
        t.refuse(f"sizes {found} do not fit data of rank {x.rank}")
    return found


def weights(t: Translation, blobs: Sequence[Value], bias_term: bool, size: int) -> tuple[Value, Value | None]:
    """The weight and the bias of a layer with so many outputs."""
    if len(blobs) < 1 + bool(bias_term):
        t.refuse(f"{len(blobs)} blobs are given, a weight{' and a bias' if bias_term else ''} are expected")
    if not bias_term:
        return blobs[0], None
    if blobs[1].size != size:
        t.refuse(f"a bias {list(blobs[1].shape)} does not fit num_output {size}")
    return blobs[0], t.reshape(blobs[1], (size,))


@translates("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
def convolution(
    t: Translation, x: Value, *, blobs: Sequence[Value], num_output: int, bias_term: bool = True,
    kernel_size: list[int] | None = None, kernel_h: int | None = None, kernel_w: int | None = None,
    pad: list[int] | None = None, pad_h: int | None = None, pad_w: int | None = None,
    stride: list[int] | None = None, stride_h: int | None = None, stride_w: int | None = None,
    dilation: list[int] | None = None, group: int = 1, axis: int = 1,
) -> Value:  # fmt: skip
    weight, bias = _filters(t, x, blobs, bias_term, num_output, axis)
    pads = spatial(t, x, pad, pad_h, pad_w, 0)
    strides, dilations = spatial(t, x, stride, stride_h, stride_w, 1), spatial(t, x, dilation, None, None, 1)
    if t.op != "Convolution" and group == 1:
        group = x.shape[1]
    if weight.shape[0] != num_output or group < 1 or weight.shape[1] * group != x.shape[1]:
        t.refuse(f"a weight {list(weight.shape)} in {group} groups does not fit data {list(x.shape)}")
    return onnx_conv.conv(
        t, x, weight, bias, dilations=dilations, group=group, pads=[*pads, *pads], strides=strides
    )


def _filters(
    t: Translation, x: Value, blobs: Sequence[Value], bias_term: bool, outputs: int, axis: int
) -> tuple[Value, Value | None]:
    if x.rank < 3 or t.axis(axis, x.rank) != 1:
        t.refuse(f"axis {axis} of data {list(x.shape)} is not where QNN has the channels")
    weight, bias = weights(t, blobs, bias_term, outputs)
    if weight.rank != x.rank:
        t.refuse(f"a weight {list(weight.shape)} does not fit data {list(x.shape)}")
    return weight, bias


@translates("Deconvolution")
def deconvolution(
    t: Translation, x: Value, *, blobs: Sequence[Value], num_output: int, bias_term: bool = True,
    kernel_size: list[int] | None = None, kernel_h: int | None = None, kernel_w: int | None = None,
    pad: list[int] | None = None, pad_h: int | None = None, pad_w: int | None = None,
    stride: list[int] | None = None, stride_h: int | None = None, stride_w: int | None = None,
    dilation: list[int] | None = None, group: int = 1, axis: int = 1,
) -> Value:  # fmt: skip
    weight, bias = _filters(t, x, blobs, bias_term, num_output, axis)
    pads = spatial(t, x, pad, pad_h, pad_w, 0)
    strides, dilations = spatial(t, x, stride, stride_h, stride_w, 1), spatial(t, x, dilation, None, None, 1)
    if weight.shape[0] != x.shape[1] or group < 1 or weight.shape[1] * group != num_output:
        t.refuse(f"a weight {list(weight.shape)} in {group} groups does not fit data {list(x.shape)}")
    return onnx_conv.conv_transpose(
        t, x, weight, bias, dilations=dilations, group=group, pads=[*pads, *pads], strides=strides
    )


@translates("InnerProduct")
def inner_product(
    t: Translation, x: Value, *, blobs: Sequence[Value], num_output: int, bias_term: bool = True,
    axis: int = 1, transpose: bool = False,
) -> Value:  # fmt: skip
    """Rows of everything behind the axis; older files write the matrix with two axes of one in front."""
    first = t.axis(axis, x.rank)
    weight, bias = weights(t, blobs, bias_term, num_output)
    inner, outer = prod(x.shape[first:]), x.shape[:first]
    wanted = (inner, num_output) if transpose else (num_output, inner)
    if weight.shape[-2:] != wanted or weight.size != prod(wanted):
        t.refuse(f"a weight {list(weight.shape)} does not fit data {list(x.shape)}: {list(wanted)} expected")
    matrix = t.reshape(weight, wanted)
    rows = t.reshape(x, (prod(outer), inner))
    y = t.fully_connected(rows, t.transpose(matrix, (1, 0)) if transpose else matrix, bias)
    return t.reshape(y, (*outer, num_output))


@translates("Embed")
def embed(
    t: Translation, x: Value, *, blobs: Sequence[Value], input_dim: int, num_output: int,
    bias_term: bool = True,
) -> Value:  # fmt: skip
    from openqnn.ir import DType

    weight, bias = weights(t, blobs, bias_term, num_output)
    if weight.size != input_dim * num_output:
        t.refuse(f"a weight {list(weight.shape)} has no {input_dim} rows of {num_output}")
    y = t.gather(t.reshape(weight, (input_dim, num_output)), t.cast(x, DType.INT_32), axis=0)
    return y if bias is None else t.add(y, bias)


# -- windows -------------------------------------------------------------------------------------------------


@translates("Pooling")
def pooling(
    t: Translation, x: Value, *, pool: str = "MAX", global_pooling: bool = False,
    kernel_size: list[int] | None = None, kernel_h: int | None = None, kernel_w: int | None = None,
    pad: list[int] | None = None, pad_h: int | None = None, pad_w: int | None = None,
    stride: list[int] | None = None, stride_h: int | None = None, stride_w: int | None = None,
    round_mode: str = "CEIL", ceil_mode: bool = True,
) -> Value:  # fmt: skip
    """Windows reach over the end by default; a mean counts the padding, but nothing behind it."""
    if pool not in ("MAX", "AVE"):
        t.refuse(f"pool: {pool} has no QNN op", hint="QNN has MAX and AVE")
    if global_pooling:
        whole = onnx_pool.global_max_pool if pool == "MAX" else onnx_pool.global_average_pool
        return whole(t, x)
    kernel, pads = spatial(t, x, kernel_size, kernel_h, kernel_w, 0), spatial(t, x, pad, pad_h, pad_w, 0)
    strides = spatial(t, x, stride, stride_h, stride_w, 1)
    up = int(round_mode == "CEIL" and ceil_mode)
    if pool == "MAX":
        return onnx_pool.max_pool(
            t, x, kernel_shape=kernel, pads=[*pads, *pads], strides=strides, ceil_mode=up
        )
    return onnx_pool.average_pool(
        t, x, kernel_shape=kernel, pads=[*pads, *pads], strides=strides, ceil_mode=up, count_include_pad=1
    )


@translates("ROIPooling")
def roi_pooling(
    t: Translation, x: Value, rois: Value, *, pooled_h: int, pooled_w: int, spatial_scale: float = 1.0
) -> Value:
    rows = t.reshape(rois, (prod(rois.shape[:-3]) * prod(rois.shape[-3:]) // 5, 5))
    return onnx_pool.max_roi_pool(t, x, rows, pooled_shape=[pooled_h, pooled_w], spatial_scale=spatial_scale)


# -- resizing ------------------------------------------------------------------------------------------------


def _resized(t: Translation, op: str, x: Value, sizes: Sequence[int], **params: bool) -> Value:
    if x.rank != 4 or min(sizes) < 1 or max(sizes) > LARGEST_ZOOM * max(x.shape[2:]):
        t.refuse(f"an image {list(x.shape)} cannot be resized to {list(sizes)}")
    return t.to_first(t(op, t.to_last(x), shape=(x.shape[0], *sizes, x.shape[1]), **params))


@translates("Interp")
def interp(
    t: Translation, x: Value, *, height: int = 0, width: int = 0, zoom_factor: int = 1,
    shrink_factor: int = 1, pad_beg: int = 0, pad_end: int = 0,
) -> Value:  # fmt: skip
    """Linear interpolation between the corners."""
    if pad_beg or pad_end or zoom_factor < 1 or shrink_factor < 1:
        t.refuse("pads, and factors below one, are not translated")
    sizes = [(d - 1) // shrink_factor + 1 for d in x.shape[2:]]
    sizes = [d + (d - 1) * (zoom_factor - 1) for d in sizes]
    sizes = [height, width] if height and width else sizes
    return _resized(t, "ResizeBilinear", x, sizes, align_corners=True)


@translates("Upsample")
def upsample(t: Translation, x: Value, *, scale: int = 2) -> Value:
    """Every pixel `scale` times in both directions; the kind that undoes a pooling has a mask, too."""
    return _resized(t, "ResizeNearestNeighbor", x, [d * scale for d in x.shape[2:]])
