"""Versions 2.0.0 and 2.1.0: one list of tensors, each in the terms of ONNX's QuantizeLinear.

    "encodings": [{"name": "x", "output_dtype": "uint8", "y_scale": 0.02, "y_zero_point": 128},
                  {"name": "conv.weight", "output_dtype": "int8", "y_scale": [...], "axis": 0}]

The zero point has ONNX's sign. Nothing says which tensors are parameters, and floats are said by leaving them
out. 2.1.0 may have an object for `y_scale`: the inputs x, x_scale and axis of the DequantizeLinear that gives
it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import cast

from openqnn.formats.encodings.fields import Fields, Json, Place, check, objects, plain
from openqnn.formats.encodings.record import Blocks, TensorEncoding

SECTION = "encodings"
KNOWN = (
    "name", "output_dtype", "y_scale", "y_zero_point", "axis", "block_size", "per_block_int_scale",
    "per_channel_float_scale",
)  # fmt: skip
NESTED_KNOWN = ("x", "x_scale", "x_zero_point", "input_dtype", "axis", "block_size")
_TYPE = re.compile(r"(u?)int(\d+)")


def read(place: Place, content: dict[str, Json], *, nested: bool) -> list[TensorEncoding]:
    """`nested`: whether the version knows an object for `y_scale`."""
    if SECTION not in content:
        place.fail("missing", SECTION)
    return [_tensor(place, item, nested) for item in objects(place, content[SECTION], "tensors")]


def _tensor(place: Place, item: dict[str, Json], nested: bool) -> TensorEncoding:
    name = Fields(place, item, KNOWN).text("name")
    place = place.at(name)
    f = Fields(place, item, KNOWN)
    signed, bits = _type(place, f.text("output_dtype"), "output_dtype")
    if "per_block_int_scale" in f:
        return _low_power(place, f, name, signed, bits)
    if isinstance(f.get("y_scale"), dict):
        if not nested:
            place.fail("an object is for version 2.1.0 and above", "y_scale")
        return _nested(place, f, name, signed, bits)
    scales, shape = f.nested("y_scale")
    zeros, zero_shape = f.nested("y_zero_point") if "y_zero_point" in f else ([0.0] * len(scales), shape)
    if zero_shape != shape:
        place.fail(f"its shape {list(zero_shape)} is not that of 'y_scale', {list(shape)}", "y_zero_point")
    blocks = _blocks(place, f, shape) if "block_size" in f else None
    axis = None
    if blocks is not None:
        axis = blocks.channel_axis
    elif len(scales) > 1 or "axis" in f:
        axis = _axis(place, f, shape)
    offsets = tuple(plain(-z) for z in zeros)
    entry = TensorEncoding(
        name, bits, signed=signed, scales=tuple(scales), offsets=offsets, axis=axis, blocks=blocks
    )
    checked = check(place, entry, bits="output_dtype", scale="y_scale", offset="y_zero_point")
    return replace(checked, symmetric=signed and checked.centred)


def _type(place: Place, text: str, field: str) -> tuple[bool, int]:
    match = _TYPE.fullmatch(text)
    if match is None:
        place.fail(
            f"QNN has no encodings of type '{text}'", field, hint="known: int4, uint8, int16, int32..."
        )
    return not match[1], int(match[2])


def _axis(place: Place, f: Fields, shape: tuple[int, ...]) -> int | None:
    if len(shape) > 1:
        place.fail("nested lists are for blocks, and there is no 'block_size'", "y_scale")
    if "axis" not in f:
        place.fail(f"missing, while there are {prod(shape)} scales", "axis")
    if not shape:
        place.fail("there is one scale, for the whole tensor", "axis")
    return f.integer("axis")


def _blocks(place: Place, f: Fields, shape: tuple[int, ...]) -> Blocks:
    size, axis = f.integer("block_size"), f.integer("axis")
    if size < 1:
        place.fail(f"blocks have at least one element, found {size}", "block_size")
    if not -len(shape) <= axis < len(shape):
        place.fail(f"the scales {list(shape)} have no axis {axis}", "axis")
    return Blocks(size, axis % len(shape), shape)


def _low_power(place: Place, f: Fields, name: str, signed: bool, bits: int) -> TensorEncoding:
    multiples, shape = f.nested("per_block_int_scale")
    scales, _ = f.nested("per_channel_float_scale")
    blocks = _blocks(place, f, shape)
    return _compose(place, name, (signed, bits, 2 * bits), blocks, multiples, scales, "per_block_int_scale")


def _nested(place: Place, f: Fields, name: str, signed: bool, bits: int) -> TensorEncoding:
    inner = Fields(place, cast("dict[str, Json]", f.get("y_scale")), NESTED_KNOWN)
    if "block_size" in inner:
        place.fail("QNN has no scales whose own scales are by block", "block_size")
    if "x_zero_point" in inner and any(inner.nested("x_zero_point")[0]):
        place.fail("QNN has no zero points of scales", "x_zero_point")
    multiples, shape = inner.nested("x")
    scales, _ = inner.nested("x_scale")
    width = _type(place, inner.text("input_dtype"), "input_dtype")[1] if "input_dtype" in inner else bits
    if "y_zero_point" in f and any(f.nested("y_zero_point")[0]):
        place.fail("scales that are quantized themselves go with a zero point of 0", "y_zero_point")
    blocks = _blocks(place, f, shape)
    return _compose(place, name, (signed, bits, bits + width), blocks, multiples, scales, "x")


def _compose(
    place: Place, name: str, widths: tuple[bool, int, int], blocks: Blocks, multiples: list[float],
    scales: list[float], field: str,
) -> TensorEncoding:  # fmt: skip
    """A tensor whose blocks have a multiple of the scale of their channel."""
    signed, bits, expanded = widths
    if not signed:
        place.fail("low-power blocks are of signed integers", "output_dtype")
    if any(m < 1 or m != round(m) for m in multiples):
        place.fail("expected whole numbers from 1 on", field)
    assert blocks.axis is not None
    along = blocks.shape[blocks.axis]
    if len(multiples) != len(scales) * along:
        place.fail(
            f"{len(multiples)} blocks do not fit {len(scales)} channels with {along} blocks each", field
        )
    made = Blocks(blocks.size, blocks.axis, blocks.shape, tuple(int(m) for m in multiples), expanded)
    entry = TensorEncoding(
        name, bits, symmetric=True, signed=True, scales=tuple(scales), offsets=(0,) * len(scales),
        axis=made.channel_axis, blocks=made,
    )  # fmt: skip
    return check(place, entry, bits="output_dtype", scale="y_scale", offset="y_zero_point")


# -- writing -------------------------------------------------------------------------------------------------


def write(entry: TensorEncoding, place: Place, *, nested: bool) -> dict[str, Json]:
    """The entry of a tensor; InputError where the version cannot say it."""
    if not entry.scales:
        place.fail(
            "only a width is given, and versions from 2.0.0 want a scale", hint="versions below 1.0.0 do not"
        )
    made: dict[str, Json] = {
        "name": entry.name,
        "output_dtype": f"{'' if entry.signed else 'u'}int{entry.bitwidth}",
    }
    blocks = entry.blocks
    if blocks is not None:
        if blocks.axis is None or not blocks.shape:
            place.fail("the axis of the blocks is not known, only that it is the input channels", hint=_MODEL)
        made |= {"axis": blocks.axis, "block_size": blocks.size}
        if blocks.low_power:
            return made | _low_power_fields(entry, blocks, place, nested=nested)
        made["y_scale"] = _fold(entry.scales, blocks.shape)
    elif entry.axis is None:
        made["y_scale"] = entry.scales[0]
    elif isinstance(entry.axis, int):
        made |= {"axis": entry.axis, "y_scale": list(entry.scales)}
    else:
        place.fail("the axis of the channels is not known, only that it is the output channels", hint=_MODEL)
    if any(entry.offsets):
        made["y_zero_point"] = _zero_points(entry)
    return made


def _zero_points(entry: TensorEncoding) -> Json:
    zeros = [plain(-offset) for offset in entry.offsets]
    if entry.blocks is not None:
        return _fold(zeros, entry.blocks.shape)
    return zeros[0] if entry.axis is None else _fold(zeros, ())


_MODEL = "give the model, which tells: --source on the command line; version 1.0.0 does not need it"


def _low_power_fields(
    entry: TensorEncoding, blocks: Blocks, place: Place, *, nested: bool
) -> dict[str, Json]:
    grid = _fold(blocks.multiples, blocks.shape)
    if nested:
        width = blocks.expanded_bits - entry.bitwidth
        inner: dict[str, Json] = {"x": grid, "x_scale": list(entry.scales), "input_dtype": f"uint{width}"}
        axis = blocks.channel_axis if blocks.channel_axis is not None else entry.axis
        return {"y_scale": inner | ({"axis": axis} if isinstance(axis, int) else {})}
    if blocks.expanded_bits != 2 * entry.bitwidth:
        place.fail(
            f"version 2.0.0 has LPBQ only where the expanded width ({blocks.expanded_bits}) is twice the "
            f"stored one ({entry.bitwidth})", hint="choose 2.1.0",
        )  # fmt: skip
    assert blocks.axis is not None
    one = tuple(1 if i == blocks.axis % len(blocks.shape) else n for i, n in enumerate(blocks.shape))
    return {"per_block_int_scale": grid, "per_channel_float_scale": _fold(entry.scales, one)}


def _fold(values: tuple[float, ...] | list[float] | tuple[int, ...], shape: tuple[int, ...]) -> Json:
    """A flat list as nested ones."""
    if len(shape) < 2:
        return list(values)
    step = len(values) // shape[0]
    return [_fold(values[i : i + step], shape[1:]) for i in range(0, len(values), step)]
