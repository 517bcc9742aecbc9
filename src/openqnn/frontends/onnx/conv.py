"""Convolutions. ONNX is channel-first; the transposes around each op are taken away again by the layout pass."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.frontends.onnx.registry import translates
from openqnn.frontends.onnx.translation import Translation
from openqnn.ir import Value


def spatial_pads(
    t: Translation, auto_pad: str, pads: Sequence[int] | None, sizes: Sequence[int], kernel: Sequence[int],
    strides: Sequence[int], dilations: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    """Rows (before, after) per spatial axis, with auto_pad worked out."""
    dims = len(kernel)
    if auto_pad in ("NOTSET", ""):
        flat = list(pads) if pads else [0] * (2 * dims)
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


@translates("Conv")
def conv(
    t: Translation, x: Value, w: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    dims = x.rank - 2
    if dims not in (1, 2, 3):
        t.refuse(f"a convolution over {dims} spatial axes has no QNN op")
    strides, dilations = strides or [1] * dims, dilations or [1] * dims
    rows = spatial_pads(t, auto_pad, pads, x.shape[2:], w.shape[2:], strides, dilations)
    filters = t.transpose(w, (*range(2, x.rank), 1, 0))
    depthwise = group == x.shape[1] and group > 1 and w.shape[1] == 1 and dims < 3
    kind = f"{'DepthWiseConv' if depthwise else 'Conv'}{dims}d"
    more = {} if depthwise else {"group": group}
    if dims == 1:
        strides, dilations, rows = strides[0], dilations[0], rows[0]
    y = t(kind, t.to_last(x), filters, bias, stride=strides, pad_amount=rows, dilation=dilations, **more)
    return t.to_first(y)
