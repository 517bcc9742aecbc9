"""Comparison of a model's encodings with those of an encodings file, and the Excel sheet about it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from openqnn.errors import InputError
from openqnn.formats.encodings import Kind, TensorEncoding
from openqnn.qnn.net import qnn_name

FIELDS = ("bitwidth", "scale", "offset", "min", "max")
HEAD = ("Name", "Type", *(f"{side} {field}" for field in FIELDS for side in ("QNN", "AIMET")), "Status")
EXACT = 17  # decimals


@dataclass(frozen=True, slots=True)
class Difference:
    """One tensor: what both say, field by field, and the fields that differ."""

    name: str
    kind: str
    ours: Mapping[str, str]
    theirs: Mapping[str, str]
    differing: tuple[str, ...]

    @property
    def status(self) -> str:
        return f"mismatch: {', '.join(self.differing)}" if self.differing else "match"


@dataclass(frozen=True, slots=True)
class EncodingsDifference:
    """All tensors that both have, and the names that only one has."""

    tensors: tuple[Difference, ...]
    only_ours: tuple[str, ...]
    only_theirs: tuple[str, ...]


def diff_encodings(
    ours: Iterable[TensorEncoding],
    theirs: Iterable[TensorEncoding],
    *,
    decimals: int = EXACT,
    kinds: Sequence[Kind] = (Kind.PARAM, Kind.ACTIVATION),
    node: str = "",
) -> EncodingsDifference:
    """Tensors are the same where QNN spells their names alike."""
    mine = {qnn_name(e.name): e for e in ours if e.kind in kinds and not e.is_float}
    other = {qnn_name(e.name): e for e in theirs if not e.is_float and (e.kind in (*kinds, Kind.UNKNOWN))}
    if node:
        mine, other = _only(node, mine, other)
    shared = [_difference(mine[key], other[key], decimals) for key in mine if key in other]
    return EncodingsDifference(
        tuple(shared),
        tuple(e.name for key, e in mine.items() if key not in other),
        tuple(e.name for key, e in other.items() if key not in mine),
    )


def _only(node: str, *sides: dict[str, TensorEncoding]) -> list[dict[str, TensorEncoding]]:
    key = qnn_name(node)
    found = [{k: v for k, v in side.items() if k == key} for side in sides]
    if not any(found):
        raise InputError(f"neither has an encoding of '{node}'")
    return found


def _difference(mine: TensorEncoding, other: TensorEncoding, decimals: int) -> Difference:
    first, second = _fields(mine), _fields(other)
    differing = tuple(f for f in FIELDS if not _same(first[f], second[f], decimals))
    shown = lambda fields: {f: _shown(v) for f, v in fields.items()}
    return Difference(mine.name, mine.kind.value, shown(first), shown(second), differing)


def _fields(entry: TensorEncoding) -> dict[str, tuple[float, ...]]:
    ends = entry.limits()
    return {
        "bitwidth": (float(entry.bitwidth),),
        "scale": entry.scales,
        "offset": tuple(float(o) for o in entry.unsigned_offsets),
        "min": tuple(low for low, _ in ends),
        "max": tuple(high for _, high in ends),
    }


def _same(first: Sequence[float], second: Sequence[float], decimals: int) -> bool:
    """Whether numbers agree in their decimals; what a file does not say does not differ."""
    if not first or not second:
        return True
    if len(first) != len(second):
        return False
    return all(round(a, decimals) == round(b, decimals) for a, b in zip(first, second, strict=True))


def _shown(values: Sequence[float]) -> str:
    text = ", ".join(f"{v:.10g}" for v in values[:8])
    return f"{text}, ... ({len(values)})" if len(values) > 8 else text


def encodings_sheet(found: EncodingsDifference) -> bytes:
    """An Excel file with mismatches highlighted."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font, PatternFill
    except ImportError:
        raise InputError(
            "Excel sheets need the package openpyxl", hint="pip install 'openqnn[debug]'"
        ) from None
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "encodings"
    sheet.append(list(HEAD))
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    mark = PatternFill("solid", start_color="FFFFC7CE", end_color="FFFFC7CE")
    for each in found.tensors:
        pairs = [side[f] for f in FIELDS for side in (each.ours, each.theirs)]
        sheet.append([each.name, each.kind, *pairs, each.status])
        for field in each.differing:
            column = 3 + 2 * FIELDS.index(field)
            for place in (column, column + 1):
                sheet.cell(sheet.max_row, place).fill = mark
    for name, side in [*((n, "QNN") for n in found.only_ours), *((n, "AIMET") for n in found.only_theirs)]:
        sheet.append([name, "", *[""] * 10, f"only in {side}"])
        sheet.cell(sheet.max_row, 1).fill = mark
    sheet.freeze_panes = "A2"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
