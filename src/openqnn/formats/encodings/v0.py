"""Versions 0.4 to 0.6.1: one list of encodings per tensor, in a section of activations and one of parameters.

    "param_encodings": {"conv.weight": [{"bitwidth": 8, "is_symmetric": "True", "min": -0.7, "max": 0.7,
                                         "scale": 0.0055, "offset": -128}, ...one for each output channel]}

Integers are stored from 0 on. Older files have the zero point for the offset, above zero; newer ones have the
offset. A file may leave out scale and offset, and give a range or the width alone.
"""

from __future__ import annotations

from typing import Any, cast

from openqnn.formats.encodings.fields import Fields, Json, Place, check, objects, plain
from openqnn.formats.encodings.record import OUTPUT_CHANNEL, Kind, TensorEncoding

SECTIONS = {Kind.ACTIVATION: "activation_encodings", Kind.PARAM: "param_encodings"}
KNOWN = ("bitwidth", "dtype", "is_symmetric", "min", "max", "scale", "offset")


def read(place: Place, content: dict[str, Json]) -> list[TensorEncoding]:
    found: list[TensorEncoding] = []
    for kind, section in SECTIONS.items():
        if section not in content:
            place.fail("missing; both sections must be there, and may be empty", section)
        tensors = content[section]
        if isinstance(tensors, list):
            place.fail('is a list, as in version 1.0.0, but "version" does not say so', section)
        if not isinstance(tensors, dict):
            place.fail("expected an object with a list for each tensor", section)
        named = cast("dict[str, Json]", tensors)
        found += [_tensor(place.at(name), name, kind, listed) for name, listed in named.items()]
    return found


def _rows(place: Place, content: Json) -> list[Fields]:
    """The encodings of a tensor, of which there is one at least."""
    listed = objects(place, [content] if isinstance(content, dict) else content, "encodings")
    if not listed:
        place.fail("its list of encodings is empty")
    return [Fields(place, item, KNOWN) for item in listed]


def _is_plain_or_centred(entry: TensorEncoding) -> bool:
    """Whether versions below 1.0.0 can say it: by channel they have symmetric encodings only."""
    return entry.axis is None or not entry.scales or entry.centred


def _tensor(place: Place, name: str, kind: Kind, content: Json) -> TensorEncoding:
    rows = _rows(place, content)
    bits = _alike(place, "bitwidth", [r.integer("bitwidth") for r in rows])
    if _is_float(place, rows):
        return check(
            place, TensorEncoding(name, bits, kind, is_float=True), bits="bitwidth", scale="", offset=""
        )
    numbers = {k: tuple(_column(place, rows, k)) for k in ("scale", "offset", "min", "max")}
    for first, second in (("min", "max"), ("scale", "offset")):
        if bool(numbers[first]) != bool(numbers[second]):
            missing = second if numbers[first] else first
            place.fail(f"missing, and '{first}' and '{second}' belong together", missing)
    # The zero point where a file has one: the converters' own older examples do.
    below = tuple(plain(-abs(o)) for o in numbers["offset"])
    symmetric = _is_symmetric(place, rows)
    low, high = numbers["min"], numbers["max"]
    if any(a > b for a, b in zip(low, high, strict=True)):
        place.fail("is above 'max'", "min")
    entry = TensorEncoding(
        name, bits, kind, symmetric=symmetric, scales=numbers["scale"],
        offsets=_from_signed(below, symmetric, low, bits), axis=OUTPUT_CHANNEL if len(rows) > 1 else None,
        low=low, high=high,
    )  # fmt: skip
    entry = check(place, entry, bits="bitwidth", scale="scale", offset="offset")
    if not _is_plain_or_centred(entry):
        middle = -(1 << (bits - 1))
        place.fail(f"encodings by channel are symmetric, with an offset of {middle}", "offset")
    return entry.as_signed() if symmetric else entry


def _from_signed(
    offsets: tuple[float, ...], symmetric: bool, low: tuple[float, ...], bits: int
) -> tuple[float, ...]:
    """Some tools write 0 for the middle of signed integers: a range that goes below zero gives them away."""
    if symmetric and low and max(low) < 0 and not any(offsets):
        return (-(1 << (bits - 1)),) * len(offsets)
    return offsets


def _column(place: Place, rows: list[Fields], key: str) -> list[float]:
    given = [row for row in rows if key in row]
    if given and len(given) < len(rows):
        place.fail(f"missing in {len(rows) - len(given)} of {len(rows)} channels", key)
    return [row.number(key) for row in given]


def _alike(place: Place, key: str, values: list[Any]) -> Any:
    if len(set(values)) > 1:
        place.fail("differs between channels", key)
    return values[0]


def _is_float(place: Place, rows: list[Fields]) -> bool:
    words = [row.choice("dtype", ("int", "float")) if "dtype" in row else "int" for row in rows]
    if len(rows) > 1 and "float" in words:
        place.fail("floats have no encodings by channel", "dtype")
    return words[0] == "float"


def _is_symmetric(place: Place, rows: list[Fields]) -> bool:
    said = [row.flag("is_symmetric") for row in rows if "is_symmetric" in row]
    if len(rows) > 1:
        if said and not all(said):
            place.fail("encodings by channel are symmetric, always", "is_symmetric")
        return True
    return said[0] if said else False


# -- writing -------------------------------------------------------------------------------------------------


def write(entry: TensorEncoding, place: Place, *, with_floats: bool) -> list[dict[str, Json]]:
    """The list of a tensor; InputError where these versions cannot say it."""
    if entry.is_float:
        if not with_floats:
            place.fail("version 0.4 has no floating point", hint="choose 0.6.1 or 1.0.0")
        return [{"bitwidth": entry.bitwidth, "dtype": "float"}]
    if entry.blocks is not None:
        place.fail("versions below 1.0.0 have no encodings of blocks", hint="choose 1.0.0 or above")
    if not _is_plain_or_centred(entry):
        place.fail("versions below 1.0.0 have encodings by channel only where they are symmetric")
    if any(o != round(o) for o in entry.offsets):
        place.fail("versions below 1.0.0 have whole offsets only", hint="choose 1.0.0 or above")
    head: dict[str, Json] = {"bitwidth": entry.bitwidth} | ({"dtype": "int"} if with_floats else {})
    limits = entry.limits()
    if not limits:
        return [head]
    rows = [{**head, "is_symmetric": str(entry.symmetric), "min": a, "max": b} for a, b in limits]
    for row, scale, offset in zip(rows, entry.scales, entry.unsigned_offsets, strict=False):
        row |= {"scale": scale, "offset": int(offset)}
    return rows
