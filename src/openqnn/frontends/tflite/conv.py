"""Convolutions, matrix products and pooling of TFLite. Images are NHWC there too; filters are turned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import Value

SAME, VALID = 0, 1


def pads_of(
    t: Translation, padding: int, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    """Rows (before, after) per spatial axis."""
    if min(*strides, *dilations, *kernel) < 1:
        t.refuse(
            f"strides {list(strides)}, dilations {list(dilations)} and filters {list(kernel)} are positive"
        )
    if padding == VALID:
        return [[0, 0] for _ in kernel]
    rows: list[list[int]] = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
        rows.append([total // 2, total - total // 2])
    return rows


def _rank(t: Translation, x: Value, w: Value, rank: int) -> None:
    if x.rank != rank or w.rank != rank:
        t.refuse(f"data {list(x.shape)} and filters {list(w.shape)} should have {rank} axes")


@translates("CONV_2D")
def conv_2d(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, padding: int = 0, stride_w: int = 0,
    stride_h: int = 0, dilation_w_factor: int = 1, dilation_h_factor: int = 1,
) -> Value:  # fmt: skip
    """Filters are [out, height, width, in]."""
    _rank(t, x, w, 4)
    strides, dilations = (stride_h, stride_w), (dilation_h_factor, dilation_w_factor)
    if not w.shape[3] or x.shape[3] % w.shape[3]:
        t.refuse(f"filters {list(w.shape)} do not fit data {list(x.shape)}")
    rows = pads_of(t, padding, x.shape[1:3], w.shape[1:3], strides, dilations)
    group = x.shape[3] // w.shape[3]
    filters = t.transpose(w, (1, 2, 3, 0))
    depthwise = group == x.shape[3] and group > 1
    convolved = t.depthwise_conv if depthwise else partial(t.conv, group=group)
    return convolved(x, filters, bias, stride=strides, pad_amount=rows, dilation=dilations)


@translates("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, padding: int = 0, stride_w: int = 0,
    stride_h: int = 0, dilation_w_factor: int = 1, dilation_h_factor: int = 1,
) -> Value:  # fmt: skip
    """Filters are [1, height, width, channels]; of a single channel they are those of a convolution."""
    _rank(t, x, w, 4)
    if w.shape[0] != 1 or w.shape[3] % x.shape[3]:
        t.refuse(f"filters {list(w.shape)} do not fit data {list(x.shape)}")
    strides, dilations = (stride_h, stride_w), (dilation_h_factor, dilation_w_factor)
    rows = pads_of(t, padding, x.shape[1:3], w.shape[1:3], strides, dilations)
    filters = t.transpose(w, (1, 2, 0, 3))
    convolved = t.depthwise_conv if x.shape[3] > 1 else t.conv
    return convolved(x, filters, bias, stride=strides, pad_amount=rows, dilation=dilations)


def _transposed_pads(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[list[list[int]], list[int]]:
    """What is cut off the full result, and what is missing behind its end."""
    full = [(n - 1) * s + k for n, s, k in zip(sizes, strides, kernel, strict=True)]
    cut = [max(0, f - w) for f, w in zip(full, wanted, strict=True)]
    return [[c // 2, c - c // 2] for c in cut], [max(0, w - f) for f, w in zip(full, wanted, strict=True)]


@translates("TRANSPOSE_CONV")
def transpose_conv(
    t: Translation, output_shape: Value, w: Value, x: Value, bias: Value | None = None, *, padding: int = 0,
    stride_w: int = 0, stride_h: int = 0,
) -> Value:  # fmt: skip
    _rank(t, x, w, 4)
    wanted = _batched(t.ints(output_shape, "the shape of the result"), x)
    if len(wanted) != 4 or min(stride_h, stride_w) < 1:
        t.refuse(f"a result {list(wanted)} with strides {[stride_h, stride_w]} does not fit")
    rows, missing = _transposed_pads(x.shape[1:3], w.shape[1:3], (stride_h, stride_w), wanted[1:3])
    filters = t.transpose(w, (1, 2, 3, 0))
    return t.transpose_conv(
        x, filters, bias, stride=(stride_h, stride_w), pad_amount=rows, output_padding=missing
    )


def _batched(shape: Sequence[int], x: Value) -> list[int]:
    """A shape that the model states for a batch of one holds for others."""
    return [x.shape[0], *shape[1:]]


@translates("CONV_3D")
def conv_3d(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, padding: int = 0, stride_d: int = 0,
    stride_w: int = 0, stride_h: int = 0, dilation_d_factor: int = 1, dilation_w_factor: int = 1,
    dilation_h_factor: int = 1,
) -> Value:  # fmt: skip
    """Filters are [depth, height, width, in, out], as QNN has them."""
    _rank(t, x, w, 5)
    strides = (stride_d, stride_h, stride_w)
    dilations = (dilation_d_factor, dilation_h_factor, dilation_w_factor)
    rows = pads_of(t, padding, x.shape[1:4], w.shape[:3], strides, dilations)
    group = x.shape[4] // max(w.shape[3], 1)
    return t.conv(x, w, bias, stride=strides, pad_amount=rows, dilation=dilations, group=group)


@translates("CONV_3D_TRANSPOSE")
def conv_3d_transpose(
    t: Translation, output_shape: Value, w: Value, x: Value, bias: Value | None = None, *, padding: int = 0,
    stride_d: int = 0, stride_w: int = 0, stride_h: int = 0,
) -> Value:  # fmt: skip
    """Filters are [depth, height, width, out, in]."""
    _rank(t, x, w, 5)
    wanted = _batched(t.ints(output_shape, "the shape of the result"), x)
    strides = (stride_d, stride_h, stride_w)
    rows, missing = _transposed_pads(x.shape[1:4], w.shape[:3], strides, wanted[1:4])
    filters = t.transpose(w, (0, 1, 2, 4, 3))
    return t.transpose_conv(x, filters, bias, stride=strides, pad_amount=rows, output_padding=missing)


# -- products ------------------------------------------------------------------------------------------------


@translates("FULLY_CONNECTED")
def fully_connected(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, weights_format: int = 0,
    keep_num_dims: bool = False,
) -> Value:  # fmt: skip
    """Weights are [out, in], as QNN has them."""
    if weights_format:
        t.refuse("shuffled weights are for one kind of processor only", hint="convert the model without them")
    if w.rank != 2 or not w.shape[1] or x.size % w.shape[1]:
        t.refuse(f"weights {list(w.shape)} do not fit data {list(x.shape)}")
    matrix = t.reshape(x, (x.size // w.shape[1], w.shape[1]))
    if w.data is None:
        y = t.matmul(matrix, w, turn_b=True)
        y = y if bias is None else t.add(y, bias)
    else:
        y = t.fully_connected(matrix, w, bias)
    return t.reshape(y, (*x.shape[:-1], w.shape[0])) if keep_num_dims else y


@translates("BATCH_MATMUL")
def batch_matmul(t: Translation, a: Value, b: Value, *, adj_x: bool = False, adj_y: bool = False) -> Value:
    if min(a.rank, b.rank) < 2:
        t.refuse(f"matrices are expected, not {list(a.shape)} and {list(b.shape)}")
    return t.matmul(a, b, turn_a=adj_x, turn_b=adj_y)


# -- pooling -------------------------------------------------------------------------------------------------


@translates("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D")
def pool_2d(
    t: Translation, x: Value, *, padding: int = 0, stride_w: int = 0, stride_h: int = 0,
    filter_width: int = 0, filter_height: int = 0,
) -> Value:  # fmt: skip
    """Pads do not count in averages."""
    if x.rank != 4:
        t.refuse(f"data {list(x.shape)} should have four axes")
    kernel, strides = (filter_height, filter_width), (stride_h, stride_w)
    rows = pads_of(t, padding, x.shape[1:3], kernel, strides, (1, 1))
    if t.op == "MAX_POOL_2D":
        return t.pool_max(x, kernel, strides, rows)
    if t.op == "AVERAGE_POOL_2D":
        return t.pool_avg(x, kernel, strides, rows)
    return t.sqrt(t.pool_avg(t.square(x), kernel, strides, rows))


def elements(shape: Sequence[int]) -> int:
    return prod(shape)
