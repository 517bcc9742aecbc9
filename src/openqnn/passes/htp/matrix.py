"""Matrix products."""

from __future__ import annotations

from math import prod

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.ops.layout import is_reshape
from openqnn.passes.htp.ranks import view
from openqnn.passes.htp.rules import Instead, rule, takes

takes("FullyConnected", axes=4)


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
