"""The YAML files about inputs and outputs: `custom_io` of the older converter, `io_config` of the newer.

    - IOName: x                      Input Tensor Configuration:
      Layout:                          - Name: x
        Model: NCHW                      Src Model Parameters:
        Custom: NHWC                       Layout: NCHW
      Datatype: float32                  Desired Model Parameters:
                                           Layout: NHWC

Fields may be left out or left empty. A field that is not known is an error: it may be a misspelt one.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from openqnn.errors import InputError
from openqnn.formats.atomic import replacing

INPUTS, OUTPUTS = "Input Tensor Configuration", "Output Tensor Configuration"
SOURCE, DESIRED = "Src Model Parameters", "Desired Model Parameters"
LAYOUTS = ("NCDHW", "NDHWC", "NCHW", "NHWC", "NFC", "NCF", "NTF", "TNF", "NF", "NC", "F", "NONTRIVIAL")
DATA_TYPES = ("float32", "float16", "uint8", "int8")
COLOURS = ("bgr", "rgb", "rgba", "argb32", "nv21", "nv12")
DEFINED, UNDEFINED = "QNN_DEFINITION_DEFINED", "QNN_DEFINITION_UNDEFINED"


@dataclass(frozen=True, slots=True)
class IoEntry:
    """What a file says of one input or output; empty where it says nothing."""

    name: str
    source_layout: str = ""
    layout: str = ""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    colour: str = ""
    scale: float | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Described:
    """An input or output of a model, for a template."""

    name: str
    dtype: str
    layout: str
    shape: tuple[int, ...]


# -- reading -------------------------------------------------------------------------------------------------


def read_custom_io(path: str | os.PathLike[str]) -> list[IoEntry]:
    """The entries of a file for --custom_io."""
    content = _load(path)
    if not isinstance(content, list):
        raise InputError(f"{path}: expected a list of entries, each with IOName")
    found = [_custom_entry(_Place(path, i + 1), e) for i, e in enumerate(cast("list[Any]", content))]
    return _distinct(path, found)


def read_io_config(path: str | os.PathLike[str]) -> tuple[list[IoEntry], list[IoEntry]]:
    """Inputs and outputs of a file for --io_config."""
    place = _Place(path)
    top = place.fields(_load(path), (INPUTS, OUTPUTS))
    found: list[list[IoEntry]] = []
    for section in (INPUTS, OUTPUTS):
        entries: Any = top.get(section) or []
        if not isinstance(entries, list):
            raise InputError(f"{path}: '{section}' is no list")
        listed = cast("list[Any]", entries)
        found.append([_config_entry(_Place(path, i + 1, section), e) for i, e in enumerate(listed)])
    _distinct(path, [*found[0], *found[1]])
    return found[0], found[1]


def _load(path: str | os.PathLike[str]) -> Any:
    import yaml

    from openqnn.formats.yaml_text import parse_yaml

    try:
        return parse_yaml(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}") from e
    except yaml.YAMLError as e:
        raise InputError(f"{path}: is no YAML: {' '.join(str(e).split())}") from e


def _distinct(path: str | os.PathLike[str], entries: Sequence[IoEntry]) -> list[IoEntry]:
    names = [e.name for e in entries]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: '{twice}' has two entries")
    return list(entries)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file we are, for messages."""

    path: str | os.PathLike[str]
    entry: int = 0
    section: str = ""

    def __str__(self) -> str:
        section = f" of '{self.section}'" if self.section else ""
        return f"{self.path}: entry {self.entry}{section}" if self.entry else str(self.path)

    def fields(self, given: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        """The fields of a mapping, all of which must be known."""
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise InputError(f"{self}: expected fields ({', '.join(known)}), found {given!r}")
        fields = cast("dict[Any, Any]", given)
        for key in fields:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"known fields: {', '.join(known)}"
                raise InputError(f"{self}: unknown field '{key}'", hint=hint)
        return fields

    def word(self, given: Any, what: str, known: tuple[str, ...]) -> str:
        """One of the known words, in whatever case; empty for nothing."""
        if given is None or given == "":
            return ""
        found = next((k for k in known if k.lower() == str(given).lower()), None)
        if found is None:
            raise InputError(f"{self}: {what} {given!r} is none of {', '.join(known)}")
        return found

    def name(self, given: Any, key: str) -> str:
        if given is None or given == "":
            raise InputError(f"{self}: {key} is missing")
        if isinstance(given, list | dict):
            raise InputError(f"{self}: {key} is one name, not {given!r}")
        return str(given)

    def shape(self, given: Any) -> tuple[int, ...] | None:
        if given is None or given == "":
            return None
        listed = isinstance(given, list)
        numbers = cast("list[Any]", given) if listed else str(given).strip("()[] ").split(",")
        try:
            shape = tuple(int(n) for n in numbers)
        except (TypeError, ValueError):
            shape = ()
        if not shape or min(shape) < 1:
            raise InputError(f"{self}: Shape {given!r}: expected dimensions such as 1,3,224,224")
        return shape

    def scale(self, quant: Mapping[str, Any]) -> float | None:
        """A positive number; needed where an offset is given."""
        given = quant.get("Scale")
        kind = self.word(quant.get("Type"), "Type", (DEFINED, UNDEFINED))
        if given is None and quant.get("Offset") is None and kind != DEFINED:
            return None
        if kind == UNDEFINED:
            raise InputError(f"{self}: Type is {UNDEFINED}, and a Scale or an Offset is given")
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
            raise InputError(f"{self}: Scale {given!r}: expected a positive number")
        return float(given)

    def offset(self, quant: Mapping[str, Any]) -> int:
        """QNN's offset, which is negative; where it is written as a zero point, its sign is turned."""
        given = quant.get("Offset") or 0
        if isinstance(given, bool) or not isinstance(given, int):
            raise InputError(f"{self}: Offset {given!r}: expected a whole number")
        return -abs(given)


def _custom_entry(place: _Place, given: Any) -> IoEntry:
    fields = place.fields(given, ("IOName", "Layout", "Datatype", "QuantParam"))
    layout = place.fields(fields.get("Layout"), ("Model", "Custom"))
    quant = place.fields(fields.get("QuantParam"), ("Type", "Scale", "Offset"))
    return IoEntry(
        place.name(fields.get("IOName"), "IOName"),
        place.word(layout.get("Model"), "layout", LAYOUTS),
        place.word(layout.get("Custom"), "layout", LAYOUTS),
        place.word(fields.get("Datatype"), "data type", DATA_TYPES),
        scale=place.scale(quant),
        offset=place.offset(quant),
    )


def _config_entry(place: _Place, given: Any) -> IoEntry:
    fields = place.fields(given, ("Name", SOURCE, DESIRED))
    source = place.fields(fields.get(SOURCE), ("DataType", "Layout"))
    known = ("DataType", "DType", "Layout", "Shape", "Color Conversion", "QuantParams")
    desired = place.fields(fields.get(DESIRED), known)
    quant = place.fields(desired.get("QuantParams"), ("Scale", "Offset"))
    return IoEntry(
        place.name(fields.get("Name"), "Name"),
        place.word(source.get("Layout"), "layout", LAYOUTS),
        place.word(desired.get("Layout"), "layout", LAYOUTS),
        place.word(desired.get("DataType") or desired.get("DType"), "data type", DATA_TYPES),
        place.shape(desired.get("Shape")),
        place.word(desired.get("Color Conversion"), "colour", COLOURS),
        place.scale(quant),
        place.offset(quant),
    )


# -- templates -----------------------------------------------------------------------------------------------

_CUSTOM_HEAD = f"""\
# Inputs and outputs of the model, as they are. Change what shall be different and pass the file with
# --custom_io; entries without a change may be deleted.
#
# IOName    the input or output, as the model names it
# Layout    Model: what its axes mean in the model; Custom: what they shall be in the converted graph.
#           {", ".join(LAYOUTS)}
#           (N batch, C channels, D depth, H height, W width, F features, T time).
#           These can be exchanged: NCDHW and NDHWC, NCHW and NHWC, NCF and NFC, TNF and NTF.
# Datatype  float32 or float16; uint8 and int8 need a QuantParam, unless the graph is quantized:
# QuantParam  Scale: a number, and Offset: a whole one, which make real numbers of integers
"""
_CONFIG_HEAD = f"""\
# Inputs and outputs of the model, as they are. Change what shall be different and pass the file with
# --io_config; entries without a change may be deleted.
#
# {SOURCE}: what the tensor is in the model.
# {DESIRED}: what it shall be in the converted graph.
#   DataType          float32 or float16; uint8 and int8 need QuantParams
#   Layout            {", ".join(LAYOUTS)}
#   Shape             dimensions in the model's own order of axes
#   Color Conversion  what the application gives: {", ".join(COLOURS)}
"""


def write_custom_io(path: str | os.PathLike[str], borders: Iterable[Described]) -> None:
    """A file for --custom_io that changes nothing."""
    entries: list[dict[str, Any]] = []
    for b in borders:
        entry: dict[str, Any] = {"IOName": b.name, "Layout": {"Model": b.layout, "Custom": b.layout}}
        entries.append(entry | ({"Datatype": b.dtype} if b.dtype in DATA_TYPES else {}))
    _write(path, _CUSTOM_HEAD, entries)


def write_io_config(
    path: str | os.PathLike[str], inputs: Iterable[Described], outputs: Iterable[Described]
) -> None:
    """A file for --io_config that changes nothing."""
    content = {
        INPUTS: [_template(b) for b in inputs],
        OUTPUTS: [_template(b, with_shape=False) for b in outputs],
    }
    _write(path, _CONFIG_HEAD, content)


def _template(b: Described, *, with_shape: bool = True) -> dict[str, Any]:
    desired: dict[str, Any] = {"DataType": b.dtype} if b.dtype in DATA_TYPES else {}
    desired["Layout"] = b.layout
    if with_shape and b.shape:
        desired["Shape"] = ",".join(map(str, b.shape))
    return {"Name": b.name, SOURCE: {"DataType": b.dtype, "Layout": b.layout}, DESIRED: desired}


def _write(path: str | os.PathLike[str], head: str, content: Any) -> None:
    import yaml

    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    with replacing(path) as file:
        file.write(f"{head}\n{text}".encode())
