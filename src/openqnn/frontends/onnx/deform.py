"""Deformable convolution. QNN's own op is in no library that can be tried, so it is put together: GridSample
takes every tap of every window from its displaced place, and a matrix product weighs the taps."""

from __future__ import annotations

import numpy as np

from openqnn.frontends.compositions import cut
from openqnn.frontends.onnx.conv import check_dims, spatial_pads
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Array, Value
from openqnn.ops.shape_rules import window


def _places(
    sizes: list[int], out: list[int], kernel: list[int], starts: list[int], step: list[list[int]]
) -> Array:
    """Where taps lie without displacement, [taps * rows, columns, (x, y)], as GridSample counts."""
    lines: list[Array] = []
    for i in range(2):
        taps = np.arange(kernel[i])[:, None] * step[1][i] + np.arange(out[i]) * step[0][i] - starts[i]
        lines.append((2.0 * taps + 1) / sizes[i] - 1)
    y = lines[0][:, None, :, None]  # tap row, tap column, row, column
    x = lines[1][None, :, None, :]
    both = np.stack(np.broadcast_arrays(x, y), axis=-1)
    return both.reshape(kernel[0] * kernel[1] * out[0], out[1], 2)


def _columns(
    t: Translation, x: Value, offset: Value, mask: Value | None, places: Array, taps: int, groups: int
) -> Value:
    """The taps of every window, [images, channels, taps, positions], with one image per offset group."""
    batch, channels, height, width = x.shape
    images, positions = batch * groups, places.shape[0] * places.shape[1] // taps
    shifts = t.transpose(t.reshape(offset, (images, taps, 2, positions)), (0, 1, 3, 2))
    shifts = t.reshape(shifts, (images, *places.shape))
    swapped = t.concat([cut(t, shifts, 3, 1, 2), cut(t, shifts, 3, 0, 1)], axis=3)  # ONNX has y before x
    scale = t.constant(np.asarray([2 / width, 2 / height], x.dtype.numpy))
    grid = t.add(t.mul(swapped, scale), t.constant(places[None].astype(x.dtype.numpy)))
    image = t.to_last(t.reshape(x, (images, channels // groups, height, width)))
    found = t.grid_sample(image, grid, align_corners=False)
    if mask is not None:
        found = t.mul(found, t.reshape(mask, (images, *places.shape[:2], 1)))
    return t.transpose(t.reshape(found, (images, taps, positions, channels // groups)), (0, 3, 1, 2))


def _divides(channels: int, units: int, group: int, offset_group: int) -> bool:
    if min(group, offset_group) < 1:
        return False
    return not (channels % offset_group or channels % group or units % group)


@translates("DeformConv")
def deform_conv(
    t: Translation, x: Value, w: Value, offset: Value, bias: Value | None = None,
    mask: Value | None = None, *, dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, offset_group: int = 1, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    if check_dims(t, x, w, strides, dilations) != 2:
        t.refuse(f"data of rank {x.rank}: only images can be deformed")
    strides = strides or [1, 1]
    dilations = dilations or [1, 1]
    kernel, sizes = list(w.shape[2:]), list(x.shape[2:])
    rows = spatial_pads(t, "NOTSET", pads, sizes, kernel, strides, dilations)
    out = [window(sizes[i], kernel[i], strides[i], rows[i], dilations[i]) for i in range(2)]
    (batch, channels), taps, units = x.shape[:2], kernel[0] * kernel[1], w.shape[0]
    if min(out) < 1 or not _divides(channels, units, group, offset_group) or w.shape[1] * group != channels:
        t.refuse(f"a filter {list(w.shape)} in {group} group(s) does not fit data {list(x.shape)}")
    wanted = {"offset": (offset, 2), "mask": (mask, 1)}
    for name, (value, each) in wanted.items():
        shape = (batch, offset_group * taps * each, *out)
        if value is not None and value.shape != shape:
            t.refuse(f"{name} has shape {list(value.shape)}, {list(shape)} expected")
    places = _places(sizes, out, kernel, [r[0] for r in rows], [strides, dilations])
    columns = _columns(t, x, offset, mask, places, taps, offset_group)
    columns = t.reshape(columns, (batch, group, channels // group * taps, out[0] * out[1]))
    weight = t.reshape(w, (1, group, units // group, channels // group * taps))
    y = t.matmul(weight, columns)
    y = t.reshape(y, (batch, units, *out))
    return y if bias is None else t.add(y, t.reshape(bias, (bias.size, 1, 1)))
