"""From the converters' options and YAML files about inputs and outputs to what the graph shall look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from openqnn.errors import UsageError
from openqnn.formats.custom_io import IoEntry
from openqnn.ir import DType, dtype_of
from openqnn.options.converter import ConverterIo
from openqnn.options.qairt import QairtSource
from openqnn.options.rows import COLOURS, MODEL_COLOUR
from openqnn.passes.io import Borders, Names

QUANTIZED = ("uint8", "int8")
STAYS_FLOAT = "without --input_list the graph stays in floating point"


def legacy_borders(io: ConverterIo, entries: Sequence[IoEntry], *, fixed: bool = False) -> Borders:
    """Images channel-last, unless the command line or the file (which counts more) say otherwise.

    Of a graph that will be in `fixed` point the quantizer decides about stored integers.
    """
    if not fixed:
        _refuse_images(io.input_type)
    custom = _dtypes(entries, fixed)
    said = {name: _dtype(text) for name, text in io.input_dtype}
    for name in sorted(said.keys() & custom.keys()):
        if said[name] is not custom[name]:
            raise UsageError(f"--input_dtype and --custom_io contradict each other about '{name}'")
    layouts = dict(io.input_layout)
    for entry in entries:
        if entry.source_layout and entry.name in layouts:
            hint = "its Layout, Model says the same thing"
            raise UsageError(f"--input_layout and --custom_io are both given for '{entry.name}'", hint=hint)
    keep_layout, keep_dtype = _kept(io.preserve_io, frozenset(custom))
    colours, plain = _colours(io.input_encoding)
    return Borders(
        channel_last=True,
        source_layouts=layouts | {e.name: e.source_layout for e in entries if e.source_layout},
        layouts={e.name: e.layout for e in entries if e.layout},
        keep_layout=keep_layout,
        colours=colours,
        dtypes=said | custom,
        keep_dtype=keep_dtype,
        keep_int64=io.keep_int64_inputs,
        plain_inputs=plain,
        named=frozenset(e.name for e in entries),
    )


def qairt_borders(source: QairtSource, entries: Sequence[IoEntry]) -> Borders:
    """As in the source model, unless the file or the command line (which counts more) say otherwise."""
    colours, plain = _colours(source.input_encoding)
    from_source = {e.name: e.source_layout for e in entries if e.source_layout}
    from_file = {e.name: (e.colour, MODEL_COLOUR) for e in entries if e.colour}
    for entry in entries:
        if entry.quantized or entry.dtype in QUANTIZED:
            hint = "qairt-quantizer quantizes the DLC file"
            raise UsageError(f"'{entry.name}' shall be quantized, and the result is in floats", hint=hint)
    return Borders(
        source_layouts=from_source | dict(source.input_layout),
        layouts={e.name: e.layout for e in entries if e.layout},
        colours={n: c for n, c in from_file.items() if n not in plain} | colours,
        dtypes=_dtypes(entries) | {name: _dtype(text) for name, text in source.input_dtype},
        plain_inputs=plain,
        named=frozenset(e.name for e in entries),
    )


def _dtype(text: str) -> DType:
    return DType.BOOL_8 if text == "bool" else dtype_of(text)


def _dtypes(entries: Iterable[IoEntry], fixed: bool = False) -> dict[str, DType]:
    found: dict[str, DType] = {}
    for entry in entries:
        if entry.quantized or entry.dtype in QUANTIZED:
            if not fixed:
                raise UsageError(f"'{entry.name}' shall be quantized: {STAYS_FLOAT}")
        elif entry.dtype:
            found[entry.name] = _dtype(entry.dtype)
    return found


def _refuse_images(types: Iterable[tuple[str, str]]) -> None:
    for name, kind in types:
        if kind == "image":
            raise UsageError(f"--input_type {name} image stores the input in bytes: {STAYS_FLOAT}")


def _colours(given: Iterable[tuple[str, str, str]]) -> tuple[dict[str, tuple[str, str]], frozenset[str]]:
    """Conversions of colours, and the inputs that are said to be no images."""
    colours: dict[str, tuple[str, str]] = {}
    plain: set[str] = set()
    for name, source, target in given:
        if source in COLOURS:
            colours[name] = source, target
        else:
            plain.add(name)
    return colours, frozenset(plain)


def _kept(given: Sequence[tuple[str, tuple[str, ...]]], custom: frozenset[str]) -> tuple[Names, Names]:
    """What --preserve_io keeps: layouts, data types. Those of the file for --custom_io are not kept."""
    if any(names for _, names in given) and any(not names for _, names in given):
        hint = "name the inputs and outputs each time, or never"
        raise UsageError("--preserve_io is given both for all inputs and outputs and for some", hint=hint)
    names: Mapping[str, set[str]] = {"layout": set(), "datatype": set()}
    everything: set[str] = set()
    for kind, some in given:
        for one in (kind,) if kind else ("layout", "datatype"):
            names[one].update(some)
            everything |= set() if some else {one}
    return (
        Names(frozenset(names["layout"]), "layout" in everything),
        Names(frozenset(names["datatype"]), "datatype" in everything, custom),
    )
