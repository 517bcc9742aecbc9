"""Shape rules that several ops share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, cast

from openqnn.errors import ShapeError
from openqnn.ir import Node, Shape

MOVED_LAST: Final = "@last"  # on a node whose data moved: the place of what was the last axis


def same(node: Node) -> list[Shape]:
    """The shape of input 0."""
    return [node.x(0).shape]


def declared(node: Node) -> list[Shape]:
    """Whatever the caller declared: the op has no rule of its own."""
    if not node.outputs:
        raise ShapeError(f"{node.where}: the output shapes must be given")
    return [v.shape for v in node.outputs]


def broadcast_shapes(shapes: Sequence[Shape], where: str) -> Shape:
    """Numpy's rule, with a message that names the shapes."""
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out: list[int] = []
    for column in zip(*padded, strict=True):
        sizes = {d for d in column if d != 1}
        if len(sizes) > 1:
            raise ShapeError(f"{where}: shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast(node: Node) -> list[Shape]:
    """All inputs, broadcast."""
    return [broadcast_shapes([v.shape for v in node.inputs if v is not None], node.where)]


def window(
    size: int, kernel: int, stride: int, pads: Sequence[int], dilation: int = 1, ceil: bool = False
) -> int:
    """Number of windows along one axis; with `ceil` the last window may start inside the padding's end."""
    room = size + sum(pads) - dilation * (kernel - 1) - 1
    if room < 0:
        return 0
    count = -(-room // stride) + 1 if ceil else room // stride + 1
    if ceil and (count - 1) * stride >= size + pads[0]:
        count -= 1  # a window must start inside the data or its leading padding
    return count


def last_axis(node: Node) -> int:
    """Where the last axis of input 0 is in the axis order that the node runs in."""
    return cast(int, node.params.get(MOVED_LAST, node.x(0).rank - 1))


def along(shape: Shape, axis: int) -> Shape:
    """The shape in which a vector lines up with one axis of that data."""
    return tuple(d if i == axis else 1 for i, d in enumerate(shape))


def reduced(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    """A shape without some axes. QNN has no rank 0: a single number has shape [1]."""
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes) or (1,)


def positive(node: Node, *names: str) -> None:
    """Refuses parameters (strides, block sizes, groups) that are zero somewhere."""
    for name in names:
        value = node.params.get(name, 1)
        if prod(cast("tuple[int, ...]", value) if isinstance(value, tuple) else (cast(int, value),)) <= 0:
            raise ShapeError(f"{node.where}: {name}={value} must be positive")


def vector(node: Node, index: int, length: int) -> None:
    """Checks an optional operand that holds one number per channel."""
    if node.has(index) and node.x(index).shape != (length,):
        got = list(node.x(index).shape)
        raise ShapeError(f"{node.where}: input {index} has shape {got}, [{length}] expected")
