"""Quantize and Dequantize: what HTP gets wrong where a graph changes between floating and fixed point."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from openqnn.ir import DType, Encoding, Graph, Node, Value
from openqnn.ops import Builder, schema_of
from openqnn.passes.edit import builder_at, supplant
from openqnn.passes.patterns import terms
from openqnn.passes.rewrite import Any, Match, Number, find
from openqnn.targets.htp.clipped_sums import unclipped
from openqnn.targets.htp.matmul import is_layer
from openqnn.targets.htp.rules import Instead, rule, takes

FINER = 8  # bits that 16 have more than 8
_SUM: Final = terms.add(Any("x"), Number(name="more"))
_PRODUCT: Final = terms.mul(Any("a"), Any("b")) | terms.div(Any("a"), Any("b"))

takes("Quantize", "Dequantize", "Convert", kinds="")


@rule("Dequantize")
def pair_that_stays(node: Node, b: Builder) -> Instead:
    # HTP computes x for Dequantize(Quantize(x)), also with ops between that change nothing of the integers.
    # Bytes stay where they are converted to 16 bits in between, in which all their numbers are exact. Half
    # precision is coarser than 16 bits: of such a pair the limits are what counts.
    x, encoding = node.x(0), node.x(0).encoding
    if encoding is None or encoding.axis is not None or not _is_of_pair(x):
        return None
    if x.dtype in (DType.UFIXED_8, DType.SFIXED_8):
        finer = b.convert(x, DType.UFIXED_16, _finer(encoding, x.dtype.signed))
        return b.dequantize(finer, node.out.dtype)
    low, high = limits_of(encoding, x.dtype.signed)
    if any(user.params.get("min_value") == low for user in node.out.users):
        return None
    return b.clip(b.dequantize(x, node.out.dtype), low, high)


def spread_numbers(graph: Graph) -> None:
    """A number that is added to a product, or to what was one before its Quantize, is one for each channel.

    HTP joins a product or a quotient, the Quantize, the sum and a product behind it, and then adds the number
    to the first element alone, if at all: an error function in single ops, with its 1 + erf(x), is such. To
    a layer of a matrix it adds the number as the bias of the first channel.
    """
    for node in graph.nodes:
        found = find(_SUM, node.out) if node.out.dtype.is_fixed and node.out.rank else None
        if found is not None and (_is_product(unclipped(found["x"])[0]) or _is_layer(found["x"].producer)):
            _spread(graph, node, found)


def _is_product(value: Value) -> bool:
    """Whether a tensor is quantized, or a product of two others."""
    found = find(_PRODUCT, value)
    several = found is not None and not (found["a"].is_constant or found["b"].is_constant)
    return several or _is_quantize(value.producer)


def _is_layer(node: Node | None) -> bool:
    """Whether a layer of a matrix makes a tensor, the shape of which may have changed since."""
    while node is not None and schema_of(node).hands_on(node) and len(node.inputs) == 1:
        node = node.x(0).producer
    return node is not None and is_layer(node)


def _spread(graph: Graph, node: Node, found: Match) -> None:
    more = found["more"]
    assert more.data is not None
    each = np.full(node.out.shape[-1:], more.data.reshape(()))
    made = graph.constant(more.name, each, more.dtype, more.encoding)
    graph.provenance[made.name] = graph.provenance.get(more.name, "")
    graph.set_input(node, next(i for i, v in enumerate(node.inputs) if v is more), made)


def keep_pairs(graph: Graph) -> None:
    """The rule above for a graph that computes in fixed point elsewhere."""
    for node in [n for n in graph.nodes if n.x(0).dtype.is_fixed and n.out.dtype.is_float]:
        new = pair_that_stays(node, builder_at(graph, node)) if _is_end(node) else None
        if isinstance(new, Value):
            supplant(graph, node.out, new)


def _is_end(node: Node) -> bool:
    return node.op == "Dequantize"


def _is_of_pair(x: Value) -> bool:
    """Whether the integers come from a Quantize, through nothing but what moves or clips them."""
    node = x.producer
    while node is not None and node.inputs and node.x(0).encoding == x.encoding:
        if not (schema_of(node).keeps_values or schema_of(node).clips):
            return False
        node = node.x(0).producer
    return _is_quantize(node)


def _is_quantize(node: Node | None) -> bool:
    return node is not None and node.op == "Quantize" and node.x(0).dtype.is_float


def _finer(encoding: Encoding, signed: bool) -> Encoding:
    """The encoding with the same real numbers among those of 16 bits."""
    first = 1 << (encoding.bitwidth - 1) if signed else 0
    offsets = tuple((offset - first) << FINER for offset in encoding.offset)
    scales = tuple(scale / (1 << FINER) for scale in encoding.scale)
    return replace(encoding, scale=scales, offset=offsets, bitwidth=2 * FINER, symmetric=False)


def limits_of(encoding: Encoding, signed: bool) -> tuple[float, float]:
    first = encoding.offset[0] - ((1 << (encoding.bitwidth - 1)) if signed else 0)
    return encoding.scale[0] * first, encoding.scale[0] * (first + (1 << encoding.bitwidth) - 1)
