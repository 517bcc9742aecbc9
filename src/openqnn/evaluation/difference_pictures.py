"""Pictures of the difference of two tensors: the reference, the other one and what lies between."""

from __future__ import annotations

import io
from math import ceil, sqrt
from typing import Any

import numpy as np

from openqnn.ir import Array

SIDE = 360  # pixels of each of the three pictures, at least
MARGIN, HEAD = 10, 40


def difference_picture(reference: Array, found: Array, name: str) -> bytes:
    """A PNG. Both tensors share one scale of grey; the difference goes from white to red at its largest."""
    from PIL import Image, ImageDraw

    x, y = (_plane(np.asarray(a, np.float64)) for a in (reference, found))
    low, high = float(np.nanmin(x, initial=0.0)), float(np.nanmax(x, initial=0.0))
    greys = [np.clip((a - low) / ((high - low) or 1.0), 0, 1) * 255 for a in (x, y)]
    gap = np.nan_to_num(np.abs(x - y), posinf=0.0)
    largest = float(gap.max(initial=0.0))
    share = 1 - gap / (largest or 1.0)
    red = np.stack([np.full_like(share, 255), share * 255, share * 255], axis=-1)
    pictures = [Image.fromarray(np.nan_to_num(g).astype(np.uint8)).convert("RGB") for g in greys]
    pictures.append(Image.fromarray(red.astype(np.uint8)))
    factor = max(1, SIDE // max(x.shape))
    width, height = x.shape[1] * factor, x.shape[0] * factor
    sheet: Any = Image.new("RGB", (3 * width + 4 * MARGIN, height + HEAD + MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    titles = ("reference", "found", f"|difference|, largest {largest:.4g}")
    for index, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        left = MARGIN + index * (width + MARGIN)
        sheet.paste(picture.resize((width, height), Image.Resampling.NEAREST), (left, HEAD))
        draw.text((left, 22), title, "black")
    draw.text((MARGIN, 5), f"{name} {list(reference.shape)}", "black")
    data = io.BytesIO()
    sheet.save(data, "PNG")
    return data.getvalue()


def _plane(array: Array) -> Array:
    """Any tensor as rows and columns: images keep theirs, planes below each other; vectors become squares."""
    kept = array.reshape([size for size in array.shape if size > 1] or [1])
    if kept.ndim == 1:
        side = ceil(sqrt(kept.size)) if kept.size > SIDE else kept.size
        padded = np.full(side * ceil(kept.size / side), np.nan)
        padded[: kept.size] = kept
        return padded.reshape(-1, side)
    return kept.reshape(-1, kept.shape[-1])
