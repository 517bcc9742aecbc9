"""Matrix products."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import is_reshape
from openqnn.targets.htp.ranks import view
from openqnn.targets.htp.rules import Instead, RuleFunction, fixed_rule, rule, takes

takes("FullyConnected", axes=4)


def blocks_as_convolution(node: Node, b: Builder) -> Instead:
    # Weights in blocks: finalize uses memory that it has not set, and results change from one graph to the
    # next. The same as a convolution with filters of 1x1 is right.
    x, weight = node.x(0), node.x(1)
    if weight.encoding is None or weight.encoding.blocks is None or weight.data is None:
        return None
    outer, width = weight.shape
    said = replace(weight.encoding, axis=3, blocks=replace(weight.encoding.blocks, axis=2))
    data = np.ascontiguousarray(weight.data.T).reshape(1, 1, width, outer)
    filters = b.graph.constant(f"{weight.name}.1x1", data, weight.dtype, said)
    image = b.reshape(x, (1, 1, x.size // width, width), x.encoding)
    bias = [node.x(2)] if node.has(2) else []
    plain = {"stride": (1, 1), "pad_amount": ((0, 0), (0, 0))}
    y = b("Conv2d", image, filters, *bias, encoding=node.out.encoding, **plain)
    return b.reshape(y, node.out.shape, node.out.encoding)


ON_BLOCKS: Final[dict[str, RuleFunction]] = {"FullyConnected": blocks_as_convolution}


@rule("FullyConnected")
def product_between_reshapes(node: Node, b: Builder) -> Instead:
    # Between two reshapes finalize fails ("mismatched scale and bias dimensions"): they are merged into it.
    # keep_dims is refused: "incorrect Value 1, expected equal to 0".
    x = node.x(0)
    if not node.flag("keep_dims") and not (_is_reshaped(x) and any(map(is_reshape, node.out.users))):
        return None
    width = node.x(1).shape[1]
    flat = view(b, x, (prod(x.shape) // width, width))
    bias = node.x(2) if node.has(2) else None
    return view(b, b.matmul(flat, node.x(1), bias, turn_b=True), node.out.shape)


def _is_reshaped(x: Value) -> bool:
    return x.producer is not None and is_reshape(x.producer)


@fixed_rule("MatMul")
def matrix_layer(node: Node, b: Builder, width: int) -> Value | None:
    """MatMul loses its bias where the weights have a scale for each channel; FullyConnected adds it right."""
    weight = node.x(1)
    stacked = any(d != 1 for d in weight.shape[:-2])
    if weight.data is None or weight.rank < 2 or stacked:
        return None
    matrix = weight.data.reshape(weight.shape[-2:])
    data = matrix if node.flag("transpose_in1") else np.ascontiguousarray(matrix.T)
    turned = b.graph.constant(weight.name, data, weight.dtype)
    x, bias = node.x(0), node.inputs[2] if node.has(2) else None
    if node.flag("transpose_in0"):
        x = b.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))
    flat = x if x.rank == 2 else b.reshape(x, (x.size // x.shape[-1], x.shape[-1]))
    y = b.fully_connected(flat, turned, bias)
    return y if node.out.rank == 2 else b.reshape(y, node.out.shape)


def is_layer(node: Node) -> bool:
    """Whether a node multiplies by a matrix."""
    return node.op in ("FullyConnected", "MatMul")
