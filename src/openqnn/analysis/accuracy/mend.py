"""Mending: encodings that take the place of those that were found wrong, as entries of an encodings file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openqnn.analysis.accuracy.debug_report import DebugReport, LayerReport
from openqnn.analysis.accuracy.usual import by_name
from openqnn.formats.encodings import Kind, TensorEncoding
from openqnn.ir import Graph, Value
from openqnn.quant.encode import encoding
from openqnn.quant.to_encodings_file import encodings_of

WIDE = 16
MOST_WIDENED = 8  # layers that are widened where nothing is broken


def mending_encodings(report: DebugReport, usual: Graph | None) -> list[TensorEncoding]:
    """Encodings for the tensors of broken layers; where none is, 16 bits for the layers that add most.

    What calibration would choose takes the place of a wrong encoding. A layer whose width is too little, or
    that computes something else than it should, gets 16 bits.
    """
    known = {e.name: e for e in encodings_of(usual, shared=True)} if usual is not None else {}
    values = by_name(usual)
    found: dict[str, TensorEncoding] = {}
    for tensor, recipe, layer in _wanted(report):
        if recipe in ("encoding", "weights") and tensor in known:
            found[tensor] = known[tensor]
        elif recipe == "16 bits" and layer.type != "ufixed16":
            found |= {e.name: e for e in _wide(layer, values)}
    return list(found.values())


def _wanted(report: DebugReport) -> Iterable[tuple[str, str, LayerReport]]:
    if report.broken:
        return [(f.tensor, f.cause.recipe, y) for y in report.broken for f in y.findings if f.cause.severe]
    weak = [y for y in report.layers if any(f.cause.recipe == "16 bits" for f in y.findings)]
    return [(y.tensor, "16 bits", y) for y in weak[:MOST_WIDENED]]


def _wide(layer: LayerReport, usual: Mapping[str, Value]) -> Iterable[TensorEncoding]:
    low, high = layer.statistics["min"], layer.statistics["max"]
    if layer.tensor not in usual and layer.range is None:
        return
    made = encoding(low, high, WIDE)
    yield TensorEncoding(
        layer.tensor, WIDE, Kind.ACTIVATION, symmetric=False, signed=False, scales=made.scale,
        offsets=made.offset,
    )  # fmt: skip
