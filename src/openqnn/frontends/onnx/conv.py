"""Convolutions. ONNX is channel-first; the transposes around each op are taken away again by the layout pass.

Over one axis they are convolutions of an image with one row: libQnnCpu computes Conv1d wrongly for most
shapes, and other libraries have no such op at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from math import prod

import numpy as np

from openqnn.frontends.compositions import cut
from openqnn.frontends.onnx.matmul import whole, whole_number
from openqnn.frontends.onnx.quant import dequantized, quantized
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import DType, Value

LARGEST = (1 << 31) - 1  # QNN's parameters have 32 bits


def spatial_pads(
    t: Translation, auto_pad: str, pads: Sequence[int] | None, sizes: Sequence[int], kernel: Sequence[int],
    strides: Sequence[int], dilations: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    """Rows (before, after) per spatial axis, with auto_pad worked out."""
    rows = _pad_rows(t, auto_pad, pads, sizes, kernel, strides, dilations)
    if max(chain(strides, dilations, *rows), default=0) > LARGEST:
        t.refuse(f"strides, dilations or pads are larger than {LARGEST}")
    return rows


def _pad_rows(
    t: Translation, auto_pad: str, pads: Sequence[int] | None, sizes: Sequence[int], kernel: Sequence[int],
    strides: Sequence[int], dilations: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    dims = len(kernel)
    if auto_pad in ("NOTSET", ""):
        flat = list(pads) if pads else [0] * (2 * dims)
        if len(flat) != 2 * dims or min(flat, default=0) < 0:
            t.refuse(f"pads={flat} should be {2 * dims} numbers that are not negative")
        return [[flat[i], flat[i + dims]] for i in range(dims)]
    if auto_pad == "VALID":
        return [[0, 0] for _ in range(dims)]
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        t.refuse(f"auto_pad={auto_pad} is not known")
    rows: list[list[int]] = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
        small, large = total // 2, total - total // 2
        rows.append([small, large] if auto_pad == "SAME_UPPER" else [large, small])
    return rows


def check_dims(t: Translation, x: Value, w: Value, *lists: Sequence[int] | None) -> int:
    """How many spatial axes there are; every list must have one positive entry for each."""
    dims = x.rank - 2
    if dims not in (1, 2, 3):
        t.refuse(f"a convolution over {dims} spatial axes has no QNN op")
    if w.rank != x.rank:
        t.refuse(f"a filter {list(w.shape)} does not fit data {list(x.shape)}")
    if any(v is not None and (len(v) != dims or min(v) < 1) for v in lists):
        t.refuse(f"strides and dilations need {dims} positive entries each")
    return dims


def _row(t: Translation, x: Value) -> Value:
    """A signal as an image with one row; images stay as they are."""
    return t.reshape(x, (*x.shape[:2], 1, x.shape[2])) if x.rank == 3 else x


def _unrow(t: Translation, x: Value, rank: int) -> Value:
    return t.reshape(x, (*x.shape[:2], x.shape[3])) if rank == 3 else x


def _widened(dims: int, *lists: list[int]) -> list[list[int]]:
    """Entries for two axes from those of one."""
    return [[1, *v] if dims == 1 else v for v in lists]


@translates("Conv")
def conv(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    dims = check_dims(t, x, w, strides, dilations)
    strides, dilations = strides or [1] * dims, dilations or [1] * dims
    rows = spatial_pads(t, auto_pad, pads, x.shape[2:], w.shape[2:], strides, dilations)
    if dims == 1:
        rows = [[0, 0], *rows]
    strides, dilations = _widened(dims, strides, dilations)
    image, filters = _row(t, x), _row(t, w)
    filters = t.transpose(filters, (*range(2, image.rank), 1, 0))
    depthwise = group == x.shape[1] and group > 1 and w.shape[1] == 1 and dims < 3
    convolved = t.depthwise_conv if depthwise else partial(t.conv, group=group)
    y = convolved(t.to_last(image), filters, bias, stride=strides, pad_amount=rows, dilation=dilations)
    return _unrow(t, t.to_first(y), x.rank)


# -- transposed ----------------------------------------------------------------------------------------------


def _transposed_pads(
    t: Translation, auto_pad: str, pads: list[int] | None, full: list[int], wanted: list[int] | None,
    same: list[int],
) -> tuple[list[list[int]], list[int]]:  # fmt: skip
    """Rows (before, after) of what is cut off the full result, and what is missing behind its end."""
    dims = len(full)
    if wanted is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = same
    if wanted is None:
        return spatial_pads(t, auto_pad, pads, full, full, [1] * dims, [1] * dims), [0] * dims
    rows: list[list[int]] = []
    for size, target in zip(full, wanted, strict=True):
        total = max(0, size - target)
        small, large = total // 2, total - total // 2
        rows.append([small, large] if auto_pad == "SAME_UPPER" else [large, small])
    return rows, [max(0, target - size) for size, target in zip(full, wanted, strict=True)]


def _spread(t: Translation, w: Value, dilations: Sequence[int]) -> Value:
    """A filter with zeros between its taps: QNN's transposed convolutions of images have no dilation."""
    if all(d == 1 for d in dilations):
        return w
    if w.data is None:
        return _spread_at_run_time(t, w, dilations)
    sizes = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    wide = np.zeros((*w.shape[:2], *sizes), w.data.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in dilations))] = w.data
    return t.constant(wide, w.name)


def _spread_at_run_time(t: Translation, w: Value, dilations: Sequence[int]) -> Value:
    """Along each axis: d - 1 zeros behind every tap, but for the last."""
    for axis, d in enumerate(dilations, start=2):
        shape, k = w.shape, w.shape[axis]
        apart = t.reshape(w, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        amount = [[0, d - 1 if i == axis + 1 else 0] for i in range(apart.rank)]
        padded = t.pad(apart, amount)
        w = cut(t, t.reshape(padded, (*shape[:axis], k * d, *shape[axis + 1 :])), axis, 0, d * (k - 1) + 1)
    return w


@translates("ConvTranspose")
def conv_transpose(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None, output_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    dims = check_dims(t, x, w, strides, dilations)
    strides, dilations = strides or [1] * dims, dilations or [1] * dims
    extra = output_padding or [0] * dims
    wanted = None if output_shape is None else list(output_shape)[-dims:]
    if any(row is not None and len(row) != dims for row in (extra, wanted)):
        t.refuse(f"output_padding and output_shape need {dims} entries")
    sizes, kernel = x.shape[2:], w.shape[2:]
    full = [(sizes[i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 + extra[i] for i in range(dims)]
    same = [sizes[i] * strides[i] for i in range(dims)]
    rows, missing = _transposed_pads(t, auto_pad, pads, full, wanted, same)
    extra = np.add(extra, missing).tolist()
    more = {"dilation": dilations} if dims == 3 else {}
    filters = _row(t, w if dims == 3 else _spread(t, w, dilations))
    if dims == 1:
        rows, strides, extra = [[0, 0], *rows], [1, *strides], [0, *extra]
    image = _row(t, x)
    filters = t.transpose(filters, (*range(2, image.rank), 0, 1))
    y = t.transpose_conv(
        t.to_last(image), filters, bias, stride=strides, pad_amount=rows, group=group, output_padding=extra,
        **more,
    )  # fmt: skip
    return _unrow(t, t.to_first(y), x.rank)


# -- integers ------------------------------------------------------------------------------------------------


def _per_channel(t: Translation, v: Value | None, rank: int) -> Value | None:
    """One number per filter, lined up with the filters."""
    return t.reshape(v, (v.size, *(1,) * (rank - 1))) if v is not None and v.size > 1 else v


@translates("ConvInteger")
def conv_integer(
    t: Translation, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None,
    *, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """Padding is the zero point, which is 0 once that is taken away."""
    data, filters = whole(t, x, x_zero), whole(t, w, _per_channel(t, w_zero, w.rank))
    y = conv(
        t, data, filters, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides
    )
    return whole_number(t, y)


@translates("QLinearConv")
def qlinear_conv(
    t: Translation, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """Dequantize, convolve, quantize: backends with integer kernels put the three together again."""
    data, filters = dequantized(t, x, x_scale, x_zero), dequantized(t, w, w_scale, w_zero, axis=0)
    real_bias = None if bias is None else _real_bias(t, bias, x_scale, w_scale)
    y = conv(
        t, data, filters, real_bias, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads,
        strides=strides,
    )  # fmt: skip
    return quantized(t, y, y_scale, y_zero, y_zero.dtype)


def _real_bias(t: Translation, bias: Value, x_scale: Value, w_scale: Value) -> Value:
    """A 32 bit bias counts in steps of the product of the two scales."""
    if x_scale.data is not None and w_scale.data is not None:
        step = np.asarray(x_scale.data, np.float64).ravel() * np.asarray(w_scale.data, np.float64).ravel()
        scale = t.constant(step.astype(np.float32).reshape(() if step.size == 1 else -1))
        zero = t.constant(np.zeros(scale.shape, np.int32))
        return dequantized(t, bias, scale, zero, axis=0)
    scale = t.mul(t.reshape(x_scale, (x_scale.size,)), t.reshape(w_scale, (w_scale.size,)))
    return t.mul(t.cast(bias, DType.FLOAT_32), scale)


# -- columns -------------------------------------------------------------------------------------------------


@translates("Col2Im")
def col2im(
    t: Translation, x: Value, image_shape: Value, block_shape: Value, *, dilations: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    image, block = list(t.ints(image_shape, "image_shape")), list(t.ints(block_shape, "block_shape"))
    dims = len(image)
    if dims not in (1, 2) or len(block) != dims or x.rank != 3 or min(*image, *block) < 1:
        t.refuse(f"columns {list(x.shape)} cannot be folded to an image {image}: QNN folds one or two axes")
    strides, dilations = strides or [1] * dims, dilations or [1] * dims
    rows = spatial_pads(t, "NOTSET", pads, image, block, strides, dilations)
    if x.shape[1] % prod(block) or len(strides) != dims or len(dilations) != dims:
        t.refuse(f"columns {list(x.shape)} do not hold blocks {block}")
    shape = (x.shape[0], *image, x.shape[1] // prod(block))
    if dims == 1:
        rows, shape = [[0, 0], *rows], (shape[0], 1, *shape[1:])
    block, strides, dilations = _widened(dims, block, strides, dilations)
    y = t("Col2Im", x, kernel_size=block, stride=strides, pad_amount=rows, dilation=dilations, shape=shape)
    return _unrow(t, t.to_first(y), 2 + dims)
