"""Padding of ATen, and channels that become blocks of the image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from openqnn.frontends.onnx.pad import padded
from openqnn.frontends.torch.promotion import typed
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import Term, TorchTranslation
from openqnn.ir import Value

# -- padding -------------------------------------------------------------------------------------------------


def _rows(t: TorchTranslation, x: Value, pads: Sequence[int]) -> list[list[int]]:
    """torch counts axes from the last one."""
    if len(pads) % 2 or len(pads) // 2 > x.rank:
        t.refuse(f"pad={list(pads)} does not fit {list(x.shape)}")
    rows = [[0, 0] for _ in x.shape]
    for i in range(len(pads) // 2):
        rows[x.rank - 1 - i] = [pads[2 * i], pads[2 * i + 1]]
    return rows


@translates("constant_pad_nd")
def constant_pad(t: TorchTranslation, x: Value, pad: list[int], value: Term = 0) -> Value:
    return padded(t, x, _rows(t, x, pad), "constant", typed(t, value, x.dtype))


@translates("pad")
def pad(
    t: TorchTranslation, x: Value, pad: list[int], mode: str = "constant", value: float | None = None
) -> Value:
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in names:
        t.refuse(f"mode={mode!r} is not known")
    if mode in ("reflect", "replicate") and min(pad, default=0) < 0:
        return _padded_and_cut(t, x, _rows(t, x, pad), names[mode])
    return padded(t, x, _rows(t, x, pad), names[mode], typed(t, value or 0, x.dtype))


def _padded_and_cut(t: TorchTranslation, x: Value, rows: Sequence[Sequence[int]], mode: str) -> Value:
    """What is repeated is that of the whole data, also where a side is cut."""
    for axis, (before, after) in enumerate(rows):
        more = (max(0, before), max(0, after))
        places = np.pad(np.arange(x.shape[axis], dtype=np.int32), more, mode=mode)  # type: ignore[call-overload]
        places = places[max(0, -before) : places.size - max(0, -after)]
        if places.size != x.shape[axis] or before or after:
            x = t.gather(x, t.constant(places), axis=axis)
    return x


@translates(*(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def mirror_pad(t: TorchTranslation, x: Value, padding: list[int]) -> Value:
    return pad(t, x, padding, "reflect" if t.op.startswith("refl") else "replicate")


# -- blocks --------------------------------------------------------------------------------------------------


@translates("pixel_shuffle")
def pixel_shuffle(t: TorchTranslation, x: Value, upscale_factor: int) -> Value:
    r, (*outer, channels, height, width) = upscale_factor, x.shape
    if r < 1 or channels % (r * r):
        t.refuse(f"{channels} channels are no multiple of {r} * {r}")
    image = t.to_last(t.reshape(x, (prod(outer), channels, height, width)))
    y = t("DepthToSpace", image, block_size=(r, r), mode="CRD")
    return t.reshape(t.to_first(y), (*outer, channels // (r * r), height * r, width * r))


@translates("pixel_unshuffle")
def pixel_unshuffle(t: TorchTranslation, x: Value, downscale_factor: int) -> Value:
    r, (*outer, channels, height, width) = downscale_factor, x.shape
    if r < 1 or height % r or width % r:
        t.refuse(f"{height} by {width} are no multiples of {r}")
    apart = t.reshape(x, (prod(outer) * channels, height // r, r, width // r, r))
    turned_ = t.transpose(apart, (0, 2, 4, 1, 3))
    return t.reshape(turned_, (*outer, channels * r * r, height // r, width // r))


@translates("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(t: TorchTranslation, x: Value, groups: int) -> Value:
    n, channels, *rest = x.shape
    if groups < 1 or channels % groups:
        t.refuse(f"{groups} groups do not divide {channels} channels")
    apart = t.reshape(x, (n, groups, channels // groups, prod(rest)))
    return t.reshape(t.transpose(apart, (0, 2, 1, 3)), x.shape)
