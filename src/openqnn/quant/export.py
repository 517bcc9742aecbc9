"""The encodings of a graph as entries of an encodings file, under the names of the source model."""

from __future__ import annotations

from collections.abc import Collection

from openqnn.formats.encodings import OUTPUT_CHANNEL, Kind, TensorEncoding
from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.quant.overrides import source_axis
from openqnn.quant.plan import SHARED


def encodings_of(graph: Graph, source: Collection[str] | None = None) -> list[TensorEncoding]:
    """What has an encoding of its own, and half-precision tensors; of the names in `source` only, if given.

    Tensors that share another's encoding are left out: whoever reads the file gives it to them again.
    """
    found: list[TensorEncoding] = []
    for value in graph.values():
        shared = graph.provenance.get(value.name, "").startswith(SHARED)
        if shared or (source is not None and value.name not in source):
            continue
        kind = Kind.PARAM if value.is_constant else Kind.ACTIVATION
        if value.encoding is not None:
            found.append(_entry(value, value.encoding, kind))
        elif value.dtype is DType.FLOAT_16:
            found.append(TensorEncoding(value.name, 16, kind, is_float=True))
    return found


def _entry(value: Value, said: Encoding, kind: Kind) -> TensorEncoding:
    signed = value.dtype.signed
    axis = None
    if said.axis is not None:
        known = source_axis(value)
        axis = OUTPUT_CHANNEL if known is None else known
    symmetric = said.symmetric or (signed and not any(said.offset))
    entry = TensorEncoding(
        value.name, said.bitwidth, kind, symmetric=symmetric, signed=signed, scales=said.scale,
        offsets=said.offset, axis=axis,
    )  # fmt: skip
    return entry.as_signed() if symmetric else entry
