"""From the converters' options and YAML files about inputs and outputs to what the graph shall look like."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from openqnn.errors import UsageError
from openqnn.formats.custom_io import IoEntry
from openqnn.ir import DType, Encoding, Given, Graph, dtype_of
from openqnn.options.converter import ConverterIo
from openqnn.options.qairt import QairtSource
from openqnn.options.rows import COLOURS, MODEL_COLOUR
from openqnn.passes.boundary.layouts import CUSTOM, Borders, Names

STORED, STORED_WIDTH = {"uint8": DType.UFIXED_8, "int8": DType.SFIXED_8}, 8
STAYS_FLOAT = "without --input_list the graph stays in floating point"


def legacy_borders(io: ConverterIo, entries: Sequence[IoEntry], *, fixed: bool = False) -> Borders:
    """Images channel-last, unless the command line or the file (which counts more) say otherwise.

    Of a graph that will be in `fixed` point the quantizer decides about stored integers.
    """
    if not fixed:
        _tell_images(io.input_type)
    custom, stored = _dtypes(entries), _stored(entries, fixed)
    said = {name: _dtype(text) for name, text in io.input_dtype}
    for name in sorted(said.keys() & {*custom, *stored}):
        if said[name] is not custom.get(name):
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
        stored=stored,
        fixed=fixed,
        keep_dtype=keep_dtype,
        keep_int64=io.keep_int64_inputs,
        plain_inputs=plain,
        named=frozenset(e.name for e in entries),
    )


def qairt_borders(source: QairtSource, entries: Sequence[IoEntry]) -> Borders:
    """Boundary options as in the source model, unless the file or the command line (which counts more) say
    otherwise."""
    colours, plain = _colours(source.input_encoding)
    from_source = {e.name: e.source_layout for e in entries if e.source_layout}
    from_file = {e.name: (e.colour, MODEL_COLOUR) for e in entries if e.colour}
    return Borders(
        source_layouts=from_source | dict(source.input_layout) | dict(source.output_layout),
        layouts={e.name: e.layout for e in entries if e.layout}
        | dict(source.desired_input_layout)
        | dict(source.desired_output_layout),
        keep_dtype=_kept_types(source.preserve_io_datatype),
        colours={n: c for n, c in from_file.items() if n not in plain} | colours,
        dtypes=_dtypes(entries) | {name: _dtype(text) for name, text in source.input_dtype},
        stored=_stored(entries, fixed=False),
        plain_inputs=plain,
        named=frozenset(e.name for e in entries),
    )


def _kept_types(given: Sequence[tuple[str, ...]]) -> Names:
    """Whose data types --preserve_io_datatype keeps: those named, or all."""
    names = frozenset(name for some in given for name in some)
    return Names(names, bool(given) and not names)


def _dtype(text: str) -> DType:
    return DType.BOOL_8 if text == "bool" else dtype_of(text)


def _dtypes(entries: Iterable[IoEntry]) -> dict[str, DType]:
    return {e.name: _dtype(e.dtype) for e in entries if e.dtype and e.dtype not in STORED}


def _stored(entries: Iterable[IoEntry], fixed: bool) -> dict[str, tuple[DType, Encoding | None]]:
    for entry in entries:
        if entry.scale is not None and entry.dtype not in STORED and not fixed:
            hint = f"Datatype {' or '.join(STORED)}"
            raise UsageError(f"'{entry.name}' has a scale, and stays {entry.dtype or 'a float'}", hint=hint)
    return {e.name: (STORED[e.dtype], _encoding(e, STORED_WIDTH)) for e in entries if e.dtype in STORED}


def _encoding(entry: IoEntry, width: int) -> Encoding | None:
    """What an entry says of stored integers, among which zero must be."""
    if entry.scale is None:
        return None
    most = (1 << (width - (entry.dtype == "int8"))) - 1
    if -entry.offset > most:
        raise UsageError(
            f"'{entry.name}': an offset of {entry.offset} is beyond {most}, the last of {width} bits"
        )
    return Encoding.per_tensor(entry.scale, entry.offset, width)


def custom_encodings(entries: Iterable[IoEntry], graph: Graph, act_bw: int) -> dict[str, Given]:
    """What a --custom_io file says of stored inputs and outputs: their width, and perhaps their encoding.

    All are unsigned inside: HTP takes signed tensors only where all that meet are signed.
    """
    real = {v.name for v in (*graph.inputs, *graph.outputs) if v.dtype.is_float}
    found: dict[str, Given] = {}
    for e in entries:
        if e.name in real and (e.scale is not None or e.dtype in STORED):
            width = STORED_WIDTH if e.dtype in STORED else act_bw
            said = Given(CUSTOM, width, encoding=_encoding(e, width), signed=e.dtype == "int8")
            found[e.name] = said.unsigned()
    return found


def _tell_images(types: Iterable[tuple[str, str]]) -> None:
    for name, kind in types:
        if kind == "image":
            print(
                f"note: --input_type {name} image stores the input in bytes: {STAYS_FLOAT}", file=sys.stderr
            )


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
