"""Version 1.0.0: two lists of tensors, all numbers of a tensor in flat lists.

    "param_encodings": [{"name": "conv.weight", "enc_type": "PER_CHANNEL", "dtype": "INT", "bw": 8,
                         "is_sym": true, "scale": [...], "offset": [...]}]

Channels are the output channels, blocks divide the input channels: the format implies it. Integers are stored
from 0 on. Where numbers are by block, the blocks of one channel follow each other.
"""

from __future__ import annotations

import math

from openqnn.formats.encodings.fields import Fields, Json, Place, check, objects, plain
from openqnn.formats.encodings.record import OUTPUT_CHANNEL, Blocks, Kind, TensorEncoding
from openqnn.formats.encodings.v0 import SECTIONS

TENSOR, CHANNEL, BLOCK, LPBQ = "PER_TENSOR", "PER_CHANNEL", "PER_BLOCK", "LPBQ"
KNOWN = (
    "name", "enc_type", "dtype", "bw", "is_sym", "scale", "offset", "block_size", "zero_point_shift",
    "compressed_bw", "per_block_int_scale",
)  # fmt: skip


def read(place: Place, content: dict[str, Json]) -> list[TensorEncoding]:
    found: list[TensorEncoding] = []
    for kind, section in SECTIONS.items():
        if section not in content:
            place.fail("missing; both sections must be there, and may be empty", section)
        found += [_tensor(place, item, kind) for item in objects(place, content[section], "tensors")]
    return found


def _tensor(place: Place, item: dict[str, Json], kind: Kind) -> TensorEncoding:
    name = Fields(place, item, KNOWN).text("name")
    place = place.at(name)
    f = Fields(place, item, KNOWN)
    form = f.choice("enc_type", (TENSOR, CHANNEL, BLOCK, LPBQ))
    if f.choice("dtype", ("INT", "FLOAT")) == "FLOAT":
        if form != TENSOR:
            place.fail(f"floats are {TENSOR}", "enc_type")
        made = TensorEncoding(name, f.integer("bw"), kind, is_float=True)
        return check(place, made, bits="bw", scale="", offset="")
    return _low_power(place, f, name, kind) if form == LPBQ else _integers(place, f, name, kind, form)


def _integers(place: Place, f: Fields, name: str, kind: Kind, form: str) -> TensorEncoding:
    scales = tuple(f.numbers("scale"))
    if form == TENSOR and len(scales) != 1:
        place.fail(f"{len(scales)} scales, but {TENSOR} has one", "scale")
    entry = TensorEncoding(
        name, f.integer("bw"), kind, symmetric=f.flag("is_sym"), scales=scales,
        offsets=_offsets(place, f, len(scales)), axis=None if form == TENSOR else OUTPUT_CHANNEL,
        blocks=Blocks(_block_size(place, f)) if form == BLOCK else None,
    )  # fmt: skip
    entry = check(place, entry, bits="bw", scale="scale", offset="offset")
    return entry.as_signed() if entry.symmetric else entry


def _offsets(place: Place, f: Fields, count: int) -> tuple[float, ...]:
    offsets = f.numbers("offset")
    if any(o > 0 for o in offsets):
        place.fail("offsets are zero or below in this version", "offset")
    shift = f.numbers("zero_point_shift") if "zero_point_shift" in f else [0.0]
    if len(shift) not in (1, count):
        place.fail(f"{len(shift)} shifts for {count} scales", "zero_point_shift")
    shifts = shift * len(offsets) if len(shift) == 1 else shift
    return tuple(plain(o + s) for o, s in zip(offsets, shifts, strict=False))


def _block_size(place: Place, f: Fields) -> int:
    size = f.integer("block_size")
    if size < 1:
        place.fail(f"blocks have at least one element, found {size}", "block_size")
    return size


def _low_power(place: Place, f: Fields, name: str, kind: Kind) -> TensorEncoding:
    """`bw` is the width of a stored integer together with its block's multiple."""
    bits, expanded = f.integer("compressed_bw"), f.integer("bw")
    scales, multiples = tuple(f.numbers("scale")), f.numbers("per_block_int_scale")
    if expanded < bits:
        place.fail(f"{expanded} bits are fewer than the {bits} of 'compressed_bw'", "bw")
    if any(m < 1 or m != round(m) for m in multiples):
        place.fail("expected whole numbers from 1 on", "per_block_int_scale")
    if len(multiples) % len(scales):
        place.fail(
            f"{len(multiples)} blocks cannot be shared by {len(scales)} channels", "per_block_int_scale"
        )
    if "offset" in f and any(o != -(1 << (expanded - 1)) for o in f.numbers("offset")):
        place.fail(f"LPBQ is symmetric, with an offset of {-(1 << (expanded - 1))}", "offset")
    blocks = Blocks(_block_size(place, f), multiples=tuple(int(m) for m in multiples), expanded_bits=expanded)
    return check(
        place,
        TensorEncoding(
            name, bits, kind, symmetric=True, signed=True, scales=scales, offsets=(0,) * len(scales),
            axis=OUTPUT_CHANNEL, blocks=blocks,
        ),
        bits="compressed_bw", scale="scale", offset="offset",
    )  # fmt: skip


# -- writing -------------------------------------------------------------------------------------------------


def write(entry: TensorEncoding, place: Place) -> dict[str, Json]:
    """The entry of a tensor; InputError where the version cannot say it."""
    head: dict[str, Json] = {"name": entry.name}
    if entry.is_float:
        return {**head, "enc_type": TENSOR, "dtype": "FLOAT", "bw": entry.bitwidth}
    if not entry.scales:
        place.fail(
            "only a width is given, and version 1.0.0 wants a scale", hint="versions below 1.0.0 do not"
        )
    head |= {"dtype": "INT", "bw": entry.bitwidth, "is_sym": entry.symmetric}
    if entry.blocks is not None and entry.blocks.low_power:
        return {**head, **_low_power_fields(entry, entry.blocks)}
    offsets = entry.unsigned_offsets
    whole = [math.floor(o) for o in offsets]
    shifts = [o - w for o, w in zip(offsets, whole, strict=True)]
    head |= {"scale": _ordered(entry.scales, entry.blocks), "offset": _ordered(whole, entry.blocks)}
    if any(shifts):
        head["zero_point_shift"] = _ordered(shifts, entry.blocks)
    if entry.blocks is not None:
        return {**head, "enc_type": BLOCK, "block_size": entry.blocks.size}
    return {**head, "enc_type": TENSOR if entry.axis is None else CHANNEL}


def _low_power_fields(entry: TensorEncoding, blocks: Blocks) -> dict[str, Json]:
    return {
        "enc_type": LPBQ,
        "bw": blocks.expanded_bits,
        "compressed_bw": entry.bitwidth,
        "scale": list(entry.scales),
        "offset": [-(1 << (blocks.expanded_bits - 1))] * len(entry.scales),
        "per_block_int_scale": _ordered(blocks.multiples, blocks),
        "block_size": blocks.size,
    }


def _ordered(values: tuple[float, ...] | list[int] | list[float], blocks: Blocks | None) -> list[float]:
    """A flat list with the blocks of one channel together: those of matrices [in, out] change places."""
    if blocks is None or blocks.grid() == tuple(range(len(blocks.shape))):
        return list(values)
    rows, columns = blocks.shape
    return [values[r * columns + c] for c in range(columns) for r in range(rows)]
