"""Matrix products."""

from __future__ import annotations

from math import prod

from openqnn.ir import Node, Value
from openqnn.ops import Builder
from openqnn.passes.edit import RESHAPE
from openqnn.passes.htp.ranks import view
from openqnn.passes.htp.rules import Instead, rule


@rule("FullyConnected")
def product_between_reshapes(node: Node, b: Builder) -> Instead:
    # Between two reshapes finalize fails ("mismatched scale and bias dimensions"): they are merged into it.
    # keep_dims is refused: "incorrect Value 1, expected equal to 0".
    x = node.x(0)
    if not node.flag("keep_dims") and not (_is_reshape(x) and any(u.op == RESHAPE for u in node.out.users)):
        return None
    width = node.x(1).shape[1]
    flat = view(b, x, (prod(x.shape) // width, width))
    bias = node.x(2) if node.has(2) else None
    return view(b, b("MatMul", flat, node.x(1), bias, transpose_in1=True), node.out.shape)


def _is_reshape(x: Value) -> bool:
    return x.producer is not None and x.producer.op == RESHAPE
