"""Resizing and sampling of images of ATen."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.frontends.onnx.resize import Axis, Sampling, resized
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value


def _axes(
    t: TorchTranslation, x: Value, sizes: Sequence[int] | None, scales: Sequence[float | None]
) -> list[Axis]:
    """A scale that was given is the one that coordinates are computed with, else that of the sizes."""
    dims = x.rank - 2
    if sizes is None:
        sizes = [int(d * (s or 1.0)) for d, s in zip(x.shape[2:], scales, strict=True)]
    if len(sizes) != dims or min(sizes, default=0) < 1:
        t.refuse(f"{list(x.shape)} to a size of {list(sizes)}")
    factors = [*scales, *[None] * dims][:dims]
    return [Axis(i + 2, x.shape[i + 2], n, factors[i] or n / x.shape[i + 2]) for i, n in enumerate(sizes)]


@translates("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
            "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")  # fmt: skip
def upsample_nearest(t: TorchTranslation, x: Value, output_size: list[int] | None, **named: object) -> Value:
    exact = "exact" in t.op
    sampling = Sampling(
        "nearest", "half_pixel" if exact else "asymmetric", "round_prefer_ceil" if exact else "floor"
    )
    return resized(t, x, _axes(t, x, output_size, _factors(list(named.values()))), sampling)


def _factors(scales: Sequence[object]) -> list[float | None]:
    flat = [s for scale in scales for s in (scale if isinstance(scale, list) else [scale])]
    return [float(s) if isinstance(s, int | float) else None for s in flat]


@translates("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
            "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")  # fmt: skip
def upsample_linear(
    t: TorchTranslation, x: Value, output_size: list[int] | None, align_corners: bool, **named: object,
) -> Value:  # fmt: skip
    cubic, antialias = "cubic" in t.op, t.op.split(".")[0].endswith("_aa")
    if antialias and align_corners:
        t.refuse("antialias with align_corners has no QNN equivalent")
    sampling = Sampling(
        "cubic" if cubic else "linear", "align_corners" if align_corners else "half_pixel",
        cubic=-0.5 if antialias and cubic else -0.75, antialias=antialias, exclude_outside=antialias,
    )  # fmt: skip
    axes = _axes(t, x, output_size, [] if align_corners and output_size else _factors(list(named.values())))
    return resized(t, x, axes, sampling)


@translates("grid_sampler_2d", "grid_sampler", "grid_sampler_3d")
def grid_sampler(
    t: TorchTranslation,
    x: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    if x.rank != 4:
        t.refuse("sampling in volumes has no QNN op")
    if interpolation_mode not in (0, 1):
        t.refuse("bicubic sampling has no QNN op")
    mode = ("BILINEAR", "NEAREST")[interpolation_mode]
    padding = ("ZEROS", "BORDER", "REFLECTION")[padding_mode]
    return t.to_first(t.grid_sample(t.to_last(x), grid, bool(align_corners), mode, padding))
