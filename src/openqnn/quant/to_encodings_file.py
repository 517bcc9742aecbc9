"""The encodings of a graph as entries of an encodings file, under the names of the source model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from openqnn.formats.encodings import OUTPUT_CHANNEL, Blocks, Kind, TensorEncoding
from openqnn.ir import DType, Encoding, Graph, Value
from openqnn.ops import schema_of
from openqnn.quant.block_encoding import EXPANDED
from openqnn.quant.overrides import source_axis, source_layout
from openqnn.quant.plan import SHARED


def encodings_of(
    graph: Graph, source: Collection[str] | None = None, *, shared: bool = False
) -> list[TensorEncoding]:
    """What has an encoding of its own, and half-precision tensors; of the names in `source` only, if given.

    Tensors that share another's encoding are left out, unless they are asked for: whoever reads the file
    gives it to them again. Where the other is not in `source`, such as an output before it is transposed, the
    first that is speaks for it.
    """
    found: list[TensorEncoding] = []
    for value in graph.values():
        follows = not shared and _shares(graph, value) and not _speaks(graph, value, source)
        if follows or (source is not None and value.name not in source):
            continue
        kind = Kind.PARAM if value.is_constant else Kind.ACTIVATION
        if value.encoding is not None:
            found.append(_entry(value, value.encoding, kind))
        elif value.dtype is DType.FLOAT_16:
            found.append(TensorEncoding(value.name, 16, kind, is_float=True))
    return found


def _shares(graph: Graph, value: Value) -> bool:
    return graph.provenance.get(value.name, "").startswith(SHARED)


def _speaks(graph: Graph, value: Value, source: Collection[str] | None) -> bool:
    """Whether a tensor has its encoding from one that has no name in the source model."""
    before = value
    while source is not None and _shares(graph, before) and before.producer is not None:
        node, before = before.producer, before.producer.x(0)
        if not schema_of(node).hands_on(node) or before.encoding != value.encoding or before.name in source:
            return False
    return before is not value and before.encoding == value.encoding


def _entry(value: Value, said: Encoding, kind: Kind) -> TensorEncoding:
    signed = value.dtype.signed
    axis = None
    if said.axis is not None:
        known = source_axis(value)
        axis = OUTPUT_CHANNEL if known is None else known
    symmetric = said.symmetric or (signed and not any(said.offset))
    entry = TensorEncoding(
        value.name, said.bitwidth, kind, symmetric=symmetric, signed=signed, scales=said.scale,
        offsets=said.offset, axis=axis, blocks=_blocks(value, said),
    )  # fmt: skip
    return entry.as_signed() if symmetric else entry


def _blocks(value: Value, said: Encoding) -> Blocks | None:
    """Blocks along the input channels; their axis and grid where the source model's layout is known."""
    if said.blocks is None:
        return None
    found = Blocks(said.blocks.size, multiples=said.blocks.multiples, expanded_bits=EXPANDED)
    layout = source_layout(value)
    if not layout:
        return found
    count = len(said.blocks.multiples) // len(said.scale)
    sizes = {"O": len(said.scale), "I": count}
    grid = np.asarray(said.blocks.multiples).reshape(len(said.scale), count)
    turned = grid if layout.index("O") < layout.index("I") else grid.T
    return replace(
        found,
        axis=layout.index("I"),
        shape=tuple(sizes.get(a, 1) for a in layout),
        multiples=tuple(turned.ravel().tolist()),
    )
