"""Attention and the position encodings that go with it."""

from __future__ import annotations

from collections.abc import Sequence

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape
from openqnn.ops.onnx_writer import Body
from openqnn.ops.schema import ABSENT, flag, op, result, tensor, u32
from openqnn.ops.shape_rules import declared


def _rotated(n: Node) -> int:
    """How many leading features are rotated; all of them unless told."""
    return n.int("rotary_embedding_dim") if "rotary_embedding_dim" in n.params else n.x(0).shape[-1]


def rotary_shape(n: Node) -> list[Shape]:
    (batch, _, length, width), rotated = n.x(0).shape, _rotated(n)
    table = (batch, length, rotated // 2)
    if rotated % 2 or rotated > width or n.x(1).shape != table or n.x(2).shape != table:
        shapes = ", ".join(str(list(n.x(i).shape)) for i in range(3))
        raise ShapeError(f"{n.where}: {shapes} do not fit {rotated} features; tables {list(table)} expected")
    return [n.x(0).shape]


def _turn(b: Body, first: str, second: str, cos: str, sin: str) -> tuple[str, str]:
    """Pairs of features as points, turned by an angle."""
    left = b.op("Sub", b.op("Mul", first, cos), b.op("Mul", second, sin))
    return left, b.op("Add", b.op("Mul", first, sin), b.op("Mul", second, cos))


def _features(b: Body, x: str, low: int, high: int) -> str:
    return b.op("Slice", x, b.ints(low), b.ints(high), b.ints(3))


def rotary(n: Node, b: Body, x: Sequence[str]) -> str:
    shape, rotated = n.x(0).shape, _rotated(n)
    cos, sin = (b.op("Unsqueeze", t, b.ints(1)) for t in x[1:3])  # the heads share the tables
    head = _features(b, x[0], 0, rotated)
    if n.flag("interleaved"):
        pairs = b.reshape(head, (*shape[:3], rotated // 2, 2))
        halves = b.ops("Split", pairs, count=2, axis=4, num_outputs=2)
        first, second = (b.op("Squeeze", half, b.ints(4)) for half in halves)
        turned = [b.op("Unsqueeze", t, b.ints(4)) for t in _turn(b, first, second, cos, sin)]
        done = b.reshape(b.op("Concat", *turned, axis=4), (*shape[:3], rotated))
    else:
        first, second = b.ops("Split", head, count=2, axis=3, num_outputs=2)
        done = b.op("Concat", *_turn(b, first, second, cos, sin), axis=3)
    if rotated == shape[-1]:
        return done
    return b.op("Concat", done, _features(b, x[0], rotated, shape[-1]), axis=3)


@op
class RotaryEmbedding:
    """Turns pairs of features by an angle per position: neighbours if interleaved, else half apart."""

    in0 = tensor(4)
    cos = tensor(3)
    sin = tensor(3)
    out0 = result()
    interleaved = flag(False)
    rotary_embedding_dim = u32(default=ABSENT)
    infer = rotary_shape
    lower = rotary


@op
class GroupQueryAttention:
    """Attention whose query heads share key and value heads in groups."""

    query = tensor()
    key = tensor()
    value = tensor()
    out0 = result()
    infer = declared
    why_not = "its operands and parameters are not public, and the vendor's libraries at hand do not have it"
