"""Resizing of images."""

from __future__ import annotations

from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import Value


@translates("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(
    t: Translation, x: Value, size: Value, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Value:
    wanted = t.ints(size, "the size")
    if x.rank != 4 or len(wanted) != 2 or min(wanted) < 1:
        t.refuse(f"an image {list(x.shape)} cannot be resized to {list(wanted)}")
    op = "ResizeBilinear" if t.op == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    shape = (x.shape[0], *wanted, x.shape[3])
    return t(op, x, align_corners=align_corners, half_pixel_centers=half_pixel_centers, shape=shape)
