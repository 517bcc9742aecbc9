"""Colour conversions behind an input: the application gives camera formats, the model wants RGB or BGR."""

from __future__ import annotations

import numpy as np

from openqnn.errors import UsageError
from openqnn.ir import Graph, Value
from openqnn.ops.layout import inverse
from openqnn.passes.boundary.new_ends import new_input, take_over

CHANNEL = "C"
FLAT = {"nv12": "Nv12ToRgb", "nv21": "Nv21ToRgb"}  # one row of bytes for an image
WITH_ALPHA = {"rgba": "RGBA", "argb32": "ARGB"}
MODEL_COLOURS = ("rgb", "bgr")
IMAGE = "NHWC"


def put_in_colour(graph: Graph, value: Value, colour: tuple[str, str], layout: str) -> bool:
    """Puts the conversion behind an input. True when the input has no image layout any more."""
    given, wanted = colour
    if wanted not in MODEL_COLOURS:
        raise UsageError(f"input '{value.name}': a model expects rgb or bgr, not {wanted}")
    if given == wanted:
        return False
    layout = layout if sorted(layout) == sorted(IMAGE) else _guess(value)
    if not layout or value.shape[layout.index(CHANNEL)] != 3:
        raise UsageError(f"input '{value.name}' {list(value.shape)} is no image of three colours")
    if given in MODEL_COLOURS:
        _flip(graph, value, layout.index(CHANNEL))
    else:
        _convert(graph, value, given, wanted, layout)
    return given in FLAT


def _guess(value: Value) -> str:
    if value.rank != 4:
        return ""
    return "NCHW" if value.shape[1] == 3 else IMAGE


def _flip(graph: Graph, old: Value, axis: int) -> None:
    new, b = new_input(graph, old, old.dtype, old.shape)
    take_over(graph, old, b.gather(new, b.const([2, 1, 0], np.int32), axis), f"{old.name}_flipped")


def _convert(graph: Graph, old: Value, given: str, wanted: str, layout: str) -> None:
    """The source's layout, then channels last around the conversion; the layout pass removes what cancels."""
    to_image = tuple(layout.index(axis) for axis in IMAGE)
    image = tuple(old.shape[a] for a in to_image)
    batch, height, width, _ = image
    if given in FLAT:
        if height % 2 or width % 2:
            raise UsageError(f"input '{old.name}' {list(old.shape)}: {given} images have even sides")
        new, b = new_input(graph, old, old.dtype, (batch, height * width * 3 // 2))
        x = b(FLAT[given], new, shape=image, output_order=wanted.upper())
    else:
        shape = tuple(4 if axis == CHANNEL else d for axis, d in zip(layout, old.shape, strict=True))
        new, b = new_input(graph, old, old.dtype, shape)
        x = new if layout == IMAGE else b.transpose(new, to_image)
        x = b("ArgbToRgb", x, input_order=WITH_ALPHA[given], reverse_output=wanted == "bgr")
    x = x if layout == IMAGE else b.transpose(x, inverse(to_image))
    take_over(graph, old, x, f"{old.name}_{wanted}")
