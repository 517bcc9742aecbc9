"""openqnn encodings: the encodings of a graph or a file, held against a model, and in another version."""

from __future__ import annotations

import dataclasses
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import InputError, OutputError, UsageError
from openqnn.options.encodings import EncodingsOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions

if TYPE_CHECKING:
    from openqnn.formats.encodings import TensorEncoding
    from openqnn.frontends.frontend import Importer
    from openqnn.ir import Encoding, Graph, Value
    from openqnn.quant.overrides import Finding

_FEW = 4  # scales that a table shows before it says how many there are
_GRAPHS = (".dlc", ".so")


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor. `scale` and `offset` are empty where it has no encoding."""

    name: str
    type: str
    shape: tuple[int, ...]
    bits: int | None
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    low: float | None
    high: float | None
    axis: int | str | None
    source: str


def run_encodings(arguments: Namespace) -> Report:
    from openqnn.formats.encodings import looks_like_encodings

    source, options = read_options(arguments, SourceOptions), read_options(arguments, EncodingsOptions)
    _check(options)
    settings = source.settings()
    if looks_like_encodings(source.model):
        return _file(source.model, settings, options)
    from openqnn.api.files import open_graph

    graph = open_graph(source.model, **settings)
    if options.lint:
        return _lint(graph, source.model, options)
    if options.to:
        from openqnn.quant.to_encodings_file import encodings_of

        origin = _origin(options)
        entries = encodings_of(graph, None if origin is None else origin.names)
        if not entries:
            raise InputError(f"{source.model}: no tensor has an encoding", hint="quantize it first")
        return _write(entries, source.model, options, origin)
    return _list([_row_of(graph, value) for value in graph.values()])


def _check(options: EncodingsOptions) -> None:
    from openqnn.formats.encodings import VERSIONS

    if options.to and options.to not in VERSIONS:
        raise UsageError(f"--to {options.to}: no such version", hint=f"known: {', '.join(VERSIONS)}")
    if bool(options.to) != bool(options.output):
        raise UsageError("--to and -o belong together: the version, and the file to write")
    if options.lint and options.to:
        raise UsageError("--lint and --to cannot be given together")
    if options.source and not options.to:
        raise UsageError("--source: only --to needs it")


def _file(path: str, settings: Mapping[str, Any], options: EncodingsOptions) -> Report:
    """An encodings file takes the place of the model."""
    from openqnn.formats.encodings import read_encodings

    if any(settings.values()):
        raise UsageError(f"{path} is an encodings file: shapes are for models")
    if options.lint:
        raise UsageError(f"{path} is an encodings file", hint="openqnn encodings MODEL --lint FILE")
    entries = list(read_encodings(path).tensors.values())
    if options.to:
        from openqnn.quant.overrides import with_scales

        return _write([with_scales(e) for e in entries], path, options, _origin(options))
    return _list([_row_of_entry(entry) for entry in entries])


def _origin(options: EncodingsOptions) -> Importer | None:
    if not options.source:
        return None
    return _opened(options.source)


def _opened(model: str) -> Importer:
    from openqnn.frontends.frontend import Dimensions, find_frontend

    return find_frontend(model).open(model, Dimensions(), (), prune=True, keep_quant_nodes=True)


# -- writing -------------------------------------------------------------------------------------------------


def _write(
    entries: Sequence[TensorEncoding], path: str, options: EncodingsOptions, origin: Importer | None
) -> Report:
    from openqnn.formats.encodings import left_out, may_replace, settled, write_encodings

    target = Path(options.output)
    if target.is_dir():
        raise OutputError(f"{target} is a directory")
    if target.exists() and Path(path).exists() and target.samefile(path):
        raise OutputError(f"{target} is the source itself", hint="give another file with -o")
    if not may_replace(target):
        raise OutputError(f"{target} exists and is no encodings file", hint="give another file with -o")
    if origin is not None:
        entries = [settled(e, origin.parameters, path) for e in entries]
    write_encodings(target, entries, options.to)
    silent = left_out(entries, options.to)
    if silent:
        count = f"{len(silent)} tensors in floating point"
        print(f"note: {count} are left out, which is how version {options.to} says it", file=sys.stderr)
    record = {"output": str(target), "tensors": len(entries) - len(silent), "version": options.to}
    return Report(record, lambda: print(f"{target}: {record['tensors']} tensors, version {options.to}"))


# -- listing -------------------------------------------------------------------------------------------------


def _row_of(graph: Graph, value: Value) -> Row:
    given = graph.given.get(value.name)
    said, source = value.encoding, graph.provenance.get(value.name, "")
    signed = value.dtype.signed
    if said is None and given is not None:
        said, source, signed = given.encoding, given.source, given.signed
    kind = (value.name, value.dtype.label, value.shape)
    if said is None:
        return Row(*kind, None, (), (), None, None, None, source)
    low, high = _limits(said, signed)
    return Row(*kind, said.bitwidth, said.scale, said.offset, low, high, said.axis, source)


def _limits(said: Encoding, signed: bool) -> tuple[float, float]:
    first = -(1 << (said.bitwidth - 1)) if signed else 0
    last = first + (1 << said.bitwidth) - 1
    largest = said.largest_steps()
    pairs = list(zip(largest, said.offset, strict=True))
    return min(s * (first + o) for s, o in pairs), max(s * (last + o) for s, o in pairs)


def _row_of_entry(entry: TensorEncoding) -> Row:
    kind = "float" if entry.is_float else f"{'' if entry.signed else 'u'}int"
    limits = entry.limits()
    low = min((pair[0] for pair in limits), default=None)
    high = max((pair[1] for pair in limits), default=None)
    return Row(
        entry.name, f"{kind}{entry.bitwidth}", (), entry.bitwidth, entry.scales, entry.offsets, low, high,
        entry.axis, entry.kind.value,
    )  # fmt: skip


def _list(rows: Sequence[Row]) -> Report:
    return Report([dataclasses.asdict(row) for row in rows], lambda: _print_rows(rows))


def _print_rows(rows: Sequence[Row]) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table

    numbers = ("bits", "scale", "offset", "min", "max", "axis")
    shown = table("tensor", "type", "shape", *numbers, "source", right=numbers)
    for row in rows:
        shown.add_row(
            escape(row.name), row.type, "x".join(map(str, row.shape)), _text(row.bits), _few(row.scale),
            _few(row.offset), _text(row.low), _text(row.high), _text(row.axis), escape(row.source),
        )  # fmt: skip
    out = console()
    out.print(shown)
    encoded = sum(1 for row in rows if row.scale)
    out.print(f"\n{encoded} of {len(rows)} tensors have an encoding.")


def _text(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def _few(values: Sequence[float]) -> str:
    if len(set(values)) == 1 or len(values) <= 1:
        return _text(values[0]) if values else ""
    return ", ".join(map(_text, values)) if len(values) <= _FEW else f"{len(values)} values"


# -- lint ----------------------------------------------------------------------------------------------------


def _lint(graph: Graph, model: str, options: EncodingsOptions) -> Report:
    """0 when every entry is for a tensor of the model and possible."""
    from openqnn.formats.encodings import read_encodings
    from openqnn.quant.overrides import Status, match

    found = match(graph, read_encodings(options.lint), _names_in(model))
    bad = {Status.IMPOSSIBLE, Status.UNUSED}
    code = 1 if any(f.status in bad for f in found.findings) else 0
    findings = [dataclasses.asdict(f) for f in found.findings]
    record = {"ok": not code, "used": len(found.given), "findings": findings}
    return Report(record, lambda: _print_findings(found.findings, len(found.given)), code)


def _names_in(model: str) -> frozenset[str]:
    """All names of a source model: some of its tensors do not live on in the graph."""
    from openqnn.formats.oqnn import is_oqnn

    if is_oqnn(model) or Path(model).suffix in _GRAPHS:
        return frozenset()
    return frozenset(_opened(model).names)


def _print_findings(findings: Sequence[Finding], used: int) -> None:
    from rich.markup import escape

    from openqnn.cli.report import console, table
    from openqnn.quant.overrides import Status

    out = console()
    counts = Counter(f.status for f in findings)
    if findings:
        rows = table("status", "tensor", "detail")
        for status in Status:
            for finding in (f for f in findings if f.status is status):
                rows.add_row(status.value, escape(finding.tensor), escape(finding.detail))
        out.print(rows)
        out.print()
    out.print(", ".join([f"{used} used", *(f"{counts[s]} {s.value}" for s in Status)]) + ".")


COMMAND = Command(
    "encodings",
    "List the encodings of a model, hold an encodings file against it, or write one in any version.",
    (SourceOptions, OwnOps, EncodingsOptions),
    run_encodings,
    examples=(
        "openqnn encodings model.oqnn",
        "openqnn encodings model.oqnn --to 1.0.0 -o model.encodings",
    ),
)
